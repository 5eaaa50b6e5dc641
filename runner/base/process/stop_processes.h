// SPDX-License-Identifier: MIT
// Stops a process's descendants (SIGSTOP) and lets them go on. Linux only (/proc).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace stepgate {

struct StoppedProcesses {
  std::vector<pid_t> processes;       // parents before their children
  std::size_t most_children = 0;      // of any one of them
  std::optional<pid_t> running = {};  // one that could not be stopped
};

// Stops every descendant of the process, in whatever group or session it is, and returns once none
// of them runs, after a second at most.
StoppedProcesses stop_descendants(pid_t);
// Children go on before their parents, so that no parent that waits for stopped children sees one.
void let_go_on(const StoppedProcesses&);

}  // namespace stepgate
