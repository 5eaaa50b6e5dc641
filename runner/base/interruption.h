// SPDX-License-Identifier: MIT
// Signals that ask this process to end.
#pragma once

#include <chrono>
#include <csignal>
#include <exception>

namespace stepgate {

// The signal that came, or 0.
extern volatile std::sig_atomic_t interrupted;

// For a verb that has something to finish. The first SIGINT or SIGTERM is remembered and asks the
// verb to end; a second one, whichever it is, ends the process as if nobody had asked. So does
// time: who has not ended by itself after `most_time_to_end_by_itself` is ended by that first
// signal, since whoever sent it kills what does not listen. Verbs that never ask are not armed: a
// signal ends them.
void stop_when_interrupted();
constexpr std::chrono::milliseconds most_time_to_end_by_itself{1500};

// Says what a program that is ended by time has left, as the end of its last line: "written:
// r.json\n". The text must stay, since a handler reads it at any moment; nullptr: nothing was
// written.
void say_when_ended(const char* left);

// Somebody wants a wait to end.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// For whatever waits: throws Interrupted when a signal came.
void throw_if_interrupted();

}  // namespace stepgate
