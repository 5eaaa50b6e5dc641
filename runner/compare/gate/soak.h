// SPDX-License-Identifier: MIT
// Whether the steps of a workload become slower the longer they run: what a leak, a list that grows
// or a clock that falls does, and no pair of launches lasts long enough to show. One program,
// against its own beginning. Prints nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "compare/gate/judge_comparison.h"
#include "compare/worker/worker.h"
#include "judge/verdict/verdict.h"

namespace stepgate {

// A workload is run for so many steps or so long, whichever comes first.
inline constexpr std::int64_t steps_of_a_soak = 6'000;
inline constexpr std::chrono::seconds longest_soak{20};

struct SoakedWorkload {
  std::string name;
  double margin = 0;  // how much longer late steps may take, relative
  // failed: two launches became slower; undecided: one of two, or the second half of both took
  // longer in total alone
  Outcome outcome = Outcome::passes;
  std::int64_t steps = 0;    // that a launch covered, the fewest
  double early_seconds = 0;  // of a step, in the first segments that were compared
  double late_seconds = 0;   // and in as many of the last ones
  std::string reason;
};

// A workload whose first launch became slower by more than the margin is launched again. Throws
// WorkerError, and WaitStopped when the wait was to end.
SoakedWorkload soak(const std::string& workload, double margin,
                    const std::function<std::unique_ptr<Worker>()>& launch);

// Compares a program with its own beginning: early times count as BASE, late times as HEAD.
ComparisonVerdict verdict_of(std::span<const SoakedWorkload>, const Introduction&,
                             const ComparisonSettings&);

}  // namespace stepgate
