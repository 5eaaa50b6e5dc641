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

ComparisonVerdict gate(const Noise& noise, double longer, bool accepted, std::uint64_t seed) {
  ComparisonScript script;
  script.workloads.clear();
  for (int workload = 0; workload < workloads_of_a_gate; ++workload)
    script.workloads.push_back(fmt::format("workload {}", workload));
  script.loaded = {.wash_out_steps = 2};
  script.launch_seconds = 0.1;
  Random random(seed);
  std::map<std::pair<std::int64_t, std::string>, double> of_launch;
  script.step_seconds = [&](ComparisonSide side, const std::string& workload, std::int64_t launch) {
    const auto [found, is_new] = of_launch.try_emplace({launch, workload});
    if (is_new) found->second = 0.004 * noise.draw(random);
    return 1e-3 * (side == ComparisonSide::head ? 1 + longer : 1) *
           std::exp(found->second + 0.008 * noise.draw(random));
  };
  ComparisonSettings settings{.margin = margin, .workloads_ahead = 2};
  if (accepted) {
    for (const std::string& workload : script.workloads)
      settings.accepted_growths[workload] = at_most;
  }
  ComparisonRequest request = request_of(script, seed, 30);
  request.undecided = undecided_workloads(script.workloads, settings);
  time_as_a_gate(request, settings, std::chrono::seconds(60), {});
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

}  // namespace
}  // namespace stepgate
