// SPDX-License-Identifier: MIT
// The test of one assertion that rounds decide, fed one round at a time. A comparison of two
// variants uses the e-processes of timed_assertion.h. A comparison of high percentiles counts the
// steps beyond them (base/stats/tail_counts.h). All other assertions are levels: they are decided
// by whether their rounds lie inside the limit. judge.h interprets the outcome for a scenario.
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

// A level is decided when all of this number of rounds lie inside the limit, or all outside. For
// independent rounds with the limit at their median, this happens with probability 1/16. Where
// rounds disagree, more are made, up to the second number.
constexpr std::int64_t fewest_rounds_without_randomisation = 5;
constexpr std::int64_t most_rounds_of_a_level = 13;

// The number of rounds of a level that may lie on the other side of the limit, such as one in which
// the host was delayed. It is at most one in six, and so small that with the limit at the median it
// is no more probable than agreement of the fewest rounds: 1 of 9, 2 of 12.
std::int64_t outliers_allowed(std::int64_t rounds);

class AssertionTest {
 public:
  // Continues from earlier rounds. The assertion and the subjects must outlive it.
  AssertionTest(const Expectation&, std::span<const Subject>, const JudgeSettings&,
                const EarlierRounds& earlier);

  // Adds a round of the kind that decides the assertion. After a round with an unknown value,
  // nothing more is added.
  void add(const Sources&);

  Outcome outcome() const;
  // Returns whether more rounds may change the outcome.
  bool is_open() const;
  bool values_are_known() const { return known_; }
  std::int64_t earlier_rounds() const { return earlier_rounds_; }
  // log(left / right) of the added rounds, without the earlier ones; for comparisons, the values
  // that the e-process received.
  std::span<const double> contrasts() const {
    return std::span(contrasts_).subspan(static_cast<std::size_t>(earlier_rounds_));
  }
  // The times of the added rounds, as EarlierRounds::times stores them.
  std::span<const double> times() const { return times_; }

  // Fills in the outcome and the evidence in the verdict. Does nothing before the first round,
  // including earlier rounds.
  void describe(double confidence, AssertionVerdict&) const;

 private:
  // Contrast of step times in an interleaved round, from the means of each variant's steps without
  // the fastest and slowest tenth. An assertion that passes by trimmed means but not in total time
  // (contrast_in_total) stays undecided.
  std::optional<double> contrast_of_trimmed_means(const Sources&) const;
  double less_places(double contrast, const Round&);
  // Adds the round to the total time and returns the contrast of the totals.
  std::optional<double> contrast_in_total(const Sources&);
  // Standard error of the contrast in total time, estimated from the scatter of rounds.
  double error_in_total() const;
  void add_earlier(std::span<const double> contrasts, std::span<const double> times);
  void add_tails(const Round&);
  // Times of the two compared variants in one round.
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
  // Number of rounds inside the limit or outside it, whichever is smaller.
  std::int64_t outliers() const;
  bool most_are_inside() const;

  const Expectation& assertion_;
  std::span<const Subject> subjects_;
  std::vector<Bound> bounds_;
  std::optional<TimedAssertion> test_;  // for a comparison of two variants
  std::optional<TailCounts> tails_;     // for a comparison of high percentiles
  PlaceEffects places_;
  Round total_;                     // has a segment for each of the compared variants
  std::vector<SideSeconds> sides_;  // of every round in total_
  std::vector<double> contrasts_;
  std::vector<double> times_;
  std::vector<double> earlier_times_;
  std::int64_t earlier_rounds_;
  bool known_ = true;
};

// Returns whether both sides of the assertion are times or rates of whole steps, for which a total
// time exists.
bool is_about_step_time(const Expectation&);

}  // namespace stepgate
