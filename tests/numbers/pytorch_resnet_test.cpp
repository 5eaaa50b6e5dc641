// SPDX-License-Identifier: MIT
// Compares ResNets with PyTorch in double: equal weights and batches, the first gradient and two
// steps of SGD with momentum. Only host references compute in double; pytorch_resnet_steps_test.cpp
// compares what devices compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/kernels.h"
#include "scenario/resnet_blocks.h"
#include "tests/numbers/pytorch_resnet.h"
#include "tests/numbers/step_by_hand.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

StepPlan plan_in_double(const Json& golden, Fuse fuse = Fuse::pointwise, bool inplace = true) {
  Knobs knobs = knobs_of(golden);
  knobs.launch.fuse = fuse;
  knobs.model.inplace = inplace;
  return in_double(plan_of(golden, knobs));
}

double mean_of(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

// Relative errors: of the first step, and of the weights and statistics after two steps with the
// same batch.
struct StepErrors {
  double loss = 0, gradients = 0, running = 0, weights = 0;
};

std::vector<double> without_gaps(const Json& golden, std::span<const double> flat) {
  std::vector<double> all;
  const ResnetParameters parameters(knobs_of(golden));
  for (const ParameterTensor& tensor : parameters.tensors()) {
    const auto part = flat.subspan(static_cast<std::size_t>(tensor.first),
                                   static_cast<std::size_t>(tensor.elements));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

StepErrors errors_in_double(const Json& golden, const StepPlan& plan) {
  StepByHandOf<double> step(plan);
  const std::vector<double> gradients = step.gradients();
  const double loss = golden.at("losses").at(0);
  StepByHandOf<double> trained(plan);
  trained.step();
  trained.step();
  const Json& after = golden.at("after two steps");
  const std::vector<double> weights = without_gaps(golden, trained.numbers("weights"));
  const std::span<const double> running = trained.numbers("running statistics");
  return {.loss = std::abs(mean_of(step.numbers("row losses")) - loss) / loss,
          .gradients = largest_error<double>(golden, gradients, golden.at("gradients")),
          .running = error_of_summary("running statistics", running, 1, after.at("running")),
          .weights = error_of_summary<double>("weights", weights, 1, after.at("weights"))};
}

void expect_the_same_steps(const Json& golden, const StepPlan& plan) {
  SCOPED_TRACE(golden.at("name"));
  const StepErrors errors = errors_in_double(golden, plan);
  EXPECT_LT(errors.loss, 1e-12);
  EXPECT_LT(errors.gradients, 1e-9);
  EXPECT_LT(errors.running, 1e-9);
  // Rounding grows from norm to norm.
  const bool is_deep = golden.at("layers") == usual_resnet_layers;
  EXPECT_LT(errors.weights, is_deep ? 1e-8 : 1e-11);
}

TEST(PyTorchResnet, HasTheSameStepsInDouble) {
  for (const Json& golden : resnet_goldens()) expect_the_same_steps(golden, plan_in_double(golden));
}

TEST(PyTorchResnet, HasTheSameStepsInDoubleWhereNothingIsFused) {
  for (const Json& golden : resnet_goldens()) {
    expect_the_same_steps(golden, plan_in_double(golden, Fuse::none, false));
    if (golden.at("layers") == usual_resnet_layers) continue;  // takes longer and shows no more
    expect_the_same_steps(golden, plan_in_double(golden, Fuse::none, true));
  }
}

// A step with one wrong launch has another loss, gradient or statistic.
TEST(PyTorchResnet, DiffersWhereOneLaunchIsWrong) {
  struct Fault {
    std::string launch;
    void (*plant)(LaunchKernel&);
    double StepErrors::*error;
  };
  const Fault faults[] = {
      {"layer2.0.conv2: statistics",
       [](LaunchKernel& launch) {
         launch.attributes = kernels::BatchNormFinish::Attributes{1.1e-5, 0.1};
       },
       &StepErrors::gradients},
      {"layer3.1.conv3: statistics",
       [](LaunchKernel& launch) {
         launch.attributes = kernels::BatchNormFinish::Attributes{1e-5, 0.11};
       },
       &StepErrors::running},
      {"layer1.1.conv1: input gradient",
       [](LaunchKernel& launch) { launch.attributes = kernels::Matmul::Attributes{}; },
       &StepErrors::gradients},
      {"layer4.0.conv2: gradient sums",
       [](LaunchKernel& launch) {
         launch.attributes = kernels::BatchNormGradientSums::Attributes{.relu = false};
       },
       &StepErrors::gradients},
      {"layer1.0.conv3: norm and shortcut",  // the shortcut is not normed
       [](LaunchKernel& launch) { launch.operands[3] = launch.operands[1]; }, &StepErrors::loss},
      {"layer2.0.conv1: statistics",  // the bias of other channels
       [](LaunchKernel& launch) { launch.operands[3].offset_bytes += 8; }, &StepErrors::loss},
      {"layer4.0.downsample.0: statistics",  // the running variances of other channels
       [](LaunchKernel& launch) { launch.operands[5].offset_bytes -= 8; }, &StepErrors::running},
      {"update all parameters",
       [](LaunchKernel& launch) {
         launch.attributes = kernels::Momentum::Attributes{1e-3, 0.9, 1.1e-4};
       },
       &StepErrors::weights},
      {"layer2.0.conv3: shortcut",  // the shortcut is not added
       [](LaunchKernel& launch) { launch.operands[1] = launch.operands[0]; }, &StepErrors::loss},
      {"layer3.0.conv2: relu gradient",  // the gradient passes where it is positive itself
       [](LaunchKernel& launch) { launch.operands[0] = launch.operands[1]; },
       &StepErrors::gradients},
      {"layer2.0.conv1: relu",  // it reads what its norm reads
       [](LaunchKernel& launch) { launch.operands[0] = launch.operands[1]; }, &StepErrors::loss},
  };
  for (const auto& [name, plant, error] : faults) {
    int planted = 0;
    for (const Json& golden : resnet_goldens()) {
      if (golden.at("layers") == usual_resnet_layers) continue;  // takes longer and shows no more
      StepPlan plan = plan_in_double(golden);
      if (launch_named(plan, name) == nullptr) plan = plan_in_double(golden, Fuse::none, false);
      LaunchKernel* const launch = launch_named(plan, name);
      if (launch == nullptr) continue;
      plant(*launch);
      ++planted;
      EXPECT_GT(errors_in_double(golden, plan).*error, 1e-10) << name << golden.at("name");
    }
    EXPECT_GT(planted, 0) << name;
  }
}

// The pool ends the larger stem alone.
TEST(PyTorchResnet, DiffersWhereThePoolIsAnother) {
  const Json& golden = resnet_goldens().back();
  for (const auto& [name, fuse] : {std::pair{"conv1: norm and pool gradient", Fuse::pointwise},
                                   {"max pool: gradient", Fuse::none}}) {
    StepPlan plan = plan_in_double(golden, fuse);
    launch_named(plan, name)->attributes =
        kernels::NormPool::Attributes{.window = 3, .stride = 2, .padding = 0};
    EXPECT_GT(errors_in_double(golden, plan).gradients, 1e-3) << name;
  }
}

}  // namespace
}  // namespace stepgate
