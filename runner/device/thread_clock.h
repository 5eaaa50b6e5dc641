// SPDX-License-Identifier: MIT
// The processor time of the calling thread, which does not count time asleep.
#pragma once

#include <time.h>

#include <chrono>

namespace stepgate {

// Processor time since the thread began. The call takes a fraction of a microsecond.
inline std::chrono::nanoseconds thread_processor_time() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);  // fails for no running thread
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace stepgate
