// SPDX-License-Identifier: MIT
// Tests with traces in which work runs on a stream that the plan does not say.
#include "measure/trace/streams.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "measure/testing/trace_by_hand.h"

namespace stepgate {
namespace {

// Streams as the driver numbers them.
constexpr int compute_number = 13;
constexpr int copies_number = 17;
constexpr int legacy_number = 7;

DeviceWork on(int stream, DeviceWork work) {
  work.stream = stream;
  return work;
}

// Two steps with two kernels and a fill on the compute stream each, and a copy on the side stream.
struct TwoSteps {
  StepPlan plan = plan_by_hand(side_stream);
  TraceByHand made{2};

  TwoSteps() {
    for (std::int64_t step = 0; step < 2; ++step) {
      const std::int64_t at = 10 * step;
      made.work(by_hand::copy, step, on(copies_number, to_device), at, at + 1)
          .work(by_hand::math, step, on(compute_number, a_kernel), at + 2, at + 3)
          .work(by_hand::memory, step, on(compute_number, a_kernel), at + 3, at + 4)
          .work(by_hand::fill, step, on(compute_number, a_fill), at + 4, at + 5);
    }
  }
  DeviceWork& work(int operation, std::int64_t step) {
    for (DeviceWork& work : made.trace().work) {
      if (work.operation == operation && work.step == step) return work;
    }
    throw std::runtime_error("there is no such work");
  }
  std::string difference() { return difference_of_streams(made.trace(), plan); }
};

TEST(Streams, ArePlannedWhateverTheirNumbers) {
  EXPECT_EQ(TwoSteps().difference(), "");
}

TEST(Streams, FindALaunchOnTheLegacyStream) {
  TwoSteps steps;
  steps.work(by_hand::memory, 1).stream = legacy_number;
  EXPECT_EQ(steps.difference(),
            "1 kernel of 'memory' ran on another stream than the plan's 'compute'");
  steps.work(by_hand::memory, 0).stream = legacy_number;
  EXPECT_EQ(steps.difference(),
            "2 kernels of 'memory' ran on another stream than the plan's 'compute'");
}

TEST(Streams, FindACopyOnTheComputeStream) {
  TwoSteps steps;
  steps.work(by_hand::copy, 0).stream = compute_number;
  EXPECT_EQ(steps.difference(),
            "1 copy of 'copy' ran on the stream 'compute' and not on the plan's 'side'");
  steps.work(by_hand::copy, 1).stream = compute_number;
  EXPECT_EQ(steps.difference(),
            "2 copies of 'copy' ran on the stream 'compute' and not on the plan's 'side'");
}

TEST(Streams, FindTwoThatWereSwapped) {
  TwoSteps steps;
  std::swap(steps.work(by_hand::copy, 0).stream, steps.work(by_hand::math, 0).stream);
  EXPECT_EQ(steps.difference(),
            "1 copy of 'copy' ran on the stream 'compute' and not on the plan's 'side', and so did "
            "work of 1 other operation");
}

TEST(Streams, FindAFillApartFromItsKernels) {
  TwoSteps steps;
  for (const std::int64_t step : {0, 1}) steps.work(by_hand::fill, step).stream = copies_number;
  EXPECT_EQ(steps.difference(),
            "2 fills of 'fill' ran on the stream 'side' and not on the plan's 'compute'");
}

TEST(Streams, OfAGraphAndOfTheRunnerAreNotCompared) {
  TwoSteps steps;
  steps.work(by_hand::memory, 0).stream = legacy_number;
  steps.work(by_hand::memory, 0).from_graph = true;
  steps.made.work(-1, 0, on(99, a_kernel), 6, 7);
  EXPECT_EQ(steps.difference(), "");
}

TEST(Streams, OfACollectiveAreNotCompared) {
  TwoSteps steps;
  steps.plan.operations[by_hand::memory].action = Collective{};
  steps.work(by_hand::memory, 0).stream = 31;  // of the library's own
  EXPECT_EQ(steps.difference(), "");
}

}  // namespace
}  // namespace stepgate
