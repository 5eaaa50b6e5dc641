// SPDX-License-Identifier: MIT
#include "compare/gate/self_test.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/require.h"
#include "base/seconds.h"
#include "base/stats/moments.h"
#include "base/stats/prediction_interval.h"
#include "base/stats/quantile.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

constexpr double half = 0.5;
constexpr double largest_share = 0.05;  // largest injected share
constexpr double error_of_a_bound = 0.05;
// Even an empty kernel takes some microseconds, so the time of a shorter spin is unknown.
constexpr std::chrono::nanoseconds shortest_spin = std::chrono::microseconds(10);

template <class Value>
std::vector<double> values_of(std::span<const TriedGate> gates, Value&& value) {
  std::vector<double> values;
  for (const TriedGate& gate : gates) values.push_back(value(gate));
  return values;
}

const TrialResult* first_of(const SelfTest& test, auto&& is_wanted) {
  const auto found = std::ranges::find_if(test.trials, is_wanted);
  return found == test.trials.end() ? nullptr : &*found;
}

bool is_found(const TrialResult& slower) {
  return slower.slower_rate.low > half;
}

// Runs the trials one after the other.
class SelfTester {
 public:
  explicit SelfTester(const SelfTestRequest& request)
      : request_(request),
        test_{.workload = request.workload,
              .margin = request.settings.margin,
              .alpha = request.settings.alpha,
              .beta = request.settings.beta} {}

  SelfTest run() {
    if (!can_show_power(test_.margin)) return std::move(test_);
    for (const Trial& trial : self_test_trials()) {
      const bool identical = trial.name == identical_trial;
      const auto gates = gates_of(trial, identical ? request_.gates : request_.trial_gates);
      if (!gates) break;
      test_.trials.push_back(result_of(trial, *gates));
      if (request_.ended) request_.ended(test_.trials.back());
      if (identical && !find_site()) break;
    }
    return std::move(test_);
  }

 private:
  std::optional<std::vector<TriedGate>> gates_of(const Trial& trial, std::int64_t count) {
    std::vector<TriedGate> gates;
    while (std::ssize(gates) < count) {
      if (request_.progress) request_.progress(trial.name, std::ssize(gates) + 1, count);
      const auto gate = request_.run(injected_by(trial, test_.site));
      test_.stopped = !gate;
      if (!gate) return std::nullopt;
      gates.push_back(*gate);
    }
    return gates;
  }

  // Chooses the injection site. Returns false if the user interrupts it.
  bool find_site() {
    test_.site.step_time =
        std::chrono::nanoseconds(std::llround(1e9 * test_.trials.front().step_seconds));
    std::array<double, 2> longer{};
    constexpr std::array sites{InjectionKind::device_spin, InjectionKind::host_delay};
    for (std::size_t site = 0; site < sites.size(); ++site) {
      test_.site.kind = sites[site];
      const auto gates = gates_of({.name = "where", .share = largest_share}, 1);
      if (!gates) return false;
      longer[site] = gates->front().estimate;
    }
    test_.site.kind = longer[1] > longer[0] ? sites[1] : sites[0];
    return true;
  }

  const SelfTestRequest& request_;
  SelfTest test_;
};

}  // namespace

std::span<const Trial> self_test_trials() {
  static const std::array trials{
      Trial{std::string(identical_trial), 0.0},
      Trial{"0.25 % slower", 0.0025},
      Trial{"0.5 % slower", 0.005},
      Trial{"1 % slower", 0.01},
      Trial{"2 % slower", 0.02},
      Trial{"5 % slower", largest_share},
      Trial{"1 % faster", -0.01},
      Trial{"5 % faster", -largest_share},
      Trial{"one more wait", {}, InjectionKind::extra_wait},
      Trial{"one more cudaMalloc", {}, InjectionKind::extra_allocation},
      Trial{"an eighth copied again, pageable", {}, InjectionKind::extra_copy},
  };
  return trials;
}

InjectedSides injected_by(const Trial& trial, const InjectionSite& site) {
  InjectedSides sides;
  if (trial.kind) sides.head = {{.kind = *trial.kind}};
  if (trial.share.value_or(0) == 0) return sides;
  const std::chrono::nanoseconds of_both =
      site.kind == InjectionKind::device_spin ? shortest_spin : std::chrono::nanoseconds(0);
  const auto step = static_cast<double>((site.step_time + of_both).count());
  const auto share_of_a_step = [&](double share) {
    return Injection{
        .kind = site.kind,
        .duration = of_both + std::chrono::nanoseconds(std::llround(std::max(share, 0.0) * step))};
  };
  sides.base = {share_of_a_step(-*trial.share)};
  sides.head = {share_of_a_step(*trial.share)};
  return sides;
}

void set_estimate(TriedGate& gate, std::span<const double> log_ratios) {
  require(log_ratios.size() > 1, "one pair has no standard error");
  const Moments first =
      moments_of(log_ratios.first(std::min(log_ratios.size(), pairs_of_an_estimate)));
  gate.estimate = first.mean;
  gate.standard_error = std::sqrt(first.variance / static_cast<double>(first.count - 1));
}

TriedGate tried_gate(const ComparisonVerdict& verdict, const ComparisonMeasurement& measured) {
  const WorkloadVerdict& workload = verdict.workloads.front();
  if (workload.pairs < 2)
    throw WorkerError("a gate ended before it had two pairs: " + workload.reason);
  TriedGate gate{.outcome = workload.outcome,
                 .pairs = workload.pairs,
                 .seconds = seconds(measured.wall_time),
                 .step_seconds = workload.base_step_seconds.value_or(0)};
  set_estimate(gate, pairs_found_in(measured).contrasts.at(workload.name));
  return gate;
}

TrialResult result_of(const Trial& trial, std::span<const TriedGate> gates) {
  TrialResult result{.name = trial.name, .injected = trial.share, .gates = std::ssize(gates)};
  result.slower = std::ranges::count(gates, Outcome::fails, &TriedGate::outcome);
  result.not_slower = std::ranges::count(gates, Outcome::passes, &TriedGate::outcome);
  result.slower_rate = clopper_pearson(result.slower, result.gates, error_of_a_bound);
  result.not_slower_rate = clopper_pearson(result.not_slower, result.gates, error_of_a_bound);
  const auto mean = [&](auto&& value) { return moments_of(values_of(gates, value)).mean; };
  const Moments estimates =
      moments_of(values_of(gates, [](const TriedGate& gate) { return gate.estimate; }));
  const auto count = static_cast<double>(gates.size());
  result.estimate = estimates.mean;
  if (gates.size() > 1) result.spread = std::sqrt(estimates.variance * count / (count - 1));
  result.spread_by_pairs = std::sqrt(
      mean([](const TriedGate& gate) { return gate.standard_error * gate.standard_error; }));
  result.pairs_mean = mean([](const TriedGate& gate) { return static_cast<double>(gate.pairs); });
  result.seconds_mean = mean([](const TriedGate& gate) { return gate.seconds; });
  result.step_seconds =
      quantile(values_of(gates, [](const TriedGate& gate) { return gate.step_seconds; }), half);
  return result;
}

std::optional<double> between_gates(const TrialResult& trial) {
  if (!trial.spread) return std::nullopt;
  const double spread = *trial.spread;
  const double pairs = trial.spread_by_pairs;
  return std::sqrt(std::max(spread * spread - pairs * pairs, 0.0));
}

const TrialResult* identical_programs(const SelfTest& test) {
  return first_of(test, [](const TrialResult& trial) { return trial.name == identical_trial; });
}

const TrialResult* blocked_too_often(const SelfTest& test) {
  return first_of(test, [&](const TrialResult& trial) {
    return trial.injected && *trial.injected <= 0 && trial.slower_rate.low > test.alpha;
  });
}

const TrialResult* passed_too_often(const SelfTest& test) {
  return first_of(test, [&](const TrialResult& trial) {
    return trial.injected && *trial.injected >= 2 * test.margin && *trial.injected > test.margin &&
           trial.not_slower_rate.low > test.beta;
  });
}

std::optional<double> found_from(const SelfTest& test) {
  std::vector<const TrialResult*> above;
  for (const TrialResult& trial : test.trials) {
    if (trial.injected && *trial.injected > test.margin) above.push_back(&trial);
  }
  std::ranges::sort(above, std::ranges::greater{}, &TrialResult::injected);
  std::optional<double> smallest;
  for (const TrialResult* trial : above) {
    if (!is_found(*trial)) break;
    smallest = trial->injected;
  }
  return smallest;
}

bool has_no_power(const TrialResult& slower) {
  return slower.slower_rate.high < half;
}

bool can_show_power(double margin) {
  return std::ranges::any_of(self_test_trials(),
                             [&](const Trial& trial) { return trial.share.value_or(0) > margin; });
}

Outcome outcome_of(const SelfTest& test) {
  if (blocked_too_often(test) != nullptr || passed_too_often(test) != nullptr)
    return Outcome::fails;
  const TrialResult* identical = identical_programs(test);
  const bool enough = identical != nullptr && identical->gates >= fewest_identical_gates;
  const bool all = test.trials.size() == self_test_trials().size();
  return enough && all && found_from(test) ? Outcome::passes : Outcome::undecided;
}

std::optional<double> smallest_margin(const SelfTest& test) {
  const TrialResult* identical = identical_programs(test);
  const auto deviation = identical == nullptr ? std::nullopt : between_gates(*identical);
  if (!deviation) return std::nullopt;
  const auto gates = static_cast<double>(identical->gates);
  const Prediction next{.units = identical->gates,
                        .runs = identical->gates,
                        .difference = 0,
                        .deviation = *deviation,
                        .between = *deviation * *deviation * (1 + 1 / gates),
                        .within = 0};
  return std::expm1(interval_of(next, 2 * test.alpha).high);  // a one-sided bound at alpha
}

SelfTest test_gate(const SelfTestRequest& request) {
  return SelfTester(request).run();
}

}  // namespace stepgate
