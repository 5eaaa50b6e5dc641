// SPDX-License-Identifier: MIT
// Decides assertions that compare this run with stored ones: counts exactly, times by the
// prediction interval of base/stats/prediction_interval.h. baseline.h describes the stored runs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/judge.h"
#include "judge/stored/baseline.h"

namespace stepgate {

// Returns whether any assertion compares times with stored ones, so that anchors must be measured.
bool needs_anchors(const Scenario&);

// The runs that have the variant and may be compared with this run, by unit; or why there are none,
// in words.
struct MatchingRuns {
  StoredUnit unit = StoredUnit::run;
  std::vector<std::vector<const StoredVariant*>> units;
  std::vector<const StoredRun*> runs;  // in the order of the file
  bool only_of_other_devices = false;  // the runs that match are of other devices, too few to pool
  std::string reason;
};

// With fewer units, their spread is unknown and nothing is decided.
constexpr std::size_t fewest_stored_units = 3;

// Properties of a variant that two runs must share to be compared, besides the machine.
struct StoredSubject {
  std::string variant;
  std::uint64_t knobs = 0;  // fingerprint
  std::string anchor;
  std::string libraries;
};

// Why a run in environment `now` cannot be compared with the stored one, in words; nullopt where it
// can. Another device of the same model is no reason.
std::optional<std::string> reason_against(const StoredRun&, const Environment& now,
                                          const StoredSubject&);

// A run matches if environment, knobs of the variant, anchor and libraries are equal, the user's
// kernels excepted; a value that is unknown in one run is ignored. If this device has five runs in
// three sessions, only its runs are compared. Otherwise, runs of other devices of the same model
// count if there are three devices, and each device is one unit. Runs before the last matching
// baseline reset do not count.
MatchingRuns matching_runs(const Baseline&, const Environment& now, const StoredSubject&);
MatchingRuns matching_runs(const Baseline&, const Environment& now, const Variant&,
                           const std::string& anchor, const std::string& libraries);

// The values by which a run is compared: means over as many rounds as stored runs have.
struct StoredLook {
  double contrast = 0;  // log(time / anchor's time)
  double anchor = 0;    // log(anchor's seconds)
};
// Compares this run with the stored runs. nullopt with fewer rounds than needed, without anchors,
// or where the device does not know a value.
std::optional<StoredLook> look_at_stored(const Expectation&, std::span<const Subject>,
                                         const Measurement&);

// Why storing this run would reset the baseline, in words: none of the stored runs of a variant can
// be compared with this one. Another device of the same model is no reason, and neither is a new
// variant or a calibrated knob.
std::optional<std::string> reason_for_baseline_reset(const Scenario&, std::span<const Subject>,
                                                     const Measurement&, const Baseline&);

// Decides an assertion with `stored.`, of plan, exact or timed evidence, and fills in its verdict.
void decide_stored(const Expectation&, const Scenario&, std::span<const Subject>,
                   const Measurement&, const JudgeSettings&, AssertionVerdict&);

}  // namespace stepgate
