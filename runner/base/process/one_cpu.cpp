// SPDX-License-Identifier: MIT
#include "base/process/one_cpu.h"

namespace stepgate {

OneCpu::OneCpu(std::uint64_t draw, int member, int members) {
  if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  const auto count = static_cast<std::uint64_t>(CPU_COUNT(&before_));
  const std::uint64_t apart =
      static_cast<std::uint64_t>(member) * count / static_cast<std::uint64_t>(members);
  std::uint64_t place = (draw % count + apart) % count;
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
