// SPDX-License-Identifier: MIT
// Measures error rates of a gate of several workloads in the hardest case: HEAD is slower by
// exactly the margin, or by exactly an accepted slowdown. Also measures how often identical builds
// pass. Uses fake steps with noise of launches and segments; every seed is fixed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "base/random.h"
#include "compare/gate/gate_timing.h"
#include "compare/gate/judge_comparison.h"
#include "compare/testing/fake_worker.h"
#include "tests/contract/judged_on_device.h"

namespace stepgate {
namespace {

constexpr double margin = 0.02;
constexpr double at_most = 0.05;
constexpr int workloads_of_a_gate = 5;

// How long steps and launches take, and by which share both differ.
struct Shape {
  int workloads = workloads_of_a_gate;
  double step_seconds = 1e-3;
  double launch_seconds = 0.1;
  double between_launches = 0.004;
  double between_runs = 0.008;
  int pairs = 30;  // at most
  std::chrono::seconds budget{60};
};
// PyTorch programs, of which both sides import for 8 s at once: steps that the GPU or the host
// bounds. Eager steps of 1.4 ms differed by 5 to 10 % from launch to launch.
constexpr Shape long_steps{1, 20e-3, 5, 0.004, 0.004, 30, std::chrono::seconds(90)};
constexpr Shape short_steps{1, 1.4e-3, 5, 0.07, 0.03, 30, std::chrono::seconds(240)};

struct Noise {
  const char* name;
  double (*draw)(Random&);  // about as wide as a standard normal
};

double normal(Random& random) {
  return random.normal();
}
double student(Random& random) {  // three degrees of freedom
  double square = 0;
  for (int degree = 0; degree < 3; ++degree) square += std::pow(random.normal(), 2);
  return random.normal() / std::sqrt(square);
}
double spikes(Random& random) {
  return 0.5 * random.normal() + (random.uniform() < 0.03 ? 15 : 0);
}
double bimodal(Random& random) {
  return (random.uniform() < 0.5 ? -1 : 1) + 0.2 * random.normal();
}

constexpr std::array noises{Noise{"normal", normal}, Noise{"t of 3", student},
                            Noise{"spikes", spikes}, Noise{"two states", bimodal}};

ComparisonVerdict gate(const Noise& noise, double longer, bool accepted, std::uint64_t seed,
                       const Shape& shape = {}) {
  ComparisonScript script;
  script.workloads.clear();
  for (int workload = 0; workload < shape.workloads; ++workload)
    script.workloads.push_back(fmt::format("workload {}", workload));
  script.loaded = {.wash_out_steps = 2};
  script.launch_seconds = shape.launch_seconds;
  Random random(seed);
  std::map<std::pair<std::int64_t, std::string>, double> of_launch;
  script.step_seconds = [&](ComparisonSide side, const std::string& workload, std::int64_t launch) {
    const auto [found, is_new] = of_launch.try_emplace({launch, workload});
    if (is_new) found->second = shape.between_launches * noise.draw(random);
    return shape.step_seconds * (side == ComparisonSide::head ? 1 + longer : 1) *
           std::exp(found->second + shape.between_runs * noise.draw(random));
  };
  ComparisonSettings settings{.margin = margin, .workloads_ahead = 2};
  if (accepted) {
    for (const std::string& workload : script.workloads)
      settings.accepted_growths[workload] = at_most;
  }
  ComparisonRequest request = request_of(script, seed, shape.pairs);
  request.undecided = undecided_workloads(script.workloads, settings);
  time_as_a_gate(request, settings, shape.budget, {});
  return judge_comparison(request.introduction, measure_comparison(request), settings);
}

struct Counts {
  int blocked = 0;  // gates
  int passed = 0;
  int held = 0;      // workloads, by the margin
  int accepted = 0;  // workloads, by what is accepted
  std::int64_t pairs = 0;
};

Counts counts_of(const Noise& noise, double longer, bool accepted, int gates) {
  Counts counts;
  for (int index = 0; index < gates; ++index) {
    const ComparisonVerdict verdict =
        gate(noise, longer, accepted, random_bits(39, static_cast<std::uint64_t>(index)));
    counts.blocked += verdict.outcome == Outcome::fails;
    counts.passed += verdict.outcome == Outcome::passes;
    counts.pairs += verdict.pairs;
    for (const WorkloadVerdict& workload : verdict.workloads) {
      counts.held += workload.outcome == Outcome::passes;
      counts.accepted += workload.at_accepted_growth == Outcome::passes;
    }
  }
  std::fputs(
      fmt::format(
          "  {:<10} {:+.0f} %: of {} gates {} blocked, {} passed, {:.1f} pairs; of {} workloads {} "
          "held, {} within what is accepted\n",
          noise.name, 100 * longer, gates, counts.blocked, counts.passed,
          double(counts.pairs) / gates, gates * workloads_of_a_gate, counts.held, counts.accepted)
          .c_str(),
      stdout);
  return counts;
}

TEST(GateTies, BlockFewAndHoldFewExactlyAtTheMargin) {
  constexpr int gates = 800;
  for (const Noise& noise : noises) {
    const Counts counts = counts_of(noise, margin, false, gates);
    EXPECT_LE(counts.blocked, gates * most_of(gates, 0.01));
    EXPECT_LE(counts.held, gates * workloads_of_a_gate * most_of(gates, 0.05));
  }
}

TEST(GateTies, AcceptFewExactlyAtWhatIsAccepted) {
  constexpr int gates = 200;
  for (const Noise& noise : noises) {
    const Counts counts = counts_of(noise, at_most, true, gates);
    EXPECT_LE(counts.accepted, gates * workloads_of_a_gate * most_of(gates, 0.05));
  }
}

TEST(GateTies, PassIdenticalBuildsAndBlockNone) {
  constexpr int gates = 250;
  for (const Noise& noise : noises) {
    const Counts counts = counts_of(noise, 0, false, gates);
    EXPECT_EQ(counts.blocked, 0);
    // Spikes of a tenth leave total time undecided after 30 pairs.
    EXPECT_GE(counts.passed, (noise.draw == spikes ? 0.6 : 0.95) * gates);
  }
}

TEST(GateTies, BlockNoIdenticalProgramsAndBlockFivePercentOfLongSteps) {
  constexpr int gates = 300;
  struct Seen {
    int blocked = 0;
    int passed = 0;
  };
  const auto seen = [&](const Shape& shape, double longer) {
    Seen counts;
    for (int index = 0; index < gates; ++index) {
      const auto seed = static_cast<std::uint64_t>(index);
      const Noise& noise = noises[seed % noises.size()];
      const ComparisonVerdict verdict = gate(noise, longer, false, random_bits(42, seed), shape);
      counts.blocked += verdict.outcome == Outcome::fails;
      counts.passed += verdict.outcome == Outcome::passes;
    }
    std::fputs(
        fmt::format("  steps of {} ms, {:+.0f} %: of {} gates {} blocked, {} passed\n",
                    1e3 * shape.step_seconds, 100 * longer, gates, counts.blocked, counts.passed)
            .c_str(),
        stdout);
    return counts;
  };
  const Seen identical = seen(long_steps, 0);
  EXPECT_EQ(identical.blocked, 0);
  EXPECT_GE(identical.passed, 0.7 * gates);
  EXPECT_EQ(seen(short_steps, 0).blocked, 0);
  Shape longer = long_steps;
  longer.budget = most_timing_of_a_gate;
  for (const auto& [shape, least] : {std::pair{long_steps, 0.6}, {longer, 0.95}}) {
    const Seen slower = seen(shape, 0.05);
    EXPECT_GE(slower.blocked, least * gates);
    EXPECT_EQ(slower.passed, 0);
  }
}

}  // namespace
}  // namespace stepgate
