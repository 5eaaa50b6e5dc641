// SPDX-License-Identifier: MIT
#include "judge/assertions/timed_assertion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/interruption.h"
#include "base/require.h"

namespace stepgate {
namespace {

// The 99 % quantile of the normal distribution.
constexpr double errors_to_refute = 2.326;

Direction opposite_of(Direction direction) {
  return direction == Direction::above ? Direction::below : Direction::above;
}

// Expected number of rounds until the e-value reaches `wanted`.
std::optional<double> rounds_until(double wanted, const EProcess& process, double signal_to_noise) {
  const double level = std::clamp(process.value() / wanted, 1e-9, 0.99);
  return expected_rounds(signal_to_noise, level);
}

}  // namespace

bool keeps(const Bound& bound, double contrast) {
  return bound.direction == Direction::above ? contrast > bound.margin : contrast < bound.margin;
}

std::vector<Bound> bounds_of(const Expectation& assertion) {
  const Relation relation = assertion.relation;
  require(relation != Relation::equal || names_a_bound(assertion),
          "the parser refuses == between timed metrics");
  const double within = assertion.within.value_or(0);
  std::vector<Bound> bounds;
  if (relation != Relation::at_most && relation != Relation::less)
    bounds.push_back({Direction::above, std::log(std::max(1 - within, 1e-9))});
  if (relation != Relation::at_least && relation != Relation::greater)
    bounds.push_back({Direction::below, std::log1p(within)});
  return bounds;
}

double way_to_limit(const Expectation& assertion, double ratio) {
  double nearest = std::numeric_limits<double>::max();
  for (const Bound& bound : bounds_of(assertion)) {
    const double way = bound.margin - std::log(ratio);
    if (std::abs(way) < std::abs(nearest)) nearest = way;
  }
  return nearest;
}

TimedAssertion::Claim::Claim(Direction claimed, double at)
    : direction(claimed), margin(at), in_favour(claimed, at), against(opposite_of(claimed), at) {}

TimedAssertion::TimedAssertion(const Expectation& assertion, double alpha, double beta)
    : TimedAssertion(bounds_of(assertion), alpha, beta) {}

TimedAssertion::TimedAssertion(std::span<const Bound> bounds, double alpha, double beta,
                               std::optional<double> known_scale)
    : alpha_(alpha), beta_(beta), known_scale_(known_scale) {
  require(!bounds.empty(), "an assertion claims something");
  for (const Bound& bound : bounds) claims_.emplace_back(bound.direction, bound.margin);
}

void TimedAssertion::add(double contrast, std::optional<double> in_total, double standard_error) {
  const double scale = this->scale();
  scale_.add(contrast);
  contrasts_.push_back(contrast);
  scales_.push_back(scale);
  in_total_ = in_total;
  if (outcome_ != Outcome::undecided) return;
  const bool total_is_unknown = in_total && std::isnan(*in_total);
  for (Claim& claim : claims_) {
    claim.in_favour.bet(contrast, scale);
    claim.against.bet(contrast, scale);
    claim.most_in_favour = std::max(claim.most_in_favour, claim.in_favour.value());
    if (claim.most_in_favour >= wanted_for() && !claim.shown_after)
      claim.shown_after = contrasts_.size();
  }
  evidence_for_ = evidence_for();
  evidence_against_ = evidence_against();
  if (total_is_unknown) {
    in_total_.reset();
  } else if (evidence_against_ >= 1 / alpha_) {
    if (!in_total || is_beyond_a_claim(*in_total, errors_to_refute * standard_error))
      outcome_ = Outcome::fails;
  } else if (evidence_for_ >= 1 / beta_ && (!in_total || all_claims_keep(*in_total))) {
    outcome_ = Outcome::passes;
  }
}

bool TimedAssertion::is_held_back() const {
  return in_total_ && outcome_ == Outcome::undecided &&
         (evidence_for_ >= wanted_for() || evidence_against_ >= 1 / alpha_);
}

double TimedAssertion::evidence_for() const {
  double least = std::numeric_limits<double>::max();
  for (const Claim& claim : claims_) least = std::min(least, claim.most_in_favour);
  return least;
}

double TimedAssertion::evidence_against() const {
  double sum = 0;
  for (const Claim& claim : claims_)
    sum += claim.against.value() / static_cast<double>(claims_.size());
  return sum;
}

bool TimedAssertion::all_claims_keep(double contrast) const {
  return std::all_of(claims_.begin(), claims_.end(), [&](const Claim& claim) {
    return keeps({.direction = claim.direction, .margin = claim.margin}, contrast);
  });
}

bool TimedAssertion::is_beyond_a_claim(double contrast, double slack) const {
  return std::any_of(claims_.begin(), claims_.end(), [&](const Claim& claim) {
    const double side = claim.direction == Direction::above ? 1 : -1;
    return !keeps({.direction = claim.direction, .margin = claim.margin}, contrast + side * slack);
  });
}

// Extrapolates from the current centre. If the assertion is true there, the slowest of its claims
// decides it; if it is false, the first of the false claims does.
std::optional<double> TimedAssertion::rounds_missing(double centre) const {
  if (outcome_ != Outcome::undecided) return std::nullopt;
  std::optional<double> until_holds = 0;
  std::optional<double> until_failed;
  for (const Claim& claim : claims_) {
    const double side = claim.direction == Direction::above ? 1 : -1;
    const double signal = side * (centre - claim.margin) / scale();
    if (signal >= 0) {
      const auto rounds = rounds_until(wanted_for(), claim.in_favour, signal);
      until_holds =
          until_holds && rounds ? std::optional(std::max(*until_holds, *rounds)) : std::nullopt;
    } else {
      until_holds.reset();
      const auto rounds = rounds_until(wanted_against(), claim.against, -signal);
      if (rounds) until_failed = std::min(until_failed.value_or(*rounds), *rounds);
    }
  }
  return until_failed ? until_failed : until_holds;
}

// Returns the confidence sequence over the first rounds. This takes a while for many rounds.
ConfidenceSequence TimedAssertion::sequence(std::size_t rounds, double level) const {
  throw_if_interrupted();
  return confidence_sequence(std::span(contrasts_).first(rounds), std::span(scales_).first(rounds),
                             level);
}

Bounds TimedAssertion::shown() const {
  Bounds bounds{.level = 1 - beta_};
  if (outcome_ != Outcome::passes) return bounds;
  for (const Claim& claim : claims_) {
    // The sequence divides its level between two sides, and this claim needs only one of them, at
    // beta.
    const ConfidenceSequence at = sequence(claim.shown_after.value(), 2 * beta_);
    if (claim.direction == Direction::below && at.high) bounds.high = std::exp(*at.high);
    if (claim.direction == Direction::above && at.low) bounds.low = std::exp(*at.low);
  }
  return bounds;
}

TimedEvidence TimedAssertion::evidence(double confidence) const {
  require(!contrasts_.empty(), "evidence needs a round");
  const ConfidenceSequence interval = sequence(contrasts_.size(), 1 - confidence);
  // One-sided sequence at the stricter of the two levels.
  const ConfidenceSequence strict = sequence(contrasts_.size(), 2 * std::min(alpha_, beta_));
  TimedEvidence evidence;
  evidence.ratio = std::exp(interval.centre);
  if (interval.low && interval.high) {
    evidence.interval = {.low = std::exp(*interval.low), .high = std::exp(*interval.high)};
  }
  evidence.shown = shown();
  evidence.evidence_for = evidence_for_;
  evidence.evidence_against = evidence_against_;
  if (in_total_) evidence.total_ratio = std::exp(*in_total_);
  evidence.held_back_by_total = is_held_back();
  if (strict.low && strict.high) {
    evidence.smallest_seen =
        std::expm1(std::max(strict.centre - *strict.low, *strict.high - strict.centre));
  }
  evidence.rounds_missing = rounds_missing(interval.centre);
  evidence.contrasts = contrasts_;
  return evidence;
}

}  // namespace stepgate
