// SPDX-License-Identifier: MIT
#include "judge/certification.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "stats/quantile.h"
#include "support/seconds.h"

namespace stepgate {
namespace {

// log(b / a) of a round by the stamps of single steps; nothing where the device takes none.
std::optional<double> stamped_contrast(const Round& round) {
  std::array<double, 2> sums{};
  std::array<double, 2> counts{};
  for (const Segment& segment : round.segments) {
    for (const auto time : segment.step_times) {
      sums.at(static_cast<std::size_t>(segment.variant)) += seconds(time);
      counts.at(static_cast<std::size_t>(segment.variant)) += 1;
    }
  }
  if (sums[0] <= 0 || sums[1] <= 0) return std::nullopt;
  return std::log(sums[1] / counts[1]) - std::log(sums[0] / counts[0]);
}

std::optional<double> seen_slowdown(const Measurement& measurement) {
  std::vector<double> contrasts;
  for (const Round& round : measurement.rounds) {
    if (const auto contrast = stamped_contrast(round)) contrasts.push_back(*contrast);
  }
  if (contrasts.empty()) return std::nullopt;
  return std::expm1(quantile(std::move(contrasts), 0.5));
}

}  // namespace

std::span<const Trial> certification_trials() {
  static const std::array trials{
      Trial{std::string(identical_trial), 0, {}},
      Trial{"0.25 % slower", 0.0025, {}},
      Trial{"0.5 % slower", 0.005, {}},
      Trial{"1 % slower", 0.01, {}},
      Trial{"2 % slower", 0.02, {}},
      Trial{"5 % slower", 0.05, {}},
      Trial{"1 % faster", -0.01, {}},
      Trial{"5 % faster", -0.05, {}},
      Trial{"one more wait", 0, InjectionKind::extra_wait},
      Trial{"one more cudaMalloc", 0, InjectionKind::extra_allocation},
      Trial{"an eighth copied again, pageable", 0, InjectionKind::extra_copy},
  };
  return trials;
}

Expectation no_slower_than(double margin) {
  Expectation sentence;
  sentence.name = "no_slower";
  sentence.left = {{MetricOf{"b", Metric::step_ms_mean}}};
  sentence.relation = Relation::at_most;
  sentence.right = {{1 + margin, MetricOf{"a", Metric::step_ms_mean}}};
  return sentence;
}

InjectionSite injection_site_of(const Measurement& measurement) {
  constexpr double hardly_waits = 0.9;
  std::chrono::nanoseconds busy{0};
  std::chrono::nanoseconds elapsed{0};
  std::int64_t steps = 0;
  for (const Round& round : measurement.rounds) {
    for (const Segment& segment : round.segments) {
      busy += segment.host_busy.value_or(std::chrono::nanoseconds(0));
      elapsed += segment.elapsed;
      steps += segment.steps;
    }
  }
  return {.kind = seconds(busy) > hardly_waits * seconds(elapsed) ? InjectionKind::host_delay
                                                                  : InjectionKind::device_spin,
          .step_time = elapsed / std::max<std::int64_t>(steps, 1)};
}

std::vector<StepPlan> trial_pair(const StepPlan& plan, const Trial& trial,
                                 const InjectionSite& site) {
  std::vector<StepPlan> pair{plan, plan};
  pair[0].variant = "a";
  pair[1].variant = "b";
  const auto share_of_a_step = [&](double share) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(
        std::max(share, 0.0) * static_cast<double>(site.step_time.count())));
  };
  if (trial.kind) {
    inject(pair[1], *trial.kind);
  } else if (trial.share != 0) {
    inject(pair[0], site.kind, share_of_a_step(-trial.share));
    inject(pair[1], site.kind, share_of_a_step(trial.share));
  }
  return pair;
}

std::int64_t rounds_within(double limit, const Measurement& measurement) {
  return std::max(measurement.expected.fewest_rounds,
                  static_cast<std::int64_t>(limit / seconds(measurement.expected.round)));
}

TrialResult result_of(const Trial& trial, const Measurement& measurement,
                      const GateSeries& series) {
  TrialResult result;
  result.name = trial.name;
  result.injected = trial.share;
  result.seen = seen_slowdown(measurement);
  double rounds = 0;
  for (const GateResult& gate : series.results()) {
    ++result.gates;
    result.refuted += gate.outcome == Outcome::refuted;
    result.held += gate.outcome == Outcome::holds;
    rounds += static_cast<double>(gate.rounds);
  }
  if (result.gates == 0) return result;
  result.rounds_mean = rounds / static_cast<double>(result.gates);
  const double gpu_seconds =
      seconds(measurement.device_time - measurement.device_time_before_rounds);
  result.gpu_seconds_mean =
      result.rounds_mean * gpu_seconds / static_cast<double>(measurement.rounds.size());
  return result;
}

double round_seconds_of(const Measurement& measurement) {
  const auto rounds = static_cast<double>(measurement.rounds.size());
  if (rounds == 0) return 0;
  return std::max(seconds(measurement.device_time - measurement.device_time_before_rounds),
                  seconds(measurement.wall_time - measurement.wall_time_before_rounds)) /
         rounds;
}

}  // namespace stepgate
