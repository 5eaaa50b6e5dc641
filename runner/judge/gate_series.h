// SPDX-License-Identifier: MIT
// Many gates from one measurement: its rounds are dealt out one after another, each gate takes as
// many as it needs. What a round randomises anew it randomises for every gate, so the gates are as
// good as separate runs, but for what sticks to the process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "judge/judge.h"
#include "judge/timed_sentence.h"

namespace stepgate {

struct GateResult {
  Outcome outcome = Outcome::undecided;
  std::int64_t rounds = 0;
};

class GateSeries {
 public:
  // The sentence is timed; `most_rounds` a gate, then it is undecided.
  GateSeries(const Expectation& sentence, std::span<const StepPlan>, const JudgeSettings&,
             std::int64_t gates, std::int64_t most_rounds);

  // Takes the rounds that it has not seen; true when all gates are done. Can be what `enough` is.
  bool add(const Measurement&);

  const std::vector<GateResult>& results() const { return results_; }
  // log(left / right) of every round.
  const std::vector<double>& contrasts() const { return contrasts_; }

 private:
  void add(double contrast);

  Expectation sentence_;
  std::span<const StepPlan> plans_;
  JudgeSettings settings_;
  std::size_t gates_;
  std::int64_t most_rounds_;
  std::size_t rounds_seen_ = 0;
  TimedSentence test_;
  std::int64_t rounds_of_gate_ = 0;
  std::vector<GateResult> results_;
  std::vector<double> contrasts_;
};

// The smallest relative slowdown that gates of so many rounds would have refuted in at least 95 %
// of cases as "no slower at all", had it been on top of these contrasts of identical code. Nothing
// when the contrasts make fewer than 20 such gates or no slowdown up to 100 % suffices.
std::optional<double> smallest_provable(std::span<const double> contrasts, std::int64_t rounds,
                                        double alpha);

}  // namespace stepgate
