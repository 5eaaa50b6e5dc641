// SPDX-License-Identifier: MIT
// The small process between stepgate and a worker. It starts the worker and outlives it by an
// instant, so that nothing the worker started is left over: not when the worker dies, not when it
// leaves its process group, and not when stepgate itself is killed. Where the supervisor is killed,
// stepgate does its work (own_processes.h). What is said over the pipes is not its business. Linux
// only: the supervisor adopts orphans (PR_SET_CHILD_SUBREAPER).
#pragma once

#include <chrono>

namespace stepgate {

// The time between the request to end (SIGTERM) and SIGKILL.
constexpr std::chrono::milliseconds time_to_end{1000};

struct SupervisorEnds {
  int in = -1;                 // the worker's standard streams
  int out = -1;                //
  int error = -1;              //
  int parent_death_pipe = -1;  // end of file: end the worker
  int report = -1;             // to write WorkerReport to
};

enum class WorkerFate { cannot_start, ended };

// A message that the supervisor writes to the report pipe.
struct WorkerReport {
  WorkerFate fate = WorkerFate::ended;
  int value = 0;  // cannot_start: errno; ended: status from waitpid
};

// Runs the command (execvpe) in the folder, null for this one, with these environment variables and
// supervises it. To be called in a forked process without other threads. Every descriptor must be
// above 2 and closed on exec. Reports `ended` when no process of the worker is left.
[[noreturn]] void supervise(const SupervisorEnds&, char* const* command, char* const* environment,
                            const char* folder);

}  // namespace stepgate
