// SPDX-License-Identifier: MIT
#include "device/simulated/limited_ctas.h"

#include <algorithm>
#include <cmath>

#include "kernels/catalogue.h"

namespace stepgate {

std::int64_t time_with_ctas(std::int64_t nanoseconds, std::int64_t latency_nanoseconds,
                            std::optional<int> max_ctas) {
  if (!max_ctas || *max_ctas >= ctas_that_fill_a_link) return nanoseconds;
  const std::int64_t latency = std::min(nanoseconds, latency_nanoseconds);
  const auto moving = static_cast<double>(nanoseconds - latency);
  return latency + std::llround(moving * ctas_that_fill_a_link / *max_ctas);
}

bool leaves_room_for_ctas(const LaunchKernel& launch, std::optional<int> max_ctas) {
  const auto spared = kernel(launch.kernel).spare_multiprocessors;
  return spared &&
         spared(launch.attributes) >= std::min(max_ctas.value_or(ctas_by_choice), ctas_by_choice);
}

}  // namespace stepgate
