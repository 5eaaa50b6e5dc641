// SPDX-License-Identifier: MIT
#include "compare/gate/gate_timing.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

constexpr std::int64_t gibibyte = std::int64_t{1} << 30;

std::int64_t first_pairs_at_once(std::int64_t memory, double largest, const std::string& counted,
                                 const StepCounts& given = {}) {
  ComparisonRequest request;
  request.workloads = {"small", "large"};
  request.introduction.head.memory_bytes = memory;
  std::vector<CountedPair> pairs;
  for (const auto& [workload, bytes] :
       {std::pair{"small", 1.0}, std::pair{counted.c_str(), largest}}) {
    StepCounts counts = given;
    counts.planned["peak_reserved"] = bytes;
    pairs.push_back({.workload = workload, .base = counts, .head = counts});
  }
  time_as_a_gate(request, {}, std::chrono::seconds(1), pairs);
  return request.pairs_at_once(0, std::nullopt);
}

TEST(GateTiming, LaunchesAsManyPairsAtOnceAsTheDeviceHasMemoryFor) {
  EXPECT_EQ(first_pairs_at_once(80 * gibibyte, 3.6 * gibibyte, "large"), 5);
  EXPECT_EQ(first_pairs_at_once(32 * gibibyte, 3.6 * gibibyte, "large"), 2);
  EXPECT_EQ(first_pairs_at_once(16 * gibibyte, 3.6 * gibibyte, "large"), 1);
  EXPECT_EQ(first_pairs_at_once(16 * gibibyte, 30.0 * gibibyte, "large"), 1);
  EXPECT_EQ(first_pairs_at_once(0, 1, "large"), 1) << "nobody says what the device has";
  EXPECT_EQ(first_pairs_at_once(80 * gibibyte, 1, "another"), 1) << "nor what a workload needs";
}

// Ten processes of two ranks each filled the memory of two H200s with what NCCL keeps.
TEST(GateTiming, LaunchesPairsOfSeveralRanksOneAfterTheOther) {
  StepCounts of_ranks;
  of_ranks.planned["all_reduces_per_step"] = 0;
  EXPECT_EQ(first_pairs_at_once(80 * gibibyte, 1, "large", of_ranks), 1);
  of_ranks.planned.clear();
  of_ranks.planned["launches_per_step"] = 8;
  EXPECT_EQ(first_pairs_at_once(80 * gibibyte, 1, "large", of_ranks), 5);
}

TEST(GateTiming, PutsWorksThatDifferFirstAndThenSomeOfAll) {
  std::vector<std::string> workloads;
  for (int workload = 0; workload < 40; ++workload) workloads.push_back(std::to_string(workload));
  const std::vector<std::string> order = in_order_of_suspicion(workloads, {"7", "39"});
  EXPECT_EQ(order.size(), workloads.size());
  EXPECT_EQ(std::vector<std::string>(order.begin(), order.begin() + 5),
            (std::vector<std::string>{"7", "39", "0", "2", "4"}));
  EXPECT_EQ(workloads_ahead_of_a_gate(33), 16u);
  EXPECT_EQ(workloads_ahead_of_a_gate(32), 0u);
}

}  // namespace
}  // namespace stepgate
