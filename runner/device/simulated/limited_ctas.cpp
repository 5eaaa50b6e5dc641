// SPDX-License-Identifier: MIT
#include "device/simulated/limited_ctas.h"

#include <algorithm>
#include <cmath>

namespace stepgate {

double share_of_channels(std::optional<int> max_ctas) {
  if (!max_ctas) return 1;
  return std::min(1.0, static_cast<double>(*max_ctas) / channels_by_choice);
}

std::int64_t time_with_ctas(std::int64_t nanoseconds, std::int64_t latency_nanoseconds,
                            std::optional<int> max_ctas) {
  const std::int64_t latency = std::min(nanoseconds, latency_nanoseconds);
  const auto moving = static_cast<double>(nanoseconds - latency);
  return latency + std::llround(moving / share_of_channels(max_ctas));
}

double stretch_with_ctas(double stretch, std::optional<int> max_ctas) {
  return 1 + (stretch - 1) * share_of_channels(max_ctas);
}

}  // namespace stepgate
