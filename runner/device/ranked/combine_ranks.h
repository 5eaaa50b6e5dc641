// SPDX-License-Identifier: MIT
// Combines what ranks say of one run into one result.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/ranked/rank_protocol.h"

namespace stepgate {

// Whether the ranks' traces have their times by the clock of one host.
enum class Clocks { one, several };
// Whether each rank updates all parameters, or a part of its own: StepPlan::shards_updates.
enum class Updates { whole, shared_out };

// Combines the results of ranks that each did their part of the same steps, in their order, at
// least one. The slowest rank counts: a step is over when all ranks have finished it. On one clock,
// the trace says when all ranks came to their collectives.
StepResult combined(std::vector<RankRan>, Clocks, Updates = Updates::whole);

// The first rank whose weights differ from those of rank 0; nothing if all agree or none were read.
std::optional<std::size_t> other_weights(std::span<const RankRan>);

// The first rank whose results differ from those of rank 0, and what differs in a word: "losses".
// All ranks ran the same steps. Host times are not compared. Nothing if all agree.
struct Disagreement {
  std::size_t rank = 0;
  std::string about;
};
std::optional<Disagreement> disagreement(std::span<const RankRan>);

// Environment of all ranks: where they differ, the worse value.
EnvironmentReading combined(std::span<const EnvironmentReading>);

}  // namespace stepgate
