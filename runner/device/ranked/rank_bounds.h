// SPDX-License-Identifier: MIT
// Bounds of what the processes of ranks say to each other: a process at the other end of a link may
// be damaged or another program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "device/ranked/rank_protocol.h"

namespace stepgate {

// Ten times the most that a scenario can ask for (measure.steps, measure.warmup).
inline constexpr std::int64_t most_steps_of_a_run = 10'000'000;

// The row of the one table of bounds for a field of a record; "Observe.steps" has the row
// {"Observe.steps", 1, most_steps_of_a_run}.
struct NumberBounds {
  std::string_view field;
  std::int64_t least = 0;
  std::int64_t most = 0;
  // Every number of its type is valid, also one that is not finite: results of a computation, seeds
  // and digests.
  bool is_any = false;
};
std::span<const NumberBounds> number_bounds();

// Throw WrongRecord, which names the field, for a number out of bounds. Traces are left out: their
// reader checks them (trace_json.h).
void check_bounds(const RankRequest&);
void check_bounds(const RankAnswer&);

// The following return nullopt where nothing is wrong. Their numbers must be within bounds.
//
// Why these are no results of what was asked for. The text continues "rank 1 ". A trace refers to
// operations of the plan, of which there are so many.
std::optional<std::string> wrong_answer(const StepResult&, const Observe&, std::size_t operations);
std::optional<std::string> wrong_answer(std::span<const StepResult>, const Interleaving&,
                                        std::size_t steps);
// Why so many loaded steps cannot run by these turns.
std::optional<std::string> wrong_order(const Interleaving&, std::size_t steps);

}  // namespace stepgate
