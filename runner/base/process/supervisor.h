// SPDX-License-Identifier: MIT
// The small process between stepgate and a worker. It starts the worker and outlives it by an
// instant, so that nothing the worker started is left over: not when the worker dies, not when it
// leaves its process group, and not when stepgate itself is killed. Where the supervisor is killed,
// stepgate does its work (own_processes.h). What is said over the pipes is not its business. Linux
// only: the supervisor adopts orphans (PR_SET_CHILD_SUBREAPER).
#pragma once

#include <chrono>

namespace stepgate {

// Between the request to end (SIGTERM) and the order to (SIGKILL).
constexpr std::chrono::milliseconds time_to_end{1000};

struct SupervisorEnds {
  int in = -1;     // the worker's standard streams
  int out = -1;    //
  int error = -1;  //
  int parent_death_pipe =
      -1;           // end of file: everything must end, since stepgate asks so or is gone
  int report = -1;  // what became of the worker
};

enum class WorkerFate { cannot_start, ended };

// One message over the report pipe.
struct WorkerReport {
  WorkerFate fate = WorkerFate::ended;
  int value = 0;  // cannot_start: errno; ended: as waitpid gives it
};

// Runs the command (execvpe), which sees these variables, and watches over it. To be called in a
// forked process without other threads; every end must be above 2 and closed on exec. Reports
// `ended` when nothing of the worker is left.
[[noreturn]] void supervise(const SupervisorEnds&, char* const* command, char* const* environment);

}  // namespace stepgate
