// SPDX-License-Identifier: MIT
// The statistical test of one timed assertion, fed a contrast a round. Contrasts come from sides.h;
// judge.h says what the outcome means for a scenario.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/stats/e_process.h"
#include "judge/verdict/verdict.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// An assertion is one claim about the contrasts' centre theta = log(left / right), or two:
//   >=, >  theta > 0         <=, <  theta < 0
//   ~=     theta > log(1 - within) and theta < log(1 + within)
// It passes when every claim's e-value has reached 1 / beta: with probability at most beta if it is
// false (one false claim suffices). It fails when the mean of the e-values against its claims
// reaches 1 / alpha: with probability at most alpha if it is true. Both at whatever round one
// stops. Where total time is known it must be on the same side, or the assertion stays undecided:
// that takes outcomes away and adds none. The e-value against it stays what it was when it was
// decided, so that those of a suite can be put together.
struct Bound {
  Direction direction;  // theta is above the margin, or below it
  double margin;
};

bool keeps(const Bound&, double contrast);
// The bounds of an assertion with <, <=, >=, > or ~=; the parser refuses == between measured
// values.
std::vector<Bound> bounds_of(const Expectation&);

// From log(ratio) to the nearest limit, negative where that is less. A fifth of it is what may be
// neglected.
double way_to_limit(const Expectation&, double ratio);
constexpr double negligible_share = 0.2;

class TimedAssertion {
 public:
  TimedAssertion(const Expectation&, double alpha, double beta);
  // At least one bound; true when theta keeps all of them. Bets are in units of the contrasts'
  // noise: of their robust scale, or of one that is known beforehand.
  TimedAssertion(std::span<const Bound>, double alpha, double beta,
                 std::optional<double> known_scale = {});

  // Where the sides are known in total time, log(left / right) of that over all rounds so far:
  // while it is on the other side of the limit than a typical round, or not known (not a number),
  // the assertion is not decided. To refute, it is beyond the limit by more than its standard
  // error explains, one-sided at 1 %: one stall more of the other side would otherwise turn it
  // round.
  void add(double contrast, std::optional<double> in_total = {}, double standard_error = 0);

  // holds, failed or undecided: the first that was reached.
  Outcome outcome() const { return outcome_; }
  // The e-value that it is false: when it was decided, or now.
  double evidence_against_it() const { return evidence_against_; }
  // Whether rounds have decided it by themselves and total time has not.
  bool is_held_back() const;

  // At least one contrast. The interval's level is 1 - confidence. Throws Interrupted when a signal
  // came.
  TimedEvidence evidence(double confidence) const;

 private:
  struct Claim {
    Claim(Direction, double margin);

    Direction direction;
    double margin;
    EProcess in_favour;
    EProcess against;
    double most_in_favour = 1;
    std::optional<std::size_t> shown_after;  // contrasts
  };

  double scale() const { return known_scale_.value_or(scale_.value()); }
  double evidence_for() const;
  double evidence_against() const;
  bool all_claims_keep(double contrast) const;
  bool is_beyond_a_claim(double contrast, double slack) const;
  double wanted_for() const { return 1 / beta_; }
  double wanted_against() const { return static_cast<double>(claims_.size()) / alpha_; }
  std::optional<double> rounds_missing(double centre) const;
  ConfidenceSequence sequence(std::size_t rounds, double level) const;
  Bounds shown() const;

  double alpha_;
  double beta_;
  std::optional<double> known_scale_;
  std::vector<Claim> claims_;
  std::vector<double> contrasts_;
  std::vector<double> scales_;  // before each of them
  RobustScale scale_;
  std::optional<double> in_total_;
  Outcome outcome_ = Outcome::undecided;
  double evidence_for_ = 1;  // when it was decided, or now
  double evidence_against_ = 1;
};

}  // namespace stepgate
