// SPDX-License-Identifier: MIT
#include "device/simulated/limited_ctas.h"

#include <algorithm>
#include <cmath>

namespace stepgate {

double share_of_channels(const DeviceProfile& profile, const RanksPlan& ranks) {
  if (!ranks.max_ctas) return 1;
  constexpr double over_nvlink = 24;
  constexpr double over_pcie = 2;
  const bool has_links = profile.collectives.ranks != 0 && ranks.links == RankLinks::usual;
  return std::min(1.0, *ranks.max_ctas / (has_links ? over_nvlink : over_pcie));
}

std::int64_t time_with_channels(std::int64_t nanoseconds, std::int64_t latency_nanoseconds,
                                double share) {
  const std::int64_t latency = std::min(nanoseconds, latency_nanoseconds);
  return latency + std::llround(static_cast<double>(nanoseconds - latency) / share);
}

double stretch_with_channels(double stretch, double share) {
  return 1 + (stretch - 1) * share;
}

}  // namespace stepgate
