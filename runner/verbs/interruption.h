// SPDX-License-Identifier: MIT
// Signals that ask a run to end.
#pragma once

#include <csignal>

namespace stepgate {

// The signal that came, or 0.
extern volatile std::sig_atomic_t interrupted;

// The first signal ends the run after its round; the second one ends the process as if nobody had
// asked.
void stop_when_interrupted();

// The first signal ends the process: for one that has nothing to finish.
void end_when_interrupted();

}  // namespace stepgate
