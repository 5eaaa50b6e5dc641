// SPDX-License-Identifier: MIT
#include "device/simulated/limited_ctas.h"

#include <algorithm>
#include <cmath>

#include "kernels/catalogue.h"

namespace stepgate {

CtasOfCollectives ctas_of_collectives(const DeviceProfile& profile, const RanksPlan& ranks) {
  const bool has_links = !profile.collectives.empty() && ranks.links == RankLinks::usual;
  const int chosen = has_links ? 24 : 2;
  const int that_would_do = has_links ? 15 : 2;
  const int taken = std::min(chosen, ranks.max_ctas.value_or(chosen));
  return {.taken = taken, .bandwidth = std::min(1.0, static_cast<double>(taken) / that_would_do)};
}

std::int64_t time_with_ctas(std::int64_t nanoseconds, std::int64_t latency_nanoseconds,
                            const CtasOfCollectives& ctas) {
  const std::int64_t latency = std::min(nanoseconds, latency_nanoseconds);
  return latency + std::llround(static_cast<double>(nanoseconds - latency) / ctas.bandwidth);
}

bool leaves_room(const LaunchKernel& launch, const CtasOfCollectives& ctas) {
  const auto spared = kernel(launch.kernel).library.spare_multiprocessors;
  return spared && spared(launch.attributes) >= ctas.taken;
}

}  // namespace stepgate
