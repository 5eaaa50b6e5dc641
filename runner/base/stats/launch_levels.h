// SPDX-License-Identifier: MIT
// Noise of two levels: of superblocks within a launch, and of launches. Where to spend the next
// second follows from both (Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM
// 2013).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepgate {

struct LaunchLevels {
  double superblock_variance = 0;
  double launch_variance = 0;  // of what all superblocks of a launch share
};

// From the superblocks of each launch, by the moments of a random-effects analysis of variance;
// launches may have different numbers of superblocks, each at least one. Zero variances where there
// is nothing to estimate them from.
LaunchLevels launch_levels_of(std::span<const std::vector<double>> launches);

// The superblocks a launch that give the most information a second, from 1 to `most`: sqrt(cost of
// a launch / cost of a superblock * superblock variance / launch variance). Costs in any one unit.
std::int64_t best_superblocks(const LaunchLevels&, double launch_cost, double superblock_cost,
                              std::int64_t most);

}  // namespace stepgate
