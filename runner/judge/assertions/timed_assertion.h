// SPDX-License-Identifier: MIT
// The statistical test of one timed assertion, fed with one contrast per round. sides.h computes
// contrasts; judge.h interprets the outcome for a scenario.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/stats/e_process.h"
#include "judge/verdict/verdict.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// An assertion makes one or two claims about the contrasts' centre theta = log(left / right):
//   >=, >  theta > 0         <=, <  theta < 0
//   ~=     theta > log(1 - within) and theta < log(1 + within)
// It passes when every claim's e-value has reached 1 / beta. If the assertion is false, the
// probability of this is at most beta, since one false claim suffices. It fails when the mean of
// the e-values against its claims reaches 1 / alpha. If it is true, the probability of this is at
// most alpha. Both hold for any stopping rule.
//
// Where total time is known, it must be on the same side of the limit, or the assertion stays
// undecided. This only removes outcomes, so the error rates still hold. The e-value against the
// assertion is kept from when it was decided, so that those of a suite can be combined.
struct Bound {
  Direction direction;  // theta is above the margin or below it
  double margin;
};

bool keeps(const Bound&, double contrast);
// The bounds of an assertion with <, <=, >=, > or ~=. The parser refuses == between measured
// values.
std::vector<Bound> bounds_of(const Expectation&);

// Distance from log(ratio) to the nearest limit, negative where the limit is smaller. Changes of
// the ratio by up to a fifth of it are negligible.
double way_to_limit(const Expectation&, double ratio);
constexpr double negligible_share = 0.2;

class TimedAssertion {
 public:
  TimedAssertion(const Expectation&, double alpha, double beta);
  // Needs at least one bound; the assertion is true when theta satisfies all of them. Bets are in
  // units of the contrasts' noise: their robust scale, or a scale that is known beforehand.
  TimedAssertion(std::span<const Bound>, double alpha, double beta,
                 std::optional<double> known_scale = {});

  // Adds a round. `in_total` is log(left / right) of the total times of all rounds so far, if there
  // is one. While it is NaN, or on the other side of the limit than a typical round, the assertion
  // is not decided. To fail the assertion, it must lie beyond the limit by more than its standard
  // error explains, one-sided at 1 %; otherwise one more stall of the other side could reverse the
  // outcome.
  void add(double contrast, std::optional<double> in_total = {}, double standard_error = 0);

  // passes, fails or undecided: the first one reached.
  Outcome outcome() const { return outcome_; }
  // The e-value against the assertion: when it was decided, or now.
  double evidence_against_it() const { return evidence_against_; }
  // Returns whether rounds would decide the assertion, but total time contradicts them.
  bool is_held_back() const;

  // Needs at least one contrast. The interval's level is 1 - confidence. Throws Interrupted after a
  // signal.
  TimedEvidence evidence(double confidence) const;

 private:
  struct Claim {
    Claim(Direction, double margin);

    Direction direction;
    double margin;
    EProcess in_favour;
    EProcess against;
    double most_in_favour = 1;
    std::optional<std::size_t> shown_after;  // number of contrasts
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
  std::vector<double> scales_;  // noise scale before each contrast
  RobustScale scale_;
  std::optional<double> in_total_;
  Outcome outcome_ = Outcome::undecided;
  double evidence_for_ = 1;  // when it was decided, or now
  double evidence_against_ = 1;
};

}  // namespace stepgate
