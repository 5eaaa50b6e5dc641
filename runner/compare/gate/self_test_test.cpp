// SPDX-License-Identifier: MIT
// Tests the conclusions of a self-test from gates with a known answer: counts and their bounds, the
// spread between gates, and every way not to pass, each planted. Programs are simulated devices in
// this process.
#include "compare/gate/self_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/text/diagnostic.h"
#include "compare/gate/gate_timing.h"
#include "compare/testing/simulated_worker.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"
#include "tests/round_numbers.h"

namespace stepgate {
namespace {

TriedGate gate(Outcome outcome, double estimate = 0, double standard_error = 0) {
  return {.outcome = outcome,
          .pairs = 6,
          .seconds = 0.3,
          .step_seconds = 1e-3,
          .estimate = estimate,
          .standard_error = standard_error};
}

const Trial identical{std::string(identical_trial), 0.0};

// Makes a trial of `gates` gates, of which the first ones have `outcome` and the rest `others`.
TrialResult with(const std::string& name, double share, int first, int gates,
                 Outcome outcome = Outcome::fails, Outcome others = Outcome::passes) {
  std::vector<TriedGate> results;
  for (int index = 0; index < gates; ++index)
    results.push_back(gate(index < first ? outcome : others));
  return result_of({.name = name, .share = share}, results);
}

// Makes all trials at a margin of 2 %, each with the correct outcomes.
SelfTest clean(int gates = 100, int trial_gates = 20) {
  SelfTest test{.workload = "workload", .margin = 0.02, .alpha = 0.01, .beta = 0.05};
  for (const Trial& trial : self_test_trials()) {
    const double share = trial.share.value_or(0);
    const int count = trial.name == identical_trial ? gates : trial_gates;
    test.trials.push_back(with(trial.name, share, share > 0.02 ? count : 0, count));
    test.trials.back().injected = trial.share;
  }
  return test;
}

TrialResult& trial_of(SelfTest& test, const std::string& name) {
  return *std::ranges::find(test.trials, name, &TrialResult::name);
}

TEST(SelfTestResult, CountsWhatItsGatesDid) {
  const std::vector<TriedGate> gates{gate(Outcome::fails, 0.01, 0.003),
                                     gate(Outcome::passes, -0.01, 0.001),
                                     gate(Outcome::not_comparable, 0.03, 0.005)};
  const TrialResult trial = result_of(identical, gates);
  EXPECT_EQ(trial.gates, 3);
  EXPECT_EQ(trial.slower, 1);
  EXPECT_EQ(trial.not_slower, 1);
  EXPECT_DOUBLE_EQ(trial.estimate, 0.01);
  EXPECT_DOUBLE_EQ(trial.spread.value(), 0.02);
  EXPECT_DOUBLE_EQ(trial.spread_by_pairs, std::sqrt((9e-6 + 1e-6 + 25e-6) / 3));
  EXPECT_DOUBLE_EQ(trial.pairs_mean, 6);
  EXPECT_DOUBLE_EQ(trial.seconds_mean, 0.3);
  EXPECT_DOUBLE_EQ(trial.step_seconds, 1e-3);
  const RateBounds bounds = clopper_pearson(1, 3, 0.05);
  EXPECT_DOUBLE_EQ(trial.slower_rate.low, bounds.low);
  EXPECT_DOUBLE_EQ(trial.not_slower_rate.high, bounds.high);
}

TEST(SelfTestResult, OfOneGateKnowsNoSpread) {
  const TrialResult trial = result_of(identical, std::vector{gate(Outcome::passes, 0.01, 0.003)});
  EXPECT_FALSE(trial.spread);
  EXPECT_FALSE(between_gates(trial));
}

// The pairs of one gate scatter with one standard deviation, and gates with another.
TEST(SelfTestResult, TakesWhatThePairsExplainOutOfTheSpread) {
  constexpr std::uint64_t seed = 7;
  constexpr int count = 2000;
  constexpr double by_pairs = 0.003;
  // The tolerance is three relative standard errors of a standard deviation that these draws
  // estimate.
  constexpr double three_standard_errors = 0.05;
  for (const double planted : {0.0, 0.002, 0.01}) {
    Random random(seed);
    std::vector<TriedGate> gates;
    for (int index = 0; index < count; ++index) {
      const double estimate = planted * random.normal() + by_pairs * random.normal();
      gates.push_back(gate(Outcome::passes, estimate, by_pairs));
    }
    const TrialResult trial = result_of(identical, gates);
    const double total = std::hypot(planted, by_pairs);
    EXPECT_NEAR(trial.spread.value(), total, three_standard_errors * total) << "seed " << seed;
    // Where the planted deviation is 0, a small difference of the two squares remains.
    const double tolerance = planted == 0 ? std::sqrt(2 * three_standard_errors) * by_pairs
                                          : three_standard_errors * total * total / planted;
    EXPECT_NEAR(between_gates(trial).value(), planted, tolerance) << "seed " << seed;
  }
}

// Every gate's estimate uses the same number of pairs, however the gate ends.
TEST(SelfTestResult, FindsNoSpreadInGatesThatEndWhenTheirPairsAgree) {
  Random random(13);
  std::vector<TriedGate> gates;
  for (int index = 0; index < 1000; ++index) {
    std::vector<double> log_ratios;
    double sum = 0;
    do {
      log_ratios.push_back(0.003 * random.normal());
      sum += log_ratios.back();
    } while (log_ratios.size() < 40 && (log_ratios.size() < 6 || sum < 0.0035 * 6));
    gates.push_back(gate(Outcome::passes));
    set_estimate(gates.back(), log_ratios);
  }
  const TrialResult trial = result_of(identical, gates);
  EXPECT_NEAR(trial.spread.value(), 0.003 / std::sqrt(5), 0.1 * 0.003 / std::sqrt(5));
  EXPECT_LT(between_gates(trial).value(), 0.0004);
}

TEST(SelfTestResult, HasNoPowerWhereFewSlowdownsAreFound) {
  const auto found = [](int slower, int gates) { return with("1 % slower", 0.01, slower, gates); };
  EXPECT_TRUE(has_no_power(found(0, 40)));
  EXPECT_TRUE(has_no_power(found(5, 40)));
  EXPECT_FALSE(has_no_power(found(0, 3))) << "too few to tell";
  EXPECT_FALSE(has_no_power(found(30, 40)));
}

// One more gate exceeds the margin with probability alpha.
TEST(SelfTestResult, NamesTheMarginThatGatesAloneSeldomReach) {
  constexpr std::uint64_t seed = 11;
  constexpr double deviation = 0.004;
  constexpr int tests = 20'000;
  Random random(seed);
  int beyond = 0;
  for (int index = 0; index < tests; ++index) {
    std::vector<TriedGate> gates;
    for (int number = 0; number < fewest_identical_gates; ++number)
      gates.push_back(gate(Outcome::passes, deviation * random.normal()));
    const SelfTest test{
        .workload = "workload", .alpha = 0.01, .trials = {result_of(identical, gates)}};
    // The mean is subtracted, since identical programs may differ slightly.
    const double next = deviation * random.normal() - test.trials.front().estimate;
    beyond += next > std::log1p(smallest_margin(test).value());
  }
  EXPECT_NEAR(beyond / static_cast<double>(tests), 0.01, 0.0021) << "seed " << seed;
  EXPECT_FALSE(smallest_margin({}));
}

TEST(SelfTestOutcome, PassesWhereRatesAreKeptAndSlowdownsFound) {
  EXPECT_EQ(outcome_of(clean()), Outcome::passes);
  EXPECT_EQ(outcome_of(clean(20, 5)), Outcome::passes);
  EXPECT_DOUBLE_EQ(found_from(clean()).value(), 0.05);
}

TEST(SelfTestOutcome, FailsWhereProgramsThatAreNoSlowerAreBlockedMoreOftenThanAlphaExplains) {
  SelfTest test = clean();
  const auto blocked = [&](const std::string& name, double share, int slower, int gates) {
    trial_of(test, name) = with(name, share, slower, gates);
    return outcome_of(test);
  };
  EXPECT_EQ(blocked("identical", 0, 1, 20), Outcome::passes);
  EXPECT_EQ(blocked("identical", 0, 2, 20), Outcome::fails);
  EXPECT_EQ(blocked_too_often(test)->name, "identical");
  EXPECT_EQ(blocked("identical", 0, 3, 100), Outcome::passes);
  EXPECT_EQ(blocked("identical", 0, 4, 100), Outcome::fails);
  EXPECT_EQ(blocked("identical", 0, 0, 100), Outcome::passes);
  EXPECT_EQ(blocked("5 % faster", -0.05, 2, 20), Outcome::fails);
  EXPECT_EQ(blocked("5 % faster", -0.05, 0, 20), Outcome::passes);
  // A wait has no known cost, so its outcomes appear in the table but decide nothing.
  trial_of(test, "one more wait").slower = 20;
  trial_of(test, "one more wait").slower_rate = clopper_pearson(20, 20, 0.05);
  EXPECT_EQ(outcome_of(test), Outcome::passes);
}

TEST(SelfTestOutcome, FailsWhereASlowdownOfTwiceTheMarginPassesMoreOftenThanBetaExplains) {
  SelfTest test = clean();
  trial_of(test, "5 % slower") = with("5 % slower", 0.05, 17, 20);
  EXPECT_EQ(outcome_of(test), Outcome::passes);
  trial_of(test, "5 % slower") = with("5 % slower", 0.05, 16, 20);
  EXPECT_EQ(outcome_of(test), Outcome::fails);
  EXPECT_EQ(passed_too_often(test)->name, "5 % slower");
  test.margin = 0.026;  // an inaccurate injection may explain this
  EXPECT_EQ(outcome_of(test), Outcome::passes);
}

TEST(SelfTestOutcome, IsUndecidedWithoutPower) {
  const auto with_found = [](int slower, int gates) {
    SelfTest test = clean();
    trial_of(test, "5 % slower") =
        with("5 % slower", 0.05, slower, gates, Outcome::fails, Outcome::undecided);
    return outcome_of(test);
  };
  EXPECT_EQ(with_found(0, 20), Outcome::undecided);
  EXPECT_EQ(with_found(14, 20), Outcome::undecided) << "no more than half of them, perhaps";
  EXPECT_EQ(with_found(15, 20), Outcome::passes);
  EXPECT_EQ(with_found(4, 4), Outcome::undecided) << "too few to tell";
  EXPECT_EQ(with_found(5, 5), Outcome::passes);
  SelfTest wide = clean();
  wide.margin = 0.05;
  EXPECT_EQ(outcome_of(wide), Outcome::undecided) << "nothing is slower by more than that";
}

TEST(SelfTestOutcome, IsUndecidedOfTooFewGatesOrTrials) {
  EXPECT_EQ(outcome_of(clean(fewest_identical_gates - 1)), Outcome::undecided);
  SelfTest other = clean();
  trial_of(other, "identical").name = "the same";
  EXPECT_EQ(outcome_of(other), Outcome::undecided);
  SelfTest interrupted = clean();
  interrupted.trials.pop_back();
  EXPECT_EQ(outcome_of(interrupted), Outcome::undecided);
  EXPECT_EQ(outcome_of({}), Outcome::undecided);
}

TEST(SelfTestOutcome, NamesTheSmallestSlowdownFromWhichOnAllAreFound) {
  SelfTest test = clean();
  test.margin = 0.004;
  for (const auto& [name, share, slower] :
       {std::tuple{"0.5 % slower", 0.005, 3}, {"1 % slower", 0.01, 20}, {"2 % slower", 0.02, 19}})
    trial_of(test, name) = with(name, share, slower, 20, Outcome::fails, Outcome::undecided);
  EXPECT_DOUBLE_EQ(found_from(test).value(), 0.01);
  trial_of(test, "2 % slower") =
      with("2 % slower", 0.02, 3, 20, Outcome::fails, Outcome::undecided);
  EXPECT_DOUBLE_EQ(found_from(test).value(), 0.05);
}

// A program as workers on the simulated device, and gates of the program against itself.
class TestedGate : public testing::Test {
 protected:
  // Returns a step of one millisecond on the device or on the host.
  static PlannedStep step(bool on_the_host) {
    const std::string text =
        "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 2, kernel_us = " +
        std::string(on_the_host ? "50 }\nhost.step_us = 1000\n" : "500 }\n") +
        "[variant.step]\n[expect]\nno_waits = \"step.host_waits_per_step == 0\"\n";
    return with_facts(build_step_plans(parse_scenario(text, "workload.toml"), 1)).front();
  }

  struct Program {
    bool on_the_host = false;
    // Returns whether a side carries out what is injected into it.
    std::function<bool(ComparisonSide)> carries_out = [](ComparisonSide) { return true; };
    NoiseCosts noise{.within_rounds = 0.005, .between_loads = 0.001};
    double slower_head = 0;  // relative, independent of the injection
  };

  static PlannedStep carried_out(const Program& program, ComparisonSide side,
                                 const std::vector<Injection>& injected) {
    StepPlan plan = step(program.on_the_host);
    for (const Injection& injection : injected) {
      if (program.carries_out(side)) inject(plan, injection);
    }
    if (side == ComparisonSide::head && program.slower_head > 0)
      inject(plan, {.kind = InjectionKind::device_spin,
                    .duration = std::chrono::nanoseconds(std::llround(1e6 * program.slower_head))});
    return with_facts(std::move(plan));
  }

  TriedGate gate(const Program& program, const InjectedSides& sides, std::uint64_t seed) const {
    const std::array steps{carried_out(program, ComparisonSide::base, sides.base),
                           carried_out(program, ComparisonSide::head, sides.head)};
    ComparisonRequest request;
    request.workloads = {"workload"};
    request.launch = [&](ComparisonSide side, std::int64_t launch) {
      return std::make_unique<SimulatedWorker>(
          steps.at(static_cast<std::size_t>(side)), profile_of_round_numbers(program.noise),
          random_bits(seed, static_cast<std::uint64_t>(launch)));
    };
    request.introduction = introduce(request.launch).value();
    request.seed = seed;
    request.clock = [] { return std::chrono::nanoseconds(0); };  // so that no time limit is reached
    time_as_a_gate(request, settings_, std::chrono::seconds(1), {});
    request.most_pairs = 10;
    request.undecided = undecided_workloads(request.workloads, settings_);
    const ComparisonMeasurement measured = measure_comparison(request);
    return tried_gate(judge_comparison(request.introduction, measured, settings_), measured);
  }

  SelfTestRequest request(const Program& program) {
    return {.workload = "workload",
            .settings = settings_,
            .gates = 20,
            .trial_gates = 5,
            .run = [this, program](const InjectedSides& sides) -> std::optional<TriedGate> {
              if (gates_ == stop_after_) return std::nullopt;
              return gate(program, sides, random_bits(3, gates_++));
            },
            .progress = {},
            .ended = {}};
  }
  SelfTest tested(const Program& program) { return test_gate(request(program)); }

  ComparisonSettings settings_{.margin = 0.02};
  std::uint64_t gates_ = 0;
  std::uint64_t stop_after_ = 1'000'000;
};

TEST_F(TestedGate, PassesAndInjectsWhereTheBottleneckIs) {
  for (const bool on_the_host : {false, true}) {
    SelfTest test = tested({.on_the_host = on_the_host});
    EXPECT_EQ(outcome_of(test), Outcome::passes) << on_the_host;
    EXPECT_EQ(test.site.kind, on_the_host ? InjectionKind::host_delay : InjectionKind::device_spin);
    EXPECT_NEAR(static_cast<double>(test.site.step_time.count()), 1e6, 1e5);
    EXPECT_EQ(test.trials.size(), self_test_trials().size());
    for (const TrialResult& trial : test.trials) {
      if (!trial.injected) continue;
      // An injection into BASE makes HEAD look faster.
      const double planted = std::copysign(std::log1p(std::abs(*trial.injected)), *trial.injected);
      EXPECT_NEAR(trial.estimate, planted, 0.003) << trial.name;
    }
  }
}

// The step takes 100 us on the host and 86 us on the device. Injecting half a step makes it longer
// on the device, after the spin that both sides have there, but injecting a twentieth is hidden
// there.
TEST_F(TestedGate, InjectsWhereASmallShareShows) {
  const auto step_us = [](const std::vector<Injection>& injected) {
    double host = 100;
    double device = 86;
    for (const Injection& each : injected) {
      const double us = 1e-3 * static_cast<double>(each.duration.count());
      (each.kind == InjectionKind::device_spin ? device : host) += us;
    }
    return std::max(host, device);
  };
  SelfTestRequest asked = request({});
  asked.run = [&](const InjectedSides& sides) {
    const double contrast = std::log(step_us(sides.head) / step_us(sides.base));
    return std::optional(TriedGate{.outcome = Outcome::undecided,
                                   .pairs = 5,
                                   .step_seconds = 1e-4,
                                   .estimate = contrast,
                                   .standard_error = 1e-3});
  };
  const SelfTest test = test_gate(asked);
  EXPECT_EQ(test.site.kind, InjectionKind::host_delay);
  const auto five = std::ranges::find(test.trials, "5 % slower", &TrialResult::name);
  ASSERT_NE(five, test.trials.end());
  EXPECT_NEAR(five->estimate, std::log(1.05), 1e-6);
}

TEST_F(TestedGate, DoesNotPassWhereWhatIsInjectedIsNotCarriedOut) {
  const SelfTest of_head =
      tested({.carries_out = [](ComparisonSide side) { return side == ComparisonSide::base; }});
  EXPECT_EQ(outcome_of(of_head), Outcome::fails);
  ASSERT_NE(passed_too_often(of_head), nullptr);
  EXPECT_EQ(passed_too_often(of_head)->name, "5 % slower");
  EXPECT_FALSE(found_from(of_head));
}

TEST_F(TestedGate, TriesNothingAtAMarginThatNoTrialIsBeyond) {
  settings_.margin = 0.06;
  const SelfTest test = tested({});
  EXPECT_EQ(gates_, 0U);
  EXPECT_TRUE(test.trials.empty());
  EXPECT_EQ(outcome_of(test), Outcome::undecided);
}

TEST_F(TestedGate, HasNoPowerJustWithinTheLargestTrial) {
  settings_.margin = 0.049;
  const SelfTest test = tested({.noise = {.between_loads = 0.01}});
  EXPECT_EQ(outcome_of(test), Outcome::undecided);
  EXPECT_FALSE(found_from(test));
}

// Ten gates show nothing where processes differ by a tenth.
TEST_F(TestedGate, DoesNotPassWhereProcessesDifferByMuch) {
  const SelfTest test = tested({.noise = {.within_rounds = 0.005, .between_processes = 0.1}});
  EXPECT_EQ(outcome_of(test), Outcome::undecided);
  EXPECT_FALSE(found_from(test));
  // Every pair has fresh processes, so the scatter of pairs explains all of it.
  EXPECT_GT(test.trials.front().spread.value(), 0.04);
  EXPECT_LT(between_gates(test.trials.front()).value(), 0.03);
}

TEST_F(TestedGate, FailsWhereOneSideIsSlowerWithoutAnInjection) {
  const SelfTest test = tested({.slower_head = 0.04});
  EXPECT_EQ(outcome_of(test), Outcome::fails);
  ASSERT_NE(blocked_too_often(test), nullptr);
  EXPECT_EQ(blocked_too_often(test)->name, "identical");
}

TEST_F(TestedGate, KeepsTheTrialsThatHadEndedWhenItIsStopped) {
  for (const auto& [after, trials] : {std::pair{7U, 0U}, {21U, 1U}, {22U + 5U * 2U, 3U}}) {
    gates_ = 0;
    stop_after_ = after;
    const SelfTest test = tested({});
    EXPECT_TRUE(test.stopped) << after;
    EXPECT_EQ(test.trials.size(), trials) << after;
    EXPECT_EQ(outcome_of(test), Outcome::undecided) << after;
  }
}

TEST_F(TestedGate, EndsWithTheWorkerThatDies) {
  SelfTestRequest dying = request({});
  dying.run = [run = dying.run, this](const InjectedSides& sides) {
    if (gates_ == 3) throw WorkerError("HEAD died");
    return run(sides);
  };
  EXPECT_THROW((void)test_gate(dying), WorkerError);
}

}  // namespace
}  // namespace stepgate
