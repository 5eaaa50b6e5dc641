// SPDX-License-Identifier: MIT
// Measures and judges one planned scenario, for `run` and `accept`.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "judge/judge.h"
#include "line/planned.h"
#include "line/progress_sink.h"

namespace stepgate {

struct Decided {
  Verdict verdict;
  Measurement measurement;
  WallTimes wall_times = {};  // of measuring and judging
};

// Called after every round with the measurement so far.
using AfterRound = std::function<void(const Measurement&)>;

// Measures until every assertion is decided and the scenario has its required rounds, or until a
// signal arrives, after which there is no verdict. Skips what the device cannot do.
Decided decide_one(const Planned&, Device&, std::uint64_t seed, JudgeSettings,
                   const ProgressSink& = {}, const AfterRound& = {});

// Decides the counts of a scenario from its trace, before anything is timed. Empty where its
// verdict may yet be another one: its step is calibrated, the device may not meet its requirements,
// or the trace is none that judges trust.
std::vector<AssertionVerdict> decide_counts(const Planned&, const Traced&);

// Decides without rounds: from plans alone, or by skipping because the device cannot run the
// scenario. nullopt for a scenario that must be measured.
std::optional<Decided> decide_before_rounds(const Planned&, const DeviceIdentity&, JudgeSettings);

// Decides a scenario whose device failed for the given reason, from its plans and its trace, which
// another process made. Assertions that need rounds stay undecided.
Decided decide_without_rounds(const Planned&, const DeviceIdentity&, std::uint64_t seed,
                              JudgeSettings, const std::string& failure);

// Judges again a measurement that decide_one made.
Verdict judge_one(const Planned&, const Measurement&, JudgeSettings);

}  // namespace stepgate
