// SPDX-License-Identifier: MIT
#include "judge/assertion_test.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/seconds.h"
#include "base/stats/quantile.h"

namespace stepgate {
namespace {

const Segment& segment_of(const Round& round, int variant) {
  return *std::find_if(round.segments.begin(), round.segments.end(),
                       [&](const Segment& segment) { return segment.variant == variant; });
}

// Returns the round without the fastest and the slowest tenth of each variant's steps, for trimmed
// means. Occasionally something delays the host, or a step catches up after a delay. Such steps hit
// variants at random and make up a fifth to a half of the variance between rounds of launch-bound
// steps (judge/recorded/h200_interleaved.csv).
Round trimmed(const Round& round) {
  constexpr std::ptrdiff_t one_in = 10;
  Round typical;
  for (const Segment& segment : round.segments) {
    std::vector<std::chrono::nanoseconds> times = segment.step_times;
    std::sort(times.begin(), times.end());
    const std::ptrdiff_t left_out = std::ssize(times) / one_in;
    Segment kept = segment;
    kept.steps = std::ssize(times) - 2 * left_out;
    kept.elapsed =
        std::accumulate(times.begin() + left_out, times.end() - left_out, kept.elapsed * 0);
    typical.segments.push_back(std::move(kept));
  }
  return typical;
}

}  // namespace

bool is_about_step_time(const Expectation& assertion) {
  if (!compares_two_variants(assertion)) return false;
  const Metric metric = only_metric(assertion.left)->metric;
  return metric == Metric::step_ms_mean || is_rate(metric);
}

std::int64_t outliers_allowed(std::int64_t rounds) {
  constexpr std::int64_t one_in = 6;
  const double as_likely = std::exp2(-static_cast<double>(fewest_rounds_without_randomisation));
  std::int64_t allowed = 0;
  double exactly = std::exp2(-static_cast<double>(rounds));  // binomial probability of no outlier
  double at_most = exactly;
  for (std::int64_t next = 1; next * one_in <= rounds; ++next) {
    exactly *= static_cast<double>(rounds - next + 1) / static_cast<double>(next);
    at_most += exactly;
    if (at_most <= as_likely) allowed = next;
  }
  return allowed;
}

AssertionTest::AssertionTest(const Expectation& assertion, std::span<const Subject> subjects,
                             const JudgeSettings& settings, const EarlierRounds& earlier)
    : assertion_(assertion),
      subjects_(subjects),
      bounds_(bounds_of(assertion)),
      places_(static_cast<int>(subjects.size())) {
  const std::span<const double> known = contrasts_for(assertion, earlier.contrasts);
  contrasts_.assign(known.begin(), known.end());
  earlier_rounds_ = std::ssize(known);
  if (!compares_two_variants(assertion)) return;
  if (compares_high_percentiles(assertion)) {
    tails_.emplace(*percentile_of(only_metric(assertion.left)->metric), limit_of(assertion));
    test_.emplace(bounds_, settings.alpha, settings.beta, 1.0);
  } else {
    test_.emplace(bounds_, settings.alpha, settings.beta);
  }
  add_earlier(known, contrasts_for(assertion, earlier.times));
}

int AssertionTest::variant_of(const Side& side) const {
  return static_cast<int>(subject_named(subjects_, only_metric(side)->variant));
}

double AssertionTest::log_ratio_of_percentiles(double left, double right) const {
  return std::log(left) - std::log(limit_of(assertion_) * right);
}

// Adds earlier rounds with their total times, since both decided the earlier run and its decisions
// stay. Rounds with unknown times decide nothing by themselves.
void AssertionTest::add_earlier(std::span<const double> contrasts, std::span<const double> times) {
  const bool has_total = tails_ || is_about_step_time(assertion_);
  const bool times_are_known = times.size() == 3 * contrasts.size();
  if (times_are_known) earlier_times_.assign(times.begin(), times.end());
  for (std::size_t round = 0; round < contrasts.size(); ++round) {
    std::optional<double> in_total;
    if (has_total) in_total = std::numeric_limits<double>::quiet_NaN();
    if (has_total && times_are_known) {
      const std::span<const double> kept = times.subspan(3 * round, 3);
      if (tails_) {
        in_total = log_ratio_of_percentiles(kept[1], kept[2]);
      } else {
        const auto side = [&](int variant, double seconds) {
          return Segment{.variant = variant,
                         .steps = std::llround(kept[0]),
                         .elapsed = std::chrono::nanoseconds(std::llround(1e9 * seconds))};
        };
        const Round of_sums{.segments = {side(variant_of(assertion_.left), kept[1]),
                                         side(variant_of(assertion_.right), kept[2])}};
        if (const auto total = contrast_in_total({.subjects = subjects_, .round = &of_sums}))
          in_total = total;
      }
    }
    test_->add(contrasts[round], in_total, error_in_total());
  }
}

void AssertionTest::add_tails(const Round& round) {
  const std::vector<double> left = step_seconds_in(round, variant_of(assertion_.left));
  const std::vector<double> right = step_seconds_in(round, variant_of(assertion_.right));
  contrasts_.push_back(tails_->add(left, right));
  const double left_percentile = tails_->left_percentile();
  const double right_percentile = tails_->right_percentile();
  times_.insert(times_.end(),
                {static_cast<double>(left.size()), left_percentile, right_percentile});
  test_->add(contrasts_.back(), log_ratio_of_percentiles(left_percentile, right_percentile));
}

void AssertionTest::add(const Sources& round) {
  const auto contrast = contrast_of_trimmed_means(round);
  known_ = known_ && contrast && std::isfinite(*contrast);
  if (!known_) return;
  if (!test_) return contrasts_.push_back(*contrast);
  if (tails_) return add_tails(*round.round);
  contrasts_.push_back(round.round ? less_places(*contrast, *round.round) : *contrast);
  const auto in_total = contrast_in_total(round);
  if (in_total)
    times_.insert(times_.end(), {sides_.back().steps, sides_.back().left, sides_.back().right});
  test_->add(contrasts_.back(), in_total, error_in_total());
}

std::optional<double> AssertionTest::contrast_of_trimmed_means(const Sources& round) const {
  if (!round.round || !round.round->interleaved || !is_about_step_time(assertion_))
    return contrast_of(assertion_, round);
  const Round of_middle = trimmed(*round.round);
  Sources sources = round;
  sources.round = &of_middle;
  return contrast_of(assertion_, sources);
}

double AssertionTest::less_places(double contrast, const Round& round) {
  const auto slot_of = [&](const Side& side) { return segment_of(round, variant_of(side)).slot; };
  const int left = slot_of(assertion_.left);
  const int right = slot_of(assertion_.right);
  const double rest = contrast - places_.predict(left, right);
  places_.add(contrast, left, right);
  return rest;
}

std::optional<double> AssertionTest::contrast_in_total(const Sources& round) {
  if (!round.round || !is_about_step_time(assertion_)) return std::nullopt;
  for (const Segment& segment : round.round->segments) {
    auto sum = std::find_if(total_.segments.begin(), total_.segments.end(),
                            [&](const Segment& one) { return one.variant == segment.variant; });
    if (sum == total_.segments.end()) {
      sum = total_.segments.insert(sum, Segment());
      sum->variant = segment.variant;
    }
    sum->steps += segment.steps;
    sum->elapsed += segment.elapsed;
  }
  sides_.push_back(seconds_of_sides(*round.round));
  Sources sources = round;
  sources.round = &total_;
  return contrast_of(assertion_, sources);
}

// Estimates the standard error of a ratio of two sums over rounds (Cochran, Sampling Techniques,
// 1977, 6.4).
double AssertionTest::error_in_total() const {
  const double rounds = static_cast<double>(sides_.size());
  if (rounds < 2) return 0;
  SideSeconds all;
  for (const SideSeconds& round : sides_) {
    all.left += round.left;
    all.right += round.right;
  }
  double squares = 0;
  for (const SideSeconds& round : sides_)
    squares += std::pow(round.left / all.left - round.right / all.right, 2);
  return std::sqrt(squares * rounds / (rounds - 1));
}

AssertionTest::SideSeconds AssertionTest::seconds_of_sides(const Round& round) const {
  SideSeconds sides;
  const int left = variant_of(assertion_.left);
  const int right = variant_of(assertion_.right);
  for (const Segment& segment : round.segments) {
    if (segment.variant == left) {
      sides.steps += static_cast<double>(segment.steps);
      sides.left += seconds(segment.elapsed);
    }
    if (segment.variant == right) sides.right += seconds(segment.elapsed);
  }
  return sides;
}

bool AssertionTest::is_inside(double contrast) const {
  const bool limit_itself_is =
      assertion_.relation != Relation::less && assertion_.relation != Relation::greater;
  return std::all_of(bounds_.begin(), bounds_.end(), [&](const Bound& bound) {
    return keeps(bound, contrast) || (limit_itself_is && contrast == bound.margin);
  });
}

bool AssertionTest::most_are_inside() const {
  const auto inside = std::ranges::count_if(contrasts_, [&](double c) { return is_inside(c); });
  return 2 * inside > std::ssize(contrasts_);
}

std::int64_t AssertionTest::outliers() const {
  const bool usual = most_are_inside();
  return std::ranges::count_if(contrasts_, [&](double c) { return is_inside(c) != usual; });
}

Outcome AssertionTest::outcome() const {
  if (test_) return test_->outcome();
  if (std::ssize(contrasts_) < fewest_rounds_without_randomisation) return Outcome::undecided;
  if (outliers() > outliers_allowed(std::ssize(contrasts_))) return Outcome::undecided;
  return most_are_inside() ? Outcome::passes : Outcome::fails;
}

bool AssertionTest::is_open() const {
  if (!known_) return false;
  if (test_) return test_->outcome() == Outcome::undecided;
  return outcome() == Outcome::undecided && std::ssize(contrasts_) < most_rounds_of_a_level &&
         outliers() <= outliers_allowed(most_rounds_of_a_level);
}

// Describes a comparison of high percentiles. Its contrasts are counts, so the ratio and the sides
// are taken from the percentiles.
void AssertionTest::describe_tails(double confidence, AssertionVerdict& verdict) const {
  const bool has_own_rounds = std::ssize(contrasts_) > earlier_rounds_;
  const std::span<const double> last = has_own_rounds ? std::span(times_) : earlier_times_;
  if (last.size() < 3) return;
  const double left = last[last.size() - 2];
  const double right = last.back();
  TimedEvidence& evidence = *verdict.timed;
  evidence.ratio = std::exp(log_ratio_of_percentiles(left, right));
  evidence.interval.reset();
  evidence.shown = {};
  evidence.smallest_seen.reset();
  evidence.total_ratio.reset();
  verdict.left = left * factor_of_single_metric(assertion_.left).value_or(1);
  verdict.right = right * factor_of_single_metric(assertion_.right).value_or(1);
  if (!has_own_rounds) return;
  const TailCounts::Interval factors = tails_->interval(1 - confidence);
  const double limit = limit_of(assertion_);
  if (factors.low && factors.high)
    evidence.interval = {.low = *factors.low / limit, .high = *factors.high / limit};
}

void AssertionTest::describe(double confidence, AssertionVerdict& verdict) const {
  if (contrasts_.empty()) return;
  verdict.outcome = outcome();
  if (test_) {
    verdict.timed = test_->evidence(confidence);
    verdict.timed->earlier_rounds = earlier_rounds_;
    verdict.timed->earlier_times = earlier_times_;
    if (tails_) describe_tails(confidence, verdict);
    return;
  }
  const auto [least, most] = std::minmax_element(contrasts_.begin(), contrasts_.end());
  verdict.not_randomised = {.typical = std::exp(quantile(contrasts_, 0.5)),
                            .range = {.low = std::exp(*least), .high = std::exp(*most)},
                            .contrasts = contrasts_,
                            .earlier_rounds = earlier_rounds_,
                            .outliers = outliers()};
}

}  // namespace stepgate
