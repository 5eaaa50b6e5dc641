// SPDX-License-Identifier: MIT
#include "base/stats/launch_levels.h"

#include <algorithm>
#include <cmath>

#include "base/stats/moments.h"

namespace stepgate {

LaunchLevels launch_levels_of(std::span<const std::vector<double>> launches) {
  double total = 0;   // sum over launches of (number of superblocks)^2
  double count = 0;   // number of superblocks
  double within = 0;  // sum of squares within launches
  double sum = 0;     // sum of all contrasts
  for (const std::vector<double>& launch : launches) {
    const Moments moments = moments_of(launch);
    const auto size = static_cast<double>(moments.count);
    count += size;
    total += size * size;
    within += size * moments.variance;
    sum += size * moments.mean;
  }
  const auto groups = static_cast<double>(launches.size());
  LaunchLevels levels;
  if (count <= groups || groups < 2) return levels;
  levels.superblock_variance = within / (count - groups);
  double between = 0;
  for (const std::vector<double>& launch : launches) {
    const Moments moments = moments_of(launch);
    const double distance = moments.mean - sum / count;
    between += static_cast<double>(moments.count) * distance * distance;
  }
  const double mean_square = between / (groups - 1);
  const double typical_size = (count - total / count) / (groups - 1);
  levels.launch_variance = std::max(0.0, (mean_square - levels.superblock_variance) / typical_size);
  return levels;
}

std::int64_t best_superblocks(const LaunchLevels& levels, double launch_cost,
                              double superblock_cost, std::int64_t most) {
  const double best = std::sqrt(launch_cost / superblock_cost * levels.superblock_variance /
                                levels.launch_variance);
  if (std::isnan(best)) return 1;  // 0 / 0: without noise or cost more superblocks gain nothing
  return static_cast<std::int64_t>(std::clamp(best, 1.0, static_cast<double>(most)) + 0.5);
}

}  // namespace stepgate
