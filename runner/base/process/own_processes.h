// SPDX-License-Identifier: MIT
// Distinguishes the children that this process started from orphans that it adopts. When a
// supervisor (supervisor.h) is killed, the children it watched become orphans of this process.
// Linux only (PR_SET_CHILD_SUBREAPER, /proc).
#pragma once

#include <sys/types.h>

namespace stepgate {

// Calls fork() and records the child as started by us. Children that exist at the first call are
// recorded too.
pid_t fork_own();

// To be called after waiting for the child, with waitpid's `status`. If a signal ended the child,
// kills all adopted children and waits for them, at most a second.
void forget_own(pid_t, int status);

}  // namespace stepgate
