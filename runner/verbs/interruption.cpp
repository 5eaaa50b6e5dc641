// SPDX-License-Identifier: MIT
// Handlers that only remember.
#include "verbs/interruption.h"

#include <initializer_list>

namespace stepgate {

volatile std::sig_atomic_t interrupted = 0;

void stop_when_interrupted() {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, [](int received) {
      interrupted = received;
      std::signal(received, SIG_DFL);
    });
  }
}

void end_when_interrupted() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
}

}  // namespace stepgate
