// SPDX-License-Identifier: MIT
// Decides sentences that compare this run with stored ones: counts exactly, times by the prediction
// interval of stats/prediction_interval.h. How runs are stored is baseline.h's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "judge/baseline.h"
#include "judge/judge.h"

namespace stepgate {

// Whether any sentence compares times with stored ones, so that anchors must be measured.
bool needs_anchors(const Scenario&);

// Of the runs that hold the variant, those that this run may be compared with; or why there are
// none, in words.
struct MatchingRuns {
  std::vector<const StoredVariant*> variants;
  std::string reason;
};

// A run matches with the same environment, knobs of the variant, anchor and libraries, which one of
// both may not know. Runs of other devices
// of the same model count only when the matching ones come from at least three devices: with fewer
// nobody knows how far devices differ.
MatchingRuns matching_runs(const Baseline&, const Environment& now, const Variant&,
                           const std::string& anchor, const std::string& libraries);

// A sentence with `stored.`, of plan, exact or timed evidence, into the verdict that names it.
void decide_stored(const Expectation&, const Scenario&, std::span<const StepPlan>,
                   const Measurement&, const JudgeSettings&, SentenceVerdict&);

}  // namespace stepgate
