// SPDX-License-Identifier: MIT
// Signals that ask this process to end.
#pragma once

#include <chrono>
#include <csignal>
#include <exception>

namespace stepgate {

// The signal that came, or 0.
extern volatile std::sig_atomic_t interrupted;

// For a verb that has something to finish. The first SIGINT or SIGTERM is remembered, and the verb
// should end. A second one of either kind ends the process at once. A process that is still running
// after `most_time_to_end_by_itself` is ended by the first signal, before its sender kills it. A
// verb that does not call this is ended by any signal.
void stop_when_interrupted();
constexpr std::chrono::milliseconds most_time_to_end_by_itself{1500};

// Sets what a program that is ended by the timeout reports at the end of its last line: "written:
// r.json\n". The text must stay, since a handler reads it at any moment; nullptr: nothing was
// written.
void say_when_ended(const char* left);

// Thrown to end a wait after a signal.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// Called in wait loops: throws Interrupted after a signal.
void throw_if_interrupted();

}  // namespace stepgate
