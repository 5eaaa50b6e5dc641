// SPDX-License-Identifier: MIT
#include "measure/rounds/carry_over.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/seconds.h"
#include "base/stats/moments.h"
#include "base/stats/rank_tests.h"

namespace stepgate {
namespace {

constexpr std::size_t fewest_rounds_to_compare = 3;

double standard_error_squared(const Moments& moments) {
  return moments.variance / static_cast<double>(moments.count - 1);
}

using InRound = std::optional<double> (*)(const Round&, int variant);

Moments over_rounds(std::span<const Round> rounds, int variant, InRound in_round) {
  std::vector<double> all;
  for (const Round& round : rounds) {
    if (const auto one = in_round(round, variant)) all.push_back(*one);
  }
  return all.size() < fewest_rounds_to_compare ? Moments{} : moments_of(all);
}

std::optional<CarryOver> between(std::span<const Round> rounds, int left, int right,
                                 InRound in_round) {
  const Moments of_left = over_rounds(rounds, left, in_round);
  const Moments of_right = over_rounds(rounds, right, in_round);
  if (of_left.count == 0 || of_right.count == 0) return std::nullopt;
  return CarryOver{.size = of_left.mean - of_right.mean,
                   .standard_error = std::sqrt(standard_error_squared(of_left) +
                                               standard_error_squared(of_right)),
                   .rounds = std::min(of_left.count, of_right.count)};
}

}  // namespace

std::optional<double> carry_over_in(const Round& round, int variant) {
  struct Total {
    std::int64_t steps = 0;
    double seconds = 0;
    double step_seconds() const { return std::max(seconds, 1e-12) / static_cast<double>(steps); }
  };
  Total own;
  Total all;
  for (const Segment& segment : round.segments) {
    if (segment.variant != variant) continue;
    own.steps += segment.own_steps;
    own.seconds += seconds(segment.own_elapsed);
    all.steps += segment.steps;
    all.seconds += seconds(segment.elapsed);
  }
  if (own.steps == 0 || own.steps == all.steps) return std::nullopt;
  return std::log(own.step_seconds() / all.step_seconds());
}

std::optional<double> hidden_in(const Round& round, int variant) {
  double host = 0;
  double device = 0;
  for (const Segment& segment : round.segments) {
    if (segment.variant != variant) continue;
    if (!segment.host_busy) return std::nullopt;
    host += seconds(*segment.host_busy);
    device += seconds(segment.elapsed);
  }
  if (host <= 0 || device <= 0) return std::nullopt;
  return std::max(std::log(host / device), 0.0);
}

std::optional<CarryOver> carry_over_between(std::span<const Round> rounds, int left, int right) {
  return between(rounds, left, right, carry_over_in);
}

std::optional<CarryOver> run_ahead_between(std::span<const Round> rounds, int left, int right) {
  return between(rounds, left, right, hidden_in);
}

bool is_shown(const CarryOver& carried) {
  return std::abs(carried.size) >
         carried.standard_error * t_beyond(carried.rounds - 1, doubt_level);
}

}  // namespace stepgate
