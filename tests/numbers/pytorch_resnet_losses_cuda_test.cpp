// SPDX-License-Identifier: MIT
// Compares ten losses of ResNet-50 at 224 pixels on the local GPU with PyTorch's in double, in
// golden/pytorch_resnet_224.json. Host references take 17 s for a forward pass alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "kernels/kernels.h"
#include "tests/numbers/pytorch_resnet.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

const Json& golden() {
  static const Json one = golden_cases("pytorch_resnet_224").at(0);
  return one;
}

StepPlan plan_in(DType dtype) {
  Knobs knobs = knobs_of(golden());
  knobs.model.dtype = dtype;
  knobs.optim.master = is_16_bit(dtype);
  return plan_of(golden(), knobs);
}

// The largest error of a loss as a share of what it may be off: four times the error that PyTorch
// itself has after so many steps.
double share_of_bound(Device& device, const StepPlan& plan, const std::string& errors) {
  const auto expected = golden().at("losses").get<std::vector<double>>();
  const auto losses = device.load(plan)->run({.steps = std::ssize(expected)}).losses;
  EXPECT_EQ(losses.size(), expected.size());
  double largest = 0, error = 0;
  for (std::size_t step = 0; step < expected.size(); ++step) {
    error = std::max(error, golden().at(errors).at(step).get<double>());
    const double off = std::abs(losses[step] / expected[step] - 1);
    EXPECT_TRUE(std::isfinite(off)) << "step " << step;
    largest = std::max(largest, off / (4 * error));
  }
  return largest;
}

// tf32 rounds to more bits than bf16.
TEST(CudaPyTorchResnet, HasTheSameTenLossesAt224Pixels) {
  const auto device = make_cuda_device();
  EXPECT_LE(share_of_bound(*device, plan_in(DType::fp32), "fp32_errors"), 1);
  EXPECT_LE(share_of_bound(*device, plan_in(DType::tf32), "bf16_errors"), 1);
  EXPECT_LE(share_of_bound(*device, plan_in(DType::bf16), "bf16_errors"), 1);
}

TEST(CudaPyTorchResnet, HasOtherLossesWhereOneLaunchIsWrong) {
  const auto device = make_cuda_device();
  for (const auto& [dtype, errors] :
       {std::pair{DType::fp32, "fp32_errors"}, std::pair{DType::bf16, "bf16_errors"}}) {
    StepPlan plan = plan_in(dtype);
    launch_named(plan, "update all parameters")->attributes =
        kernels::Momentum::Attributes{1e-3, 0.8, 1e-4};
    EXPECT_GT(share_of_bound(*device, plan, errors), 1) << errors;
  }
  StepPlan plan = plan_in(DType::fp32);
  launch_named(plan, "layer3.1.conv2: norm")->attributes = ReluAttributes{.relu = false};
  EXPECT_GT(share_of_bound(*device, plan, "fp32_errors"), 1);
}

}  // namespace
}  // namespace stepgate
