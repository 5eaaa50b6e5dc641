// SPDX-License-Identifier: MIT
#include "line/fit_to_device.h"

#include <gtest/gtest.h>

#include <string>

#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

std::string refusal_of(const std::string& model, DeviceKind kind) {
  Planned planned{.scenario = parse_scenario("claim = \"c\"\n[model]\n" + model +
                                                 "\n[variant.a]\n[expect]\n"
                                                 "any = \"a.launches_per_step >= 1\"\n",
                                             "s.toml"),
                  .plans = {}};
  planned.plans = with_facts(build_step_plans(planned.scenario, 1));
  DeviceIdentity device;
  device.kind = kind;
  try {
    fit_to_device({&planned, 1}, device, 1);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "";
}

TEST(FitToDevice, RefusesAKernelWithoutCodeForGpus) {
  const std::string resnet = "kind = \"resnet\"\nimage = 32";
  // A build without CUDA has no code at all.
  const bool has_code = kernel("matmul").prepare != nullptr;
  EXPECT_EQ(refusal_of("kind = \"mlp\"", DeviceKind::cuda).empty(), has_code);
  const std::string refused = refusal_of(resnet, DeviceKind::cuda);
  const std::string kernels =
      has_code
          ? "launches convolution, convolution_data_gradient, convolution_weight_gradient, which"
          : "convolution_weight_gradient, cross_entropy, ";
  EXPECT_NE(refused.find(kernels), std::string::npos) << refused;
  EXPECT_EQ(refusal_of(resnet, DeviceKind::simulated), "");
  EXPECT_EQ(refusal_of(resnet, DeviceKind::reference), "");
}

}  // namespace
}  // namespace stepgate
