// SPDX-License-Identifier: MIT
#include "judge/sentence_test.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "stats/quantile.h"

namespace stepgate {
namespace {

const Segment& segment_of(const Round& round, int variant) {
  return *std::find_if(round.segments.begin(), round.segments.end(),
                       [&](const Segment& segment) { return segment.variant == variant; });
}

// Whose means are trimmed: without the fastest and the slowest of ten steps of each variant. Now
// and then something holds up the host, or a step catches up with what held up others: whose step
// that is says nothing, and it is a fifth to a half of the variance between rounds of launch-bound
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

bool is_about_step_time(const Expectation& sentence) {
  if (!compares_two_variants(sentence)) return false;
  const Metric metric = only_metric(sentence.left)->metric;
  return metric == Metric::step_ms_mean || is_rate(metric);
}

std::int64_t outliers_allowed(std::int64_t rounds) {
  constexpr std::int64_t one_in = 6;
  const double as_likely = std::exp2(-static_cast<double>(fewest_rounds_of_a_level));
  std::int64_t allowed = 0;
  double exactly = std::exp2(-static_cast<double>(rounds));  // so many, by a fair coin
  double at_most = exactly;
  for (std::int64_t next = 1; next * one_in <= rounds; ++next) {
    exactly *= static_cast<double>(rounds - next + 1) / static_cast<double>(next);
    at_most += exactly;
    if (at_most <= as_likely) allowed = next;
  }
  return allowed;
}

SentenceTest::SentenceTest(const Expectation& sentence, std::span<const PlannedStep> plans,
                           const JudgeSettings& settings, const Contrasts& earlier)
    : sentence_(sentence),
      plans_(plans),
      bounds_(bounds_of(sentence)),
      places_(static_cast<int>(plans.size())) {
  const std::span<const double> known = contrasts_for(sentence, earlier);
  contrasts_.assign(known.begin(), known.end());
  earlier_rounds_ = std::ssize(known);
  if (!compares_two_variants(sentence)) return;
  test_.emplace(bounds_, settings.alpha, settings.beta);
  for (const double contrast : known) {
    if (is_about_step_time(sentence)) {
      test_->add_without_total(contrast);
    } else {
      test_->add(contrast);
    }
  }
}

void SentenceTest::add(const Sources& round) {
  const auto contrast = contrast_of_trimmed_means(round);
  known_ = known_ && contrast && std::isfinite(*contrast);
  if (!known_) return;
  if (!test_) return contrasts_.push_back(*contrast);
  contrasts_.push_back(round.round ? less_places(*contrast, *round.round) : *contrast);
  test_->add(contrasts_.back(), contrast_in_total(round));
}

std::optional<double> SentenceTest::contrast_of_trimmed_means(const Sources& round) const {
  if (!round.round || !round.round->interleaved || !is_about_step_time(sentence_))
    return contrast_of(sentence_, round);
  const Round of_middle = trimmed(*round.round);
  Sources sources = round;
  sources.round = &of_middle;
  return contrast_of(sentence_, sources);
}

double SentenceTest::less_places(double contrast, const Round& round) {
  const auto slot_of = [&](const Side& side) {
    return segment_of(round, static_cast<int>(plan_named(plans_, only_metric(side)->variant))).slot;
  };
  const int left = slot_of(sentence_.left);
  const int right = slot_of(sentence_.right);
  const double rest = contrast - places_.predict(left, right);
  places_.add(contrast, left, right);
  return rest;
}

std::optional<double> SentenceTest::contrast_in_total(const Sources& round) {
  if (!round.round || !is_about_step_time(sentence_)) return std::nullopt;
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
  Sources sources = round;
  sources.round = &total_;
  return contrast_of(sentence_, sources);
}

bool SentenceTest::is_inside(double contrast) const {
  const bool limit_itself_is =
      sentence_.relation != Relation::less && sentence_.relation != Relation::greater;
  return std::all_of(bounds_.begin(), bounds_.end(), [&](const Bound& bound) {
    return keeps(bound, contrast) || (limit_itself_is && contrast == bound.margin);
  });
}

bool SentenceTest::most_are_inside() const {
  const auto inside = std::ranges::count_if(contrasts_, [&](double c) { return is_inside(c); });
  return 2 * inside > std::ssize(contrasts_);
}

std::int64_t SentenceTest::outliers() const {
  const bool usual = most_are_inside();
  return std::ranges::count_if(contrasts_, [&](double c) { return is_inside(c) != usual; });
}

Outcome SentenceTest::outcome() const {
  if (test_) return test_->outcome();
  if (std::ssize(contrasts_) < fewest_rounds_of_a_level) return Outcome::undecided;
  if (outliers() > outliers_allowed(std::ssize(contrasts_))) return Outcome::undecided;
  return most_are_inside() ? Outcome::holds : Outcome::refuted;
}

bool SentenceTest::is_open() const {
  if (!known_) return false;
  if (test_) return test_->outcome() == Outcome::undecided;
  return outcome() == Outcome::undecided && std::ssize(contrasts_) < most_rounds_of_a_level &&
         outliers() <= outliers_allowed(most_rounds_of_a_level);
}

void SentenceTest::describe(double confidence, SentenceVerdict& verdict) const {
  if (contrasts_.empty()) return;
  verdict.outcome = outcome();
  if (test_) {
    verdict.timed = test_->evidence(confidence);
    verdict.timed->earlier_rounds = earlier_rounds_;
    return;
  }
  const auto [least, most] = std::minmax_element(contrasts_.begin(), contrasts_.end());
  verdict.level = {.typical = std::exp(quantile(contrasts_, 0.5)),
                   .range = {.low = std::exp(*least), .high = std::exp(*most)},
                   .contrasts = contrasts_,
                   .earlier_rounds = earlier_rounds_,
                   .outliers = outliers()};
}

}  // namespace stepgate
