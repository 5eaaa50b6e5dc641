// SPDX-License-Identifier: MIT
// Compares UNets with PyTorch: equal weights, batches and noise, the first gradient and two steps
// of AdamW in double, and some steps in fp32. ci/pytorch_unet.py wrote golden/pytorch_unet.json, in
// double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/read_file.h"
#include "kernels/kernels.h"
#include "plan/compose/build_step_plan.h"
#include "plan/compose/unet/unet_shape.h"
#include "tests/contract/device_contract.h"
#include "tests/numbers/pytorch_summary.h"
#include "tests/numbers/step_by_hand.h"
#include "tests/numbers/steps_beside_pytorch.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

const Json& golden_cases() {
  static const Json cases = [] {
    const auto text =
        read_file(STEPGATE_SOURCE_DIR "/tests/golden/pytorch_unet.json", "a golden file");
    return Json::parse(std::get<std::string>(text)).at("cases");
  }();
  return cases;
}

Knobs knobs_of(const Json& golden) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::unet;
  knobs.model.layers = golden.at("layers");
  knobs.model.width = golden.at("width");
  knobs.model.image = golden.at("image");
  knobs.batch.size = golden.at("batch");
  knobs.optim.kind = OptimKind::adamw;
  return knobs;
}

StepPlan plan_of(const Json& golden, const Knobs& knobs) {
  Scenario scenario;
  scenario.name = golden.at("name");
  scenario.variants = {{.name = "only", .knobs = knobs, .place = {}}};
  StepPlan plan = build_step_plans(scenario, golden.at("seed").get<std::uint64_t>()).front();
  // Norms begin with equal numbers, which could be taken from one another, so they are drawn.
  for (Buffer& buffer : plan.buffers) {
    if (buffer.purpose != Purpose::weights) continue;
    for (ContentPart& part : buffer.parts) {
      if (part.scale == 0) part.scale = 0.1;
    }
  }
  return plan;
}

StepPlan plan_of(const Json& golden) {
  return plan_of(golden, knobs_of(golden));
}

// The gradient of a key's bias is 0 but for rounding, since a softmax has no slope along it.
bool is_zero_in_part(const std::string& tensor) {
  return tensor.ends_with("to_qkv.bias");
}

template <class Number>
std::vector<Number> without_gaps(const Json& golden, std::span<const Number> flat) {
  std::vector<Number> all;
  const UnetParameters parameters(knobs_of(golden));
  for (const ParameterTensor& tensor : parameters.tensors()) {
    const auto part = flat.subspan(static_cast<std::size_t>(tensor.first),
                                   static_cast<std::size_t>(tensor.elements));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// The largest error of the summaries of the gradients: of each tensor, or of all together.
template <class Number>
double error_of_gradients(const Json& golden, std::span<const Number> flat) {
  const Json& expected = golden.at("gradients");
  if (golden.at("whole")) {
    const std::vector<Number> all = without_gaps(golden, flat);
    return error_of_summary<Number>("gradients", all, 1, expected.at("gradients"));
  }
  const UnetParameters parameters(knobs_of(golden));
  EXPECT_EQ(expected.size(), parameters.tensors().size());
  double largest = 0;
  for (const ParameterTensor& tensor : parameters.tensors()) {
    const auto part = flat.subspan(static_cast<std::size_t>(tensor.first),
                                   static_cast<std::size_t>(tensor.elements));
    largest = std::max(largest, error_of_summary(tensor.name, part, 1, expected.at(tensor.name)));
  }
  return largest;
}

double mean_of(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

// Relative errors: of the first step, and of the weights after two steps with the same batch.
struct StepErrors {
  double loss = 0, gradients = 0, weights = 0;
};

StepErrors errors_in_double(const Json& golden, const StepPlan& plan) {
  StepByHandOf<double> step(plan);
  const std::vector<double> gradients = step.gradients();
  const double loss = golden.at("losses").at(0);
  return {.loss = std::abs(mean_of(step.numbers("row losses")) - loss) / loss,
          .gradients = error_of_gradients<double>(golden, gradients)};
}

StepErrors errors_with_weights(const Json& golden, const StepPlan& plan) {
  StepErrors errors = errors_in_double(golden, plan);
  StepByHandOf<double> trained(plan);
  trained.step();
  trained.step();
  const auto weights = without_gaps<double>(golden, trained.numbers("weights"));
  errors.weights =
      error_of_summary<double>("weights", weights, 1, golden.at("weights after two steps"));
  return errors;
}

TEST(PyTorchUnet, HasTheSameStepsInDouble) {
  for (const Json& golden : golden_cases()) {
    const StepErrors errors = errors_with_weights(golden, in_double(plan_of(golden)));
    EXPECT_LT(errors.loss, 1e-12) << golden.at("name");
    EXPECT_LT(errors.gradients, 1e-9) << golden.at("name");
    EXPECT_LT(errors.weights, 1e-9) << golden.at("name");
  }
}

// The step of 16 bits has other launches than that of fp32: it fuses attention. In fp32 its
// gradients are as far from PyTorch's as rounding takes them, and further where a token sees those
// before it alone.
TEST(PyTorchUnet, HasTheSameGradientsWhereAttentionIsFused) {
  const Json& golden = golden_cases().back();
  ASSERT_EQ(golden.at("name"), "heads") << "whose heads are 64 wide";
  Knobs knobs = knobs_of(golden);
  knobs.model.dtype = DType::bf16;
  StepPlan plan = with_twice_the_bits(plan_of(golden, knobs), DType::fp32);
  const auto error = [&] {
    StepByHand step(plan);
    const std::vector<float> gradients = step.gradients();
    return error_of_gradients<float>(golden, gradients);
  };
  const double bound = std::max(1e-5, 4 * golden.at("fp32_error").get<double>());
  EXPECT_LT(error(), bound);
  int planted = 0;
  for (Operation& operation : plan.operations) {
    auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr || launch->kernel.name() != kernels::Attention::name) continue;
    launch->attributes = kernels::Attention::Attributes{.causal = true};
    ++planted;
  }
  EXPECT_EQ(planted, 4);
  EXPECT_GT(error(), bound);
}

// nullptr where the step has no such launch.
LaunchKernel* launch_named(StepPlan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.operations, name, &Operation::name);
  return found == plan.operations.end() ? nullptr : std::get_if<LaunchKernel>(&found->action);
}

// A step with one wrong launch has another loss, gradient or weight.
TEST(PyTorchUnet, DiffersWhereOneLaunchIsWrong) {
  struct Fault {
    std::string launch;
    void (*plant)(LaunchKernel&);
    double StepErrors::*error;
  };
  const Fault faults[] = {
      {"down_blocks.1.resnets.0.norm1: statistics",
       [](LaunchKernel& launch) {
         launch.attributes = kernels::GroupNormFinish::Attributes{1.1e-5};
       },
       &StepErrors::loss},
      {"up_blocks.2.resnets.0.norm1",  // the skip is another image
       [](LaunchKernel& launch) { launch.operands[1] = launch.operands[0]; }, &StepErrors::loss},
      {"mid_block.attentions.0.group_norm",
       [](LaunchKernel& launch) { launch.attributes = SiluAttributes{true}; }, &StepErrors::loss},
      {"down_blocks.0.resnets.0.conv1: bias and time",  // the bias of other channels
       [](LaunchKernel& launch) { launch.operands[1].offset_bytes += 8; }, &StepErrors::loss},
      {"up_blocks.1.resnets.0.conv_shortcut.weight of the skip",
       [](LaunchKernel& launch) {
         launch.attributes = kernels::Matmul::Attributes{.transpose_b = true};
       },
       &StepErrors::loss},
      {"up_blocks.1.attentions.0: softmax",
       [](LaunchKernel& launch) { launch.attributes = kernels::Softmax::Attributes{0.3}; },
       &StepErrors::loss},
      {"up_blocks.3.resnets.1.norm1: gradient",  // overwrites the shortcut's
       [](LaunchKernel& launch) {
         launch.attributes = kernels::GroupNormGradientApply::Attributes{true, false};
       },
       &StepErrors::gradients},
      {"up_blocks.0.resnets.1.norm2: gradient sums",
       [](LaunchKernel& launch) { launch.attributes = SiluAttributes{false}; },
       &StepErrors::gradients},
      {"down_blocks.2.attentions.0: softmax gradient",
       [](LaunchKernel& launch) { launch.attributes = kernels::Softmax::Attributes{0.3}; },
       &StepErrors::gradients},
      {"conv_in: skip gradient",  // the skip's gradient is lost
       [](LaunchKernel& launch) { launch.operands[1] = launch.operands[0]; },
       &StepErrors::gradients},
      {"down_blocks.3.resnets.0.time_emb_proj.weight: input gradient",  // forgets later blocks
       [](LaunchKernel& launch) { launch.attributes = kernels::Matmul::Attributes{}; },
       &StepErrors::gradients},
  };
  const Json& golden = golden_cases().front();
  for (const auto& [name, plant, error] : faults) {
    StepPlan plan = in_double(plan_of(golden));
    LaunchKernel* const launch = launch_named(plan, name);
    ASSERT_NE(launch, nullptr) << name;
    plant(*launch);
    EXPECT_GT(errors_in_double(golden, plan).*error, 1e-9) << name;
  }
}

// The noise is another one in every step.
TEST(PyTorchUnet, DiffersWhereTheNoiseIsThatOfAnotherStep) {
  const Json& golden = golden_cases().front();
  const StepPlan plan = in_double(plan_of(golden));
  StepByHandOf<double> step(plan);
  (void)step.loss();  // counts the step
  (void)step.loss();
  const double loss = golden.at("losses").at(0);
  EXPECT_GT(std::abs(mean_of(step.numbers("row losses")) - loss) / loss, 1e-6);
}

void expect_alike_in_fp32(Device& device, const Json& golden, const Way& way, double bound) {
  SCOPED_TRACE(golden.at("name").get<std::string>() + ", " + way.name);
  Knobs knobs = knobs_of(golden);
  way.set(knobs);
  const StepPlan plan = plan_of(golden, knobs);
  const auto step = device.load(plan);
  const StepResult first = step->run({.steps = 1, .tensors = true});
  std::vector<float> losses = first.losses;
  const StepResult rest =
      step->run({.steps = golden.at("steps").get<std::int64_t>() - 1, .tensors = false});
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  const auto expected = golden.at("losses").get<std::vector<double>>();
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], expected[i], bound * expected[i]) << "step " << i;
  const std::span<const float> gradients = tensor_named(first, "gradients");
  const Json& summaries = golden.at("gradients");
  const UnetParameters parameters(knobs);
  for (const ParameterTensor& tensor : parameters.tensors()) {
    if (golden.at("whole") || is_zero_in_part(tensor.name)) continue;
    const auto part = gradients.subspan(static_cast<std::size_t>(tensor.first),
                                        static_cast<std::size_t>(tensor.elements));
    expect_summary(tensor.name, part, 1, summaries.at(tensor.name), bound);
  }
}

class PyTorchUnetSteps : public testing::TestWithParam<DeviceCase> {};

// PyTorch's own gradients in fp32 are off by `fp32_error`.
TEST_P(PyTorchUnetSteps, AreAlikeInFp32) {
  const auto device = GetParam().make();
  const Json& golden = golden_cases().front();
  const double bound = std::max(1e-5, 4 * golden.at("fp32_error").get<double>());
  ASSERT_LT(bound, 1e-3);
  for (const Way& way : ways) expect_alike_in_fp32(*device, golden, way, bound);
}

INSTANTIATE_TEST_SUITE_P(Devices, PyTorchUnetSteps, testing::ValuesIn(devices_with_numbers()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace stepgate
