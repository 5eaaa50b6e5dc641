// SPDX-License-Identifier: MIT
// Checks whether the steps of a workload become slower over time, as with a leak, a growing list or
// a falling clock rate. Pairs of launches are too short to show this. It compares one program with
// its own beginning and prints nothing.
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

// A workload runs for this number of steps or this time, whichever ends first.
inline constexpr std::int64_t steps_of_a_soak = 6'000;
inline constexpr std::chrono::seconds longest_soak{20};

struct SoakedWorkload {
  std::string name;
  double margin = 0;  // allowed increase for late steps, relative
  // fails: two launches became slower. undecided: one of two did, or only the total of the second
  // half was longer in both.
  Outcome outcome = Outcome::passes;
  std::int64_t steps = 0;    // covered by each launch, at least
  double early_seconds = 0;  // step time in the first compared segments
  double late_seconds = 0;   // step time in as many last segments
  std::string reason;
};

// Launches a workload again if its first launch became slower by more than the margin. Throws
// WorkerError, and WaitStopped when interrupted.
SoakedWorkload soak(const std::string& workload, double margin,
                    const std::function<std::unique_ptr<Worker>()>& launch);

// Compares a program with its own beginning: early times count as BASE, late times as HEAD.
ComparisonVerdict verdict_of(std::span<const SoakedWorkload>, const Introduction&,
                             const ComparisonSettings&);

}  // namespace stepgate
