// SPDX-License-Identifier: MIT
// Measures the error rates of the decision rule: 11 noise models x 5 true effects x suites of 1, 10
// and 50 lines, each with thousands of gates on artificial step times of 10 ms. It uses no device
// and no plan, only the randomisation of rounds and the test of an assertion. Every seed is fixed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numbers>

#include "judge/assertion_test.h"
#include "judge/judge_suite.h"
#include "judge/testing/fake_scenario.h"
#include "measure/schedule.h"

namespace stepgate {
namespace {

constexpr int gates_per_cell = 5000;
constexpr std::uint64_t first_seed = 500;
constexpr double suite_alpha = 0.01;
constexpr double beta = 0.05;
constexpr double smallest_slowdown = 0.01;        // the slowdown that must be detected
constexpr double margin = smallest_slowdown / 2;  // the allowed slowdown of a line
constexpr std::int64_t most_rounds = 60;
constexpr int scored_steps = 3;  // as measure chooses for steps of 10 ms
constexpr int wash_out = 1;
constexpr double step_seconds = 0.010;
// A round has two variants, in an order and its mirror.
constexpr double round_seconds = 4 * (scored_steps + wash_out) * step_seconds;
constexpr std::array<std::size_t, 3> suite_sizes{1, 10, 50};

double alpha_of_a_line(std::size_t lines) {
  return 1 / evidence_that_refutes_a_line(static_cast<std::int64_t>(lines), suite_alpha);
}

// The effects of one machine on the times of the steps that run on it one after another.
class Machine {
 public:
  virtual ~Machine() = default;
  // Returns the logarithm of the slowdown of the next step of a variant; 0 is the baseline, 1 the
  // fix.
  virtual double next(int variant) = 0;
  // The constant effect of a slot on this machine.
  virtual double of_slot(int) const { return 0; }
};

using MakeMachine = std::function<std::unique_ptr<Machine>(Random)>;

class White : public Machine {
 public:
  White(Random random, double deviation) : random_(random), deviation_(deviation) {}
  double next(int) override { return deviation_ * random_.normal(); }

 protected:
  Random random_;

 private:
  double deviation_;
};

// White noise on top of a state with memory; `change` computes the next state.
class Wandering : public White {
 public:
  using Change = std::function<double(double state, std::int64_t step, Random&)>;
  Wandering(Random random, double deviation, Change change)
      : White(random, deviation), change_(std::move(change)) {}
  double next(int variant) override {
    state_ = change_(state_, step_++, random_);
    return state_ + White::next(variant);
  }

 private:
  Change change_;
  double state_ = 0;
  std::int64_t step_ = 0;
};

double autoregressive(double state, Random& random) {
  constexpr double memory = 0.97;
  return memory * state + 0.006 * std::sqrt(1 - memory * memory) * random.normal();
}

class Spiky : public White {
 public:
  using White::White;
  double next(int variant) override {
    double slow = White::next(variant);
    if (random_.uniform() < 0.01) slow += std::log1p(0.05 - 0.1 * std::log(1 - random_.uniform()));
    return slow;
  }
};

class Placed : public White {
 public:
  Placed(Random random, double deviation, double of_slots) : White(random, deviation) {
    for (double& effect : effects_) effect = of_slots * random_.normal();
  }
  double of_slot(int slot) const override { return effects_.at(static_cast<std::size_t>(slot)); }

 private:
  std::array<double, 2> effects_{};
};

// Only the fix has noise, three times that of the baseline, so the variants differ in noise.
class OneNoisy : public White {
 public:
  using White::White;
  double next(int variant) override { return (variant == 1 ? 3 : 0.2) * White::next(variant); }
};

// Both variants have the same skewed noise: most steps are fast, some are slow.
class Skewed : public White {
 public:
  using White::White;
  double next(int) override { return std::exp(1.2 * random_.normal()) * 0.002; }
};

// Step times are multiples of a coarse clock's tick.
class Ticking : public White {
 public:
  using White::White;
  double next(int variant) override { return std::round(White::next(variant) / 0.002) * 0.002; }
};

MakeMachine wandering(double deviation, const Wandering::Change& change) {
  return [=](Random random) { return std::make_unique<Wandering>(random, deviation, change); };
}

struct NoiseModel {
  const char* name;
  MakeMachine make;
  // Smallest share of lines with a slowdown of 1 % that must fail, in a suite of one line. Spikes
  // and slots scatter total time more than typical rounds, and a slowdown that total time does not
  // show stays undecided.
  double least_failed;
};

const std::vector<NoiseModel>& noise_models() {
  static const std::vector<NoiseModel> models{
      {"white", [](Random random) { return std::make_unique<White>(random, 0.004); }, 0.99},
      {"autoregressive",
       wandering(0.003, [](double state, std::int64_t,
                           Random& random) { return autoregressive(state, random); }),
       0.99},
      {"ramp",
       wandering(0.003,
                 [](double state, std::int64_t step, Random& random) {
                   const double earlier =
                       step == 0 ? 0 : 0.02 * std::exp(-static_cast<double>(step - 1) / 150.0);
                   return autoregressive(state - earlier, random) +
                          0.02 * std::exp(-static_cast<double>(step) / 150.0);
                 }),
       0.99},
      {"throttle",
       wandering(0.003,
                 [](double state, std::int64_t, Random& random) {
                   const bool slow = state > 0.02;
                   const bool leaves = random.uniform() < (slow ? 1 / 80.0 : 1 / 150.0);
                   return slow != leaves ? 0.04 : 0.0;
                 }),
       0.99},
      {"spikes", [](Random random) { return std::make_unique<Spiky>(random, 0.004); }, 0.95},
      {"random walk",
       wandering(0.003, [](double state, std::int64_t,
                           Random& random) { return state + 0.0006 * random.normal(); }),
       0.99},
      {"periodic",
       wandering(0.003,
                 [](double, std::int64_t step, Random&) {
                   return 0.006 * std::sin(2 * std::numbers::pi * static_cast<double>(step) / 48);
                 }),
       0.99},
      {"slots", [](Random random) { return std::make_unique<Placed>(random, 0.004, 0.004); },
       0.975},
      {"one noisy", [](Random random) { return std::make_unique<OneNoisy>(random, 0.002); }, 0.99},
      {"skewed", [](Random random) { return std::make_unique<Skewed>(random, 0.0); }, 0.9},
      {"ticking", [](Random random) { return std::make_unique<Ticking>(random, 0.003); }, 0.99},
  };
  return models;
}

// Returns a round as measure makes it: both variants loaded anew, an order and its mirror.
Round round_on(Machine& machine, double effect, Random& coins) {
  Round round;
  const std::vector<int> slots = permutation(2, coins);
  std::vector<int> order = permutation(2, coins);
  for (int half = 0; half < 2; ++half) {
    for (const int variant : order) {
      for (int step = 0; step < wash_out; ++step) (void)machine.next(variant);
      double seconds = 0;
      for (int step = 0; step < scored_steps; ++step)
        seconds += step_seconds * std::exp(machine.next(variant));
      const int slot = slots[static_cast<std::size_t>(variant)];
      seconds *= std::exp(machine.of_slot(slot) + (variant == 1 ? effect : 0));
      round.segments.push_back({.variant = variant,
                                .slot = slot,
                                .steps = scored_steps,
                                .elapsed = std::chrono::nanoseconds(std::llround(1e9 * seconds))});
    }
    std::reverse(order.begin(), order.end());
  }
  return round;
}

struct Gate {
  std::array<Outcome, suite_sizes.size()> outcomes{};
  std::array<std::int64_t, suite_sizes.size()> rounds{};
};

// The assertion "fix.step_ms_mean <= 1.005 * baseline.step_ms_mean" in a suite of this many lines.
class Line {
 public:
  explicit Line(std::size_t lines)
      : assertion_(fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 1 + margin)),
        subjects_(subjects_named({"baseline", "fix"})) {
    settings_.alpha = alpha_of_a_line(lines);
    settings_.beta = beta;
  }

  AssertionTest test() const { return {assertion_, subjects_, settings_, none_}; }
  Sources sources(const Round& round) const { return {.subjects = subjects_, .round = &round}; }

 private:
  Expectation assertion_;
  std::vector<Subject> subjects_;
  JudgeSettings settings_;
  EarlierRounds none_;
};

const std::vector<Line>& lines() {
  static const std::vector<Line> all(suite_sizes.begin(), suite_sizes.end());
  return all;
}

Gate run_gate(const MakeMachine& make, double effect, std::uint64_t seed) {
  std::vector<AssertionTest> tests;
  for (const Line& line : lines()) tests.push_back(line.test());
  const auto machine = make(Random(2 * seed));
  Random coins(2 * seed + 1);
  Gate gate;
  for (std::int64_t number = 1; number <= most_rounds; ++number) {
    const Round round = round_on(*machine, effect, coins);
    bool any_open = false;
    for (std::size_t size = 0; size < tests.size(); ++size) {
      if (!tests[size].is_open()) continue;
      tests[size].add(lines()[size].sources(round));
      gate.rounds[size] = number;
      any_open = any_open || tests[size].is_open();
    }
    if (!any_open) break;
  }
  for (std::size_t size = 0; size < tests.size(); ++size)
    gate.outcomes[size] = tests[size].outcome();
  return gate;
}

std::vector<Gate> run_gates(const MakeMachine& make, double effect, int gates = gates_per_cell) {
  std::vector<Gate> run;
  for (int gate = 0; gate < gates; ++gate) {
    run.push_back(run_gate(make, effect, first_seed + static_cast<std::uint64_t>(gate)));
  }
  return run;
}

double share(const std::vector<Gate>& gates, std::size_t size, Outcome outcome) {
  const auto with = std::count_if(gates.begin(), gates.end(),
                                  [&](const Gate& gate) { return gate.outcomes[size] == outcome; });
  return static_cast<double>(with) / static_cast<double>(gates.size());
}

// Returns the share of suites, of consecutive gates each, that have a failed line.
double share_of_failed_suites(const std::vector<Gate>& gates, std::size_t size) {
  const std::size_t lines = suite_sizes[size];
  const std::size_t suites = gates.size() / lines;
  std::size_t failed = 0;
  for (std::size_t suite = 0; suite < suites; ++suite) {
    const auto first = gates.begin() + static_cast<std::ptrdiff_t>(suite * lines);
    failed += std::any_of(first, first + static_cast<std::ptrdiff_t>(lines),
                          [&](const Gate& gate) { return gate.outcomes[size] == Outcome::fails; });
  }
  return static_cast<double>(failed) / static_cast<double>(suites);
}

double mean_seconds(const std::vector<Gate>& gates, std::size_t size) {
  double rounds = 0;
  for (const Gate& gate : gates) rounds += static_cast<double>(gate.rounds[size]);
  return rounds / static_cast<double>(gates.size()) * round_seconds;
}

// Returns the largest rate that may be random: three standard errors above `rate` for large counts,
// and the same probability for small ones.
double most(double rate, std::size_t count) {
  constexpr double below_three_standard_errors = 0.99865;
  const boost::math::binomial_distribution<> counts(static_cast<double>(count), rate);
  return boost::math::quantile(counts, below_three_standard_errors) / static_cast<double>(count);
}

void print_row(const char* noise, double effect, std::size_t size, const std::vector<Gate>& gates) {
  std::fputs(
      fmt::format("  {:<15} {:5.2f} % slower, suite of {:2}: holds {:6.2f} %  failed {:6.2f} "
                  "%  suites failed {:6.2f} %  {:5.2f} s\n",
                  noise, 100 * effect, suite_sizes[size], 100 * share(gates, size, Outcome::passes),
                  100 * share(gates, size, Outcome::fails),
                  100 * share_of_failed_suites(gates, size), mean_seconds(gates, size))
          .c_str(),
      stdout);
}

class RuleGrid : public testing::TestWithParam<NoiseModel> {};

TEST_P(RuleGrid, KeepsItsErrorRatesAndItsPower) {
  const NoiseModel& noise = GetParam();
  SCOPED_TRACE(testing::Message() << noise.name << ", seeds from " << first_seed);
  const double at_margin = std::log1p(margin);
  for (const double effect : {0.0, at_margin / 2, at_margin, std::log1p(smallest_slowdown),
                              std::log1p(2 * smallest_slowdown)}) {
    const std::vector<Gate> gates = run_gates(noise.make, effect);
    for (std::size_t size = 0; size < suite_sizes.size(); ++size) {
      SCOPED_TRACE(testing::Message() << effect << ", suite of " << suite_sizes[size]);
      print_row(noise.name, effect, size, gates);
      const std::size_t suites = gates.size() / suite_sizes[size];
      if (effect <= at_margin) {
        EXPECT_LE(share(gates, size, Outcome::fails),
                  most(alpha_of_a_line(suite_sizes[size]), gates.size()));
        if (suites > 0) {
          EXPECT_LE(share_of_failed_suites(gates, size), most(suite_alpha, suites));
        }
      }
      if (effect >= at_margin) {
        EXPECT_LE(share(gates, size, Outcome::passes), most(beta, gates.size()));
      }
    }
    if (effect > at_margin) {
      EXPECT_GE(share(gates, 0, Outcome::fails), noise.least_failed);
    }
    if (effect == 0.0) {
      EXPECT_GE(share(gates, 0, Outcome::passes), noise.least_failed);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, RuleGrid, testing::ValuesIn(noise_models()), [](const auto& model) {
  std::string name = model.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// A share of the fix's segments takes longer: total time exceeds the limit, a typical round does
// not.
class Stalling : public White {
 public:
  Stalling(Random random, double share, double longer)
      : White(random, 0.0015), share_(share), longer_(std::log1p(longer)) {}
  double next(int variant) override {
    if (variant == 0) return White::next(variant);
    if (step_++ % (wash_out + scored_steps) == 0) stalled_ = random_.uniform() < share_;
    return White::next(variant) + (stalled_ ? longer_ : 0);
  }

 private:
  double share_;
  double longer_;
  std::int64_t step_ = 0;
  bool stalled_ = false;
};

struct StallRow {
  double share;
  double longer;
  double most_held_late;  // of gates that took 40 rounds or more
};

// The fix is slower by 1.8 % in total, where 0.5 % are allowed, and by nearly nothing in a typical
// round. An assertion does not pass after a stall. But a gate that ends before the first stall
// cannot know of it, and says so: a slowdown of fewer than 39 % of its rounds may not have occurred
// yet.
TEST(TotalTime, KeepsWhatStallsFromHolding) {
  for (const StallRow& row : {StallRow{0.03, 0.6, 0.1}, {0.06, 0.3, 0.1}, {0.12, 0.15, 0.1}}) {
    int held_by_rounds_alone = 0;
    int held = 0;
    int held_late = 0;
    const int gates = gates_per_cell / 5;
    for (int gate = 0; gate < gates; ++gate) {
      const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(gate);
      const auto machine = std::make_unique<Stalling>(Random(2 * seed), row.share, row.longer);
      Random coins(2 * seed + 1);
      AssertionTest test = lines()[0].test();
      AssertionTest patient = lines()[0].test();
      TimedAssertion typical(fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 1), 0.01,
                             beta);
      std::vector<Round> rounds;
      for (int number = 0; number < 60; ++number) {
        rounds.push_back(round_on(*machine, 0, coins));
        test.add(lines()[0].sources(rounds.back()));
        typical.add(test.contrasts().back());
      }
      held += test.outcome() == Outcome::passes;
      held_by_rounds_alone += typical.outcome() == Outcome::passes;
      // Judges again with the first verdict after 40 rounds, so that total time covers all of them.
      Round all;
      for (std::size_t number = 0; number < 40; ++number)
        all.segments.insert(all.segments.end(), rounds[number].segments.begin(),
                            rounds[number].segments.end());
      patient.add(lines()[0].sources(all));
      const AssertionVerdict verdict = [&] {
        AssertionVerdict made;
        patient.describe(0.95, made);
        return made;
      }();
      held_late += typical.outcome() == Outcome::passes && *verdict.timed->total_ratio <= 1;
    }
    const auto percent = [&](int count) { return 100.0 * count / gates; };
    std::fputs(
        fmt::format("  {:.0f} % of segments {:.0f} % longer: {:.1f} % held, {:.1f} % without total "
                    "time; after 40 rounds {:.1f} %\n",
                    100 * row.share, 100 * row.longer, percent(held), percent(held_by_rounds_alone),
                    percent(held_late))
            .c_str(),
        stdout);
    EXPECT_LT(held, held_by_rounds_alone);
    EXPECT_LE(percent(held_late), 100 * row.most_held_late);
  }
}

// A comparison needs at least seven rounds to fail; noise determines how many more it takes.
TEST(RuleSpeed, FindsAOnePercentSlowdownInSecondsOfTenMillisecondSteps) {
  struct Row {
    double deviation;  // of a step
    double least_found_in_two_seconds;
  };
  // At 0.5 %, even an optimal test that knew effect and noise beforehand would find 99 % only
  // within 2.6 s. 89.3 % are found; 93 % were found when a round had more passes over one load.
  for (const Row& row : {Row{0.001, 0.99}, {0.002, 0.99}, {0.005, 0.88}}) {
    const auto gates =
        run_gates([&](Random random) { return std::make_unique<White>(random, row.deviation); },
                  std::log1p(smallest_slowdown));
    const auto in_time = std::count_if(gates.begin(), gates.end(), [](const Gate& gate) {
      return gate.outcomes[0] == Outcome::fails &&
             static_cast<double>(gate.rounds[0]) * round_seconds <= 2.0;
    });
    const double found = static_cast<double>(in_time) / static_cast<double>(gates.size());
    std::printf("  noise %.1f %% a step: %.2f %% found within 2.0 s, %.2f s on average\n",
                100 * row.deviation, 100 * found, mean_seconds(gates, 0));
    EXPECT_GE(found, row.least_found_in_two_seconds) << "seeds from " << first_seed;
    EXPECT_LE(mean_seconds(gates, 0), 2.0);
    EXPECT_GE(share(gates, 0, Outcome::fails), 0.99);
  }
}

}  // namespace
}  // namespace stepgate
