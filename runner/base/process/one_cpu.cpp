// SPDX-License-Identifier: MIT
#include "base/process/one_cpu.h"

namespace stepgate {

OneCpu::OneCpu(std::uint64_t draw) {
  if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  std::uint64_t place = draw % static_cast<std::uint64_t>(CPU_COUNT(&before_));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before_)) continue;
    if (place != 0) {
      --place;
      continue;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    moved_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
    return;
  }
}

OneCpu::~OneCpu() {
  if (moved_) (void)::sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace stepgate
