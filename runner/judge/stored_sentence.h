// SPDX-License-Identifier: MIT
// Decides sentences that compare this run with stored ones: counts exactly, times by the prediction
// interval of stats/prediction_interval.h. How runs are stored is baseline.h's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/baseline.h"
#include "judge/judge.h"

namespace stepgate {

// Whether any sentence compares times with stored ones, so that anchors must be measured.
bool needs_anchors(const Scenario&);

// Of the runs that hold the variant, those that this run may be compared with, by units; or why
// there are none, in words.
struct MatchingRuns {
  StoredUnit unit = StoredUnit::run;
  std::vector<std::vector<const StoredVariant*>> units;
  std::string reason;
};

// With fewer nobody knows how far units differ: nothing is decided.
constexpr std::size_t fewest_stored_units = 3;

// A run matches with the same environment, knobs of the variant, anchor and libraries, which one of
// both may not know. A device with five runs of its own in three sittings is compared with those.
// Otherwise runs of other devices of the same model count when there are three devices, each of
// which is then one unit.
MatchingRuns matching_runs(const Baseline&, const Environment& now, const Variant&,
                           const std::string& anchor, const std::string& libraries);

// What a run is compared by: its mean of log(time / anchor's time) over the rounds that stored runs
// have too. Nothing with fewer rounds, without anchors, or where the device does not know.
std::optional<double> contrast_with_stored(const Expectation&, std::span<const StepPlan>,
                                           const Measurement&);

// A sentence with `stored.`, of plan, exact or timed evidence, into the verdict that names it.
void decide_stored(const Expectation&, const Scenario&, std::span<const StepPlan>,
                   const Measurement&, const JudgeSettings&, SentenceVerdict&);

}  // namespace stepgate
