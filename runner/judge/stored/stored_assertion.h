// SPDX-License-Identifier: MIT
// Decides assertions that compare this run with stored ones: counts exactly, times by the
// prediction interval of base/stats/prediction_interval.h. baseline.h says how runs are stored.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/judge.h"
#include "judge/stored/baseline.h"

namespace stepgate {

// Whether any assertion compares times with stored ones, so that anchors must be measured.
bool needs_anchors(const Scenario&);

// The runs that hold the variant and may be compared with this run, by units; or why there are
// none, in words.
struct MatchingRuns {
  StoredUnit unit = StoredUnit::run;
  std::vector<std::vector<const StoredVariant*>> units;
  std::vector<const StoredRun*> runs;  // of all units, in the order of the file
  bool only_of_other_devices = false;  // all that match, and too few to pool
  std::string reason;
};

// With fewer units their spread is unknown, so nothing is decided.
constexpr std::size_t fewest_stored_units = 3;

// Properties of a variant that two runs must share to be compared, besides the machine.
struct StoredSubject {
  std::string variant;
  std::uint64_t knobs = 0;  // fingerprint
  std::string anchor;
  std::string libraries;
};

// Why a run in that environment cannot be compared with the stored one, in words; nothing where it
// can. Another device of the same model is no reason.
std::optional<std::string> reason_against(const StoredRun&, const Environment& now,
                                          const StoredSubject&);

// A run matches with the same environment, knobs of the variant, anchor and libraries, which one of
// both may not know. A device with five runs of its own in three sessions is compared with those.
// Otherwise runs of other devices of the same model count when there are three devices, each of
// which is then one unit. Runs before the last match that reset the baseline do not count.
MatchingRuns matching_runs(const Baseline&, const Environment& now, const StoredSubject&);
MatchingRuns matching_runs(const Baseline&, const Environment& now, const Variant&,
                           const std::string& anchor, const std::string& libraries);

// The values by which a run is compared: means over the rounds that stored runs have too.
struct StoredLook {
  double contrast = 0;  // log(time / anchor's time)
  double anchor = 0;    // log(anchor's seconds)
};
// Nothing with fewer rounds, without anchors, or where the device does not know.
std::optional<StoredLook> look_at_stored(const Expectation&, std::span<const Subject>,
                                         const Measurement&);

// Why the run would reset the baseline if it were stored, in words: of a variant that the baseline
// knows none of its runs can be compared with this one. Another device of the same model is no
// period, and neither is a variant that is new or a knob that was calibrated.
std::optional<std::string> reason_for_baseline_reset(const Scenario&, std::span<const Subject>,
                                                     const Measurement&, const Baseline&);

// An assertion with `stored.`, of plan, exact or timed evidence, into the verdict that names it.
void decide_stored(const Expectation&, const Scenario&, std::span<const Subject>,
                   const Measurement&, const JudgeSettings&, AssertionVerdict&);

}  // namespace stepgate
