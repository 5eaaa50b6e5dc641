// SPDX-License-Identifier: MIT
#include "history/certificate/certification.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "stats/moments.h"
#include "stats/quantile.h"
#include "support/seconds.h"
#include "support/text/diagnostic.h"

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
    inject(pair[1], {.kind = *trial.kind});
  } else if (trial.share != 0) {
    inject(pair[0], {.kind = site.kind, .duration = share_of_a_step(-trial.share)});
    inject(pair[1], {.kind = site.kind, .duration = share_of_a_step(trial.share)});
  }
  return pair;
}

Expectation no_slower_than(double margin) {
  Expectation sentence;
  sentence.name = "no_slower";
  sentence.text = fmt::format("'b' takes at most {:g} times as long as 'a'", 1 + margin);
  sentence.left = {{MetricOf{"b", Metric::step_ms_mean}}};
  sentence.relation = Relation::at_most;
  sentence.right = {{1 + margin, MetricOf{"a", Metric::step_ms_mean}}};
  return sentence;
}

template <class Value>
std::vector<double> values_of(std::span<const GateResult> gates, Value&& value) {
  std::vector<double> values;
  for (const GateResult& gate : gates) values.push_back(value(gate));
  return values;
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

const Trial& trial_named(const std::string& name) {
  for (const Trial& trial : certification_trials()) {
    if (trial.name == name) return trial;
  }
  throw RequestError("there is no trial '" + name + "'", "`stepgate certify` names them all");
}

InjectionKind injection_site_named(const std::string& name) {
  for (const InjectionKind kind : {InjectionKind::device_spin, InjectionKind::host_delay}) {
    if (name_of(kind) == name) return kind;
  }
  throw RequestError("no share of a step is injected at '" + name + "'",
                     "say device_spin or host_delay");
}

TrialGate trial_gate(const Scenario& scenario, const StepPlan& plan, const Trial& trial,
                     const InjectionSite& site, double margin) {
  TrialGate gate;
  gate.plans = trial_pair(plan, trial, site);
  gate.scenario.name = scenario.name;
  gate.scenario.file = scenario.file;
  gate.scenario.fingerprint = scenario.fingerprint;
  gate.scenario.measure = scenario.measure;
  gate.scenario.expect = {no_slower_than(margin)};
  const auto variant = std::find_if(scenario.variants.begin(), scenario.variants.end(),
                                    [&](const Variant& one) { return one.name == plan.variant; });
  for (const StepPlan& side : gate.plans) {
    gate.scenario.variants.push_back(*variant);
    gate.scenario.variants.back().name = side.variant;
  }
  return gate;
}

GateResult gate_result(const Verdict& verdict, const Measurement& measurement, double margin) {
  if (verdict.broken) throw DeviceError(*verdict.broken);
  const SentenceVerdict& sentence = verdict.sentences.front();
  if (!sentence.timed || measurement.rounds.size() < 2)
    throw DeviceError("nothing was measured: " + sentence.reason);
  // As many of every gate: gates end sooner where their rounds happen to agree, and all rounds of
  // those would tell of chance and not of processes.
  const std::span all(sentence.timed->contrasts);
  const Moments contrasts = moments_of(all.first(std::min(all.size(), rounds_of_an_estimate)));
  const auto rounds = static_cast<double>(measurement.rounds.size());
  const double gpu_seconds =
      seconds(measurement.device_time - measurement.device_time_before_rounds);
  const double wall_seconds = seconds(measurement.wall_time - measurement.wall_time_before_rounds);
  return {
      .outcome = sentence.outcome,
      .rounds = std::ssize(measurement.rounds),
      .gpu_seconds = gpu_seconds,
      .round_seconds = std::max(gpu_seconds, wall_seconds) / rounds,
      .estimate = contrasts.mean + std::log1p(margin),
      .standard_error = std::sqrt(contrasts.variance / static_cast<double>(contrasts.count - 1)),
      .seen = seen_slowdown(measurement),
      .site = injection_site_of(measurement)};
}

TrialResult result_of(const Trial& trial, std::span<const GateResult> gates) {
  constexpr double error = 0.05;  // of each bound
  TrialResult result;
  result.name = trial.name;
  result.injected = trial.share;
  result.gates = std::ssize(gates);
  std::vector<double> seen;
  for (const GateResult& gate : gates) {
    result.refuted += gate.outcome == Outcome::refuted;
    result.held += gate.outcome == Outcome::holds;
    if (gate.seen) seen.push_back(*gate.seen);
  }
  if (!seen.empty()) result.seen = quantile(std::move(seen), 0.5);
  result.refuted_rate = clopper_pearson(result.refuted, result.gates, error);
  const auto mean = [&](auto&& value) { return moments_of(values_of(gates, value)).mean; };
  const Moments estimates =
      moments_of(values_of(gates, [](const GateResult& gate) { return gate.estimate; }));
  const auto count = static_cast<double>(gates.size());
  result.estimate = estimates.mean;
  if (gates.size() > 1) result.spread = std::sqrt(estimates.variance * count / (count - 1));
  result.spread_by_rounds = std::sqrt(
      mean([](const GateResult& gate) { return gate.standard_error * gate.standard_error; }));
  result.rounds_mean =
      mean([](const GateResult& gate) { return static_cast<double>(gate.rounds); });
  result.gpu_seconds_mean = mean([](const GateResult& gate) { return gate.gpu_seconds; });
  return result;
}

InjectionSite injection_site_of(std::span<const GateResult> gates) {
  const auto on_the_host = std::count_if(gates.begin(), gates.end(), [](const GateResult& gate) {
    return gate.site.kind == InjectionKind::host_delay;
  });
  const double step = quantile(values_of(gates,
                                         [](const GateResult& gate) {
                                           return static_cast<double>(gate.site.step_time.count());
                                         }),
                               0.5);
  return {.kind = 2 * on_the_host > std::ssize(gates) ? InjectionKind::host_delay
                                                      : InjectionKind::device_spin,
          .step_time = std::chrono::nanoseconds(static_cast<std::int64_t>(step))};
}

double round_seconds_mean(std::span<const GateResult> gates) {
  return moments_of(values_of(gates, [](const GateResult& gate) { return gate.round_seconds; }))
      .mean;
}

}  // namespace stepgate
