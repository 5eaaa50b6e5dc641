// SPDX-License-Identifier: MIT
// Measures error rates and power of the gate: hundreds of gates on the simulated device, with the
// noise of a GPU and planted slowdowns. Every seed is fixed, so the counts are reproducible; the
// tables are printed for information.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "device/simulated/simulated_device.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"
#include "tests/contract/judged_on_device.h"
#include "tests/round_numbers.h"

namespace stepgate {
namespace {

constexpr int gates_per_cell = 400;
constexpr std::uint64_t first_seed = 1000;
const double alpha = JudgeSettings{}.alpha;
const double beta = JudgeSettings{}.beta;

// Each step has one millisecond of device work, which hides the host work.
constexpr const char* device_bound = "kernels = 2, kernel_us = 500";
// The kernels are shorter than their launches.
constexpr const char* launch_bound = "kernels = 40, kernel_us = 1";

struct NoiseRow {
  const char* name;
  NoiseCosts costs;
};

const std::vector<NoiseRow> noises{
    {"quiet", {.within_rounds = 0.001}},
    {"as an H200",
     {.within_rounds = 0.01,
      .between_rounds = 0.001,
      .between_loads = 0.002,
      .between_slots = 0.005}},
    {"spikes",
     {.within_rounds = 0.005, .spike_probability = 0.01, .spike_nanoseconds = 10'000'000}},
    {"drift", {.within_rounds = 0.005, .drift_per_second = 0.02}},
    {"between runs", {.within_rounds = 0.005, .between_rounds = 0.02}},
    {"slots", {.within_rounds = 0.005, .between_slots = 0.02}},
    {"loads", {.within_rounds = 0.005, .between_loads = 0.005, .between_slots = 0.005}},
};
const NoiseRow& like_a_gpu = noises[1];

// A scenario of two variants of the same step with one assertion.
struct Line {
  Line(const char* step, const std::string& assertion)
      : scenario(parse_scenario(
            fmt::format(
                "claim = \"gate\"\nmodel = {{ kind = \"spin\", {} }}\nmeasure.rounds = 100\n"
                "[variant.baseline]\n[variant.fix]\n[expect]\nline = \"{}\"\n",
                step, assertion),
            "gate.toml")),
        plans(with_facts(build_step_plans(scenario, first_seed))) {
    scenario.measure.max_seconds = 1e6;  // only the rounds bound it
  }

  Scenario scenario;
  std::vector<PlannedStep> plans;
};

std::string at_least(double limit) {
  return fmt::format("fix.samples_per_s >= {} * baseline.samples_per_s", limit);
}

Verdict gate(const Line& line, const NoiseRow& noise, SimulatedSettings settings) {
  const std::uint64_t seed = settings.seed;
  const auto device =
      make_simulated_device(profile_of_round_numbers(noise.costs), std::move(settings));
  return judged_on(*device, line.scenario, line.plans, seed);
}

struct Shares {
  double passes = 0;
  double failed = 0;
  double rounds = 0;  // mean
};

Shares shares_of(const Line& line, const NoiseRow& noise, const PlantedSlowdown& planted = {}) {
  Shares shares;
  for (int index = 0; index < gates_per_cell; ++index) {
    const Verdict verdict =
        gate(line, noise,
             {.seed = first_seed + static_cast<std::uint64_t>(index), .slowdowns = {planted}});
    shares.passes += verdict.outcome == Outcome::passes;
    shares.failed += verdict.outcome == Outcome::fails;
    shares.rounds += static_cast<double>(verdict.rounds);
  }
  for (double* sum : {&shares.passes, &shares.failed, &shares.rounds}) *sum /= gates_per_cell;
  return shares;
}

void print_row(const std::string& what, const char* noise, const Shares& shares) {
  std::fputs(fmt::format("  {:<34} {:<13} holds {:6.2f} %  failed {:6.2f} %  {:6.1f} rounds\n",
                         what, noise, 100 * shares.passes, 100 * shares.failed, shares.rounds)
                 .c_str(),
             stdout);
}

double most(double rate) {
  return most_of(gates_per_cell, rate);
}

PlantedSlowdown slower(double factor) {
  return {.variant = "fix", .factor = factor};
}

class GatePower : public testing::Test {
 protected:
  GatePower() {
    std::printf("  %d gates a row, seeds from %llu\n", gates_per_cell,
                static_cast<unsigned long long>(first_seed));
  }
};

TEST_F(GatePower, SeldomFailsATieThatTheAssertionAllows) {
  const Line line(device_bound, at_least(0.99));
  for (const NoiseRow& noise : noises) {
    const Shares shares = shares_of(line, noise);
    print_row("a tie, limit 0.99", noise.name, shares);
    EXPECT_LE(shares.failed, most(alpha)) << noise.name;
  }
}

// The contrast of identical variants is symmetric around the limit for any noise, which is the only
// assumption of the rule.
TEST_F(GatePower, KeepsBothErrorRatesForATieAtTheLimit) {
  const Line line(device_bound, at_least(1));
  for (const NoiseRow& noise : noises) {
    const Shares shares = shares_of(line, noise);
    print_row("a tie, limit 1", noise.name, shares);
    EXPECT_LE(shares.passes, most(beta)) << noise.name;
    EXPECT_LE(shares.failed, most(alpha)) << noise.name;
  }
}

TEST_F(GatePower, KeepsBothErrorRatesForASlowdownAtTheLimit) {
  constexpr double limit = 0.995;
  const Line line(device_bound, at_least(limit));
  for (const NoiseRow& noise : noises) {
    if (noise.costs.spike_probability > 0) continue;  // a spike costs both variants the same time
    const Shares shares = shares_of(line, noise, slower(1 / limit));
    print_row("slower by 1 / 0.995, limit 0.995", noise.name, shares);
    EXPECT_LE(shares.passes, most(beta)) << noise.name;
    EXPECT_LE(shares.failed, most(alpha)) << noise.name;
  }
}

struct PowerRow {
  double slowdown;
  double least_failed;
};

TEST_F(GatePower, CatchesSlowdownsBeyondTheLimit) {
  const Line line(device_bound, at_least(0.995));
  for (const PowerRow& row : {PowerRow{0.01, 0.95}, {0.02, 0.99}, {0.05, 1}}) {
    const Shares shares = shares_of(line, like_a_gpu, slower(1 + row.slowdown));
    print_row(fmt::format("{:g} % slower, limit 0.995", 100 * row.slowdown), like_a_gpu.name,
              shares);
    EXPECT_GE(shares.failed, row.least_failed) << row.slowdown;
    EXPECT_LE(shares.passes, most(beta)) << row.slowdown;
  }
}

TEST_F(GatePower, DoesNotFailASlowdownThatTheLimitAllows) {
  const Line line(device_bound, at_least(0.995));
  for (const double slowdown : {0.0025, 0.005}) {  // 1 / 1.005 is just above 0.995
    const Shares shares = shares_of(line, like_a_gpu, slower(1 + slowdown));
    print_row(fmt::format("{:g} % slower, limit 0.995", 100 * slowdown), like_a_gpu.name, shares);
    EXPECT_LE(shares.failed, most(alpha)) << slowdown;
  }
}

TEST_F(GatePower, SeesThatASpeedUpPasses) {
  const Line line(device_bound, at_least(1));
  for (const double speed_up : {0.01, 0.02, 0.05}) {
    const Shares shares = shares_of(line, like_a_gpu, slower(1 - speed_up));
    print_row(fmt::format("{:g} % faster, limit 1", 100 * speed_up), like_a_gpu.name, shares);
    EXPECT_GE(shares.passes, 0.95) << speed_up;
    EXPECT_LE(shares.failed, most(alpha)) << speed_up;
  }
}

TEST_F(GatePower, TellsATieFromADifferenceInEitherDirection) {
  const Line line(device_bound, "fix.samples_per_s ~= baseline.samples_per_s within 1%");
  const Shares tie = shares_of(line, like_a_gpu);
  print_row("a tie, ~= within 1 %", like_a_gpu.name, tie);
  EXPECT_GE(tie.passes, 0.95);
  for (const double factor : {0.97, 1.03}) {
    const Shares shares = shares_of(line, like_a_gpu, slower(factor));
    print_row(fmt::format("{:g} times the time, ~= within 1 %", factor), like_a_gpu.name, shares);
    EXPECT_GE(shares.failed, 0.95) << factor;
  }
}

TEST_F(GatePower, CatchesADelayOfTheHostWhereTheHostIsTheLimit) {
  const PlantedSlowdown delay{.variant = "fix", .host_nanoseconds = 5'000};
  const Shares exposed = shares_of(Line(launch_bound, at_least(0.99)), like_a_gpu, delay);
  print_row("5 us of host, launch-bound", like_a_gpu.name, exposed);
  EXPECT_GE(exposed.failed, 0.95);
  const Shares hidden = shares_of(Line(device_bound, at_least(0.99)), like_a_gpu, delay);
  print_row("5 us of host, device-bound", like_a_gpu.name, hidden);
  EXPECT_GE(hidden.passes, 0.95);
}

TEST_F(GatePower, PassesAFailureOfTheDeviceOn) {
  const Line line(device_bound, at_least(0.99));
  for (const std::int64_t step : {0, 7, 100}) {
    try {
      (void)gate(line, like_a_gpu, {.seed = first_seed, .slowdowns = {}, .fails_at_step = step});
      FAIL() << "nobody noticed that the device failed at step " << step;
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find(fmt::format("step {}", step)), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace stepgate
