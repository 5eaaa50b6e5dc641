// SPDX-License-Identifier: MIT
// Combines the results of all ranks of a run into one result.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/ranked/rank_protocol.h"

namespace stepgate {

// Whether the times in the ranks' traces come from the clock of one host or of several.
enum class Clocks { one, several };
// Whether each rank updates all parameters, or only its own part: StepPlan::shards_updates.
enum class Updates { whole, shared_out };

// Combines the results of ranks that ran the same steps, ordered by rank, at least one. The slowest
// rank determines times, since a step ends when all ranks have finished it. With one clock, the
// trace has the arrival times of all ranks at their collectives.
StepResult combined(std::vector<RankRan>, Clocks, Updates = Updates::whole);

// The first rank whose weights differ from those of rank 0; nullopt if all agree or none were read.
std::optional<std::size_t> other_weights(std::span<const RankRan>);

// The first rank whose results differ from those of rank 0, and the kind of result in a word:
// "losses". All ranks must have run the same steps. Host times are not compared. nullopt if all
// agree.
struct Disagreement {
  std::size_t rank = 0;
  std::string about;
};
std::optional<Disagreement> disagreement(std::span<const RankRan>);

// Combines the readings of all ranks; where they differ, the worse value counts.
EnvironmentReading combined(std::span<const EnvironmentReading>);

}  // namespace stepgate
