// SPDX-License-Identifier: MIT
// The processes that this one starts, told from those that the system gives it: whoever kills a
// supervisor (supervisor.h) leaves behind what that one watched over, and this process adopts it.
// Linux only (PR_SET_CHILD_SUBREAPER, /proc).
#pragma once

#include <sys/types.h>

namespace stepgate {

// fork(), of which this process knows that it was its own. What was a child before the first call
// counts as its own too.
pid_t fork_own();

// It has been waited for. When a signal ended it (`status` as waitpid gives it), every child that
// is not our own is killed and waited for, a second at most.
void forget_own(pid_t, int status);

}  // namespace stepgate
