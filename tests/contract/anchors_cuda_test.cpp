// SPDX-License-Identifier: MIT
// Tests anchors on the local GPU: each runs, repeats its losses, and takes a time that is long
// enough to be measured and short enough to be cheap.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <iostream>

#include "device/cuda/cuda_device.h"
#include "plan/derive/anchors.h"

namespace stepgate {
namespace {

TEST(CudaAnchors, TakeFromTwentyMicrosecondsToTwentyMilliseconds) {
  const auto device = make_cuda_device();
  for (const AnchorRow& row : anchor_table()) {
    const StepPlan plan = anchor_plan(row);
    const auto step = device->load(plan);
    const StepResult result = step->run({.wash_out_steps = 50, .steps = 50});
    ASSERT_TRUE(result.elapsed.has_value()) << row.name;
    const double microseconds =
        std::chrono::duration<double, std::micro>(*result.elapsed).count() / 50;
    RecordProperty(std::string(row.name), std::to_string(microseconds));
    std::cout << row.name << ": " << microseconds << " us\n";
    EXPECT_GT(microseconds, 20) << row.name;
    EXPECT_LT(microseconds, 20'000) << row.name;
  }
}

TEST(CudaAnchors, ComputeTheSameLossesAgain) {
  const auto device = make_cuda_device();
  for (const AnchorRow& row : anchor_table()) {
    const StepPlan plan = anchor_plan(row);
    const std::vector<float> first = device->load(plan)->run({.steps = 5}).losses;
    const std::vector<float> again = device->load(plan)->run({.steps = 5}).losses;
    ASSERT_EQ(first.size(), 5U) << row.name;
    for (std::size_t step = 0; step < first.size(); ++step) {
      EXPECT_NEAR(first[step], again[step], 1e-3F * std::abs(first[step])) << row.name;
    }
  }
}

}  // namespace
}  // namespace stepgate
