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
  double launch_variance = 0;  // variance of the effect that a launch's superblocks share
};

// Estimates both variances from the superblocks of each launch, by the moments of a random-effects
// analysis of variance. Launches may have different numbers of superblocks, at least one each.
// Variances are zero where they cannot be estimated.
LaunchLevels launch_levels_of(std::span<const std::vector<double>> launches);

// The number of superblocks a launch that gives the most information a second, from 1 to `most`:
// sqrt(launch cost / superblock cost * superblock variance / launch variance). Both costs have the
// same unit.
std::int64_t best_superblocks(const LaunchLevels&, double launch_cost, double superblock_cost,
                              std::int64_t most);

}  // namespace stepgate
