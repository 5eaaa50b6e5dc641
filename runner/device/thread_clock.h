// SPDX-License-Identifier: MIT
// How long the calling thread has had a processor, however long it has been there.
#pragma once

#include <time.h>

#include <chrono>

namespace stepgate {

// Since some moment before; asks the kernel, which takes a fraction of a microsecond.
inline std::chrono::nanoseconds thread_processor_time() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);  // fails for no running thread
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace stepgate
