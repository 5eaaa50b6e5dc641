// SPDX-License-Identifier: MIT
// Signals that ask this process to end.
#pragma once

#include <chrono>
#include <csignal>
#include <exception>

namespace stepgate {

// The signal that was received, or 0.
extern volatile std::sig_atomic_t interrupted;

// Called by a verb that must finish something when it is interrupted. The first SIGINT or SIGTERM
// is remembered, and the verb should end. A second one of either kind ends the process at once. If
// the process still runs after `most_time_to_end_by_itself`, the first signal ends it, before its
// sender kills it. A verb that does not call this is ended by any signal.
void stop_when_interrupted();
constexpr std::chrono::milliseconds most_time_to_end_by_itself{1500};

// Sets the end of the last line that a process reports when it is ended by that timeout: "written:
// r.json\n". A handler may read the text at any moment, so it must never be freed. nullptr: nothing
// was written.
void say_when_ended(const char* left);

// Thrown to end a wait after a signal.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// Called in wait loops: throws Interrupted after a signal.
void throw_if_interrupted();

}  // namespace stepgate
