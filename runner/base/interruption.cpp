// SPDX-License-Identifier: MIT
// Handlers that remember, and a timer that does not wait for ever (POSIX).
#include "base/interruption.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <string_view>

namespace stepgate {

volatile std::sig_atomic_t interrupted = 0;

namespace {

constexpr std::array asking{SIGINT, SIGTERM};
timer_t patience;
std::atomic<const char*> left_behind = nullptr;
static_assert(std::atomic<const char*>::is_always_lock_free, "handlers read it");
volatile std::sig_atomic_t has_patience = 0;

// The functions below run in signal handlers and call only async-signal-safe functions.
void remember(int received) {
  const int kept = errno;
  interrupted = received;
  for (const int signal : asking) std::signal(signal, SIG_DFL);
  constexpr std::chrono::nanoseconds left = most_time_to_end_by_itself;
  constexpr itimerspec once{.it_interval = {},
                            .it_value = {.tv_sec = left / std::chrono::seconds(1),
                                         .tv_nsec = (left % std::chrono::seconds(1)).count()}};
  if (has_patience) ::timer_settime(patience, 0, &once, nullptr);
  errno = kept;
}

// The timer was over, or somebody else sent its signal, which then does what it does by default.
void end_now(int received, siginfo_t* from, void*) {
  if (from->si_code != SI_TIMER) {
    std::signal(received, SIG_DFL);
    ::raise(received);  // it comes when this handler returns
    return;
  }
  const auto say = [](std::string_view words) {
    [[maybe_unused]] const auto said = ::write(STDERR_FILENO, words.data(), words.size());
  };
  const char* left = left_behind;
  say("interrupted: ended in the middle of its work; ");
  say(left == nullptr ? "nothing was written\n" : left);
  ::raise(interrupted);  // its disposition is the default by now
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::_exit(128 + interrupted);
}

}  // namespace

void stop_when_interrupted() {
  struct sigaction ends {};
  ends.sa_sigaction = end_now;
  ends.sa_flags = SA_SIGINFO;
  ::sigaction(SIGALRM, &ends, nullptr);
  sigevent how{};
  how.sigev_notify = SIGEV_SIGNAL;
  how.sigev_signo = SIGALRM;
  has_patience = ::timer_create(CLOCK_MONOTONIC, &how, &patience) == 0;
  for (const int signal : asking) std::signal(signal, remember);
}

void say_when_ended(const char* left) {
  left_behind = left;
}

void throw_if_interrupted() {
  if (interrupted) throw Interrupted();
}

}  // namespace stepgate
