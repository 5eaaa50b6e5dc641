// SPDX-License-Identifier: MIT
// Measuring and judging one planned scenario: what `run` and `accept` share.
#pragma once

#include <functional>
#include <optional>

#include "judge/judge.h"
#include "line/planned.h"
#include "line/progress_sink.h"

namespace stepgate {

struct Decided {
  Verdict verdict;
  Measurement measurement;
  WallTimes wall_times = {};  // of measuring and judging
};

// After every round, with what was measured so far.
using AfterRound = std::function<void(const Measurement&)>;

// Asks for evidence until every assertion is decided and the scenario has the rounds that it wants,
// or until a signal comes, which leaves no verdict. Skips what the device cannot do.
Decided decide_one(const Planned&, Device&, std::uint64_t seed, JudgeSettings,
                   const ProgressSink& = {}, const AfterRound& = {});

// Decides what needs no round: by plans alone, or skipped for what the device cannot do. Nothing
// for a scenario that is to be measured.
std::optional<Decided> decide_before_rounds(const Planned&, const DeviceIdentity&, JudgeSettings);

// Decides a scenario whose device failed half-way, for that reason: by its plans and its trace,
// which another process made. Nothing that takes rounds is decided.
Decided decide_without_rounds(const Planned&, const DeviceIdentity&, std::uint64_t seed,
                              JudgeSettings, const std::string& failure);

// A measurement that decide_one made, judged anew.
Verdict judge_one(const Planned&, const Measurement&, JudgeSettings);

}  // namespace stepgate
