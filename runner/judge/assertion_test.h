// SPDX-License-Identifier: MIT
// The test of one sentence that rounds decide, fed one round after the other: a comparison of two
// variants by the e-processes of timed_assertion.h, one of high percentiles by counting the steps
// beyond them (base/stats/tail_counts.h), anything else, a level, by whether its rounds are inside
// its limit. It is left to judge.h to say what the outcome means for a scenario.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/stats/place_effects.h"
#include "base/stats/tail_counts.h"
#include "judge/assertions/timed_assertion.h"
#include "judge/earlier_evidence.h"
#include "judge/judge.h"
#include "judge/verdict/sides.h"
#include "judge/verdict/verdict.h"

namespace stepgate {

// So many rounds that are all inside, or all outside, decide a level: were they independent with
// the limit in their middle, that would happen once in sixteen times. Where they do not agree more
// are made, up to the second number.
constexpr std::int64_t fewest_rounds_without_randomisation = 5;
constexpr std::int64_t most_rounds_of_a_level = 13;

// So many of a level's rounds may lie on the other side and leave it decided, as one does in which
// something held up the host: at most one in six, and so few that with the limit in their middle
// that would be no more likely than that the fewest agree. 1 of 9, 2 of 12.
std::int64_t outliers_allowed(std::int64_t rounds);

class AssertionTest {
 public:
  // Goes on from earlier rounds. Assertion and subjects must outlive it.
  AssertionTest(const Expectation&, std::span<const Subject>, const JudgeSettings&,
                const EarlierRounds& earlier);

  // A round of the kind that decides the assertion. After one in which a value is not known nothing
  // is added any more.
  void add(const Sources&);

  Outcome outcome() const;
  // Whether more rounds may change that.
  bool is_open() const;
  bool values_are_known() const { return known_; }
  std::int64_t earlier_rounds() const { return earlier_rounds_; }
  // log(left / right) of the rounds that were added; of a comparison as they were bet on.
  std::span<const double> contrasts() const {
    return std::span(contrasts_).subspan(static_cast<std::size_t>(earlier_rounds_));
  }
  // EarlierRounds::times keeps these of them.
  std::span<const double> times() const { return times_; }

  // Into the verdict that names the assertion: its outcome, and by what. Nothing before the first
  // round, earlier ones included.
  void describe(double confidence, AssertionVerdict&) const;

 private:
  // The contrast of step times where short segments ran interleaved, by the means of each variant's
  // middle eight of ten steps. An assertion that passes by these and not by all steps stays
  // undecided: contrast_in_total.
  std::optional<double> contrast_of_trimmed_means(const Sources&) const;
  double less_places(double contrast, const Round&);
  // Adds the round to the total time, and compares in that.
  std::optional<double> contrast_in_total(const Sources&);
  // Standard error of that, by how the rounds scatter.
  double error_in_total() const;
  void add_earlier(std::span<const double> contrasts, std::span<const double> times);
  void add_tails(const Round&);
  // Holds how long the two variants that are compared took in one round.
  struct SideSeconds {
    double steps = 0;
    double left = 0;
    double right = 0;
  };
  SideSeconds seconds_of_sides(const Round&) const;
  void describe_tails(double confidence, AssertionVerdict&) const;
  int variant_of(const Side&) const;
  double log_ratio_of_percentiles(double left, double right) const;
  bool is_inside(double contrast) const;
  // The rounds inside, or those outside, whichever are fewer.
  std::int64_t outliers() const;
  bool most_are_inside() const;

  const Expectation& assertion_;
  std::span<const Subject> subjects_;
  std::vector<Bound> bounds_;
  std::optional<TimedAssertion> test_;  // of a comparison
  std::optional<TailCounts> tails_;     // of one of high percentiles
  PlaceEffects places_;
  Round total_;                     // a segment for each of the variants that are compared
  std::vector<SideSeconds> sides_;  // of every round in it
  std::vector<double> contrasts_;
  std::vector<double> times_;
  std::vector<double> earlier_times_;
  std::int64_t earlier_rounds_;
  bool known_ = true;
};

// Whether the sides of the assertion are times, or rates, of whole steps: then there is a total.
bool is_about_step_time(const Expectation&);

}  // namespace stepgate
