// SPDX-License-Identifier: MIT
// Compares ResNets with PyTorch: equal weights and batches, the first gradient and two steps of SGD
// with momentum in double, and some steps in fp32. ci/pytorch_resnet.py wrote
// golden/pytorch_resnet.json, in double.
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
#include "device/reference/reference_device.h"
#include "kernels/kernels.h"
#include "plan/compose/build_step_plan.h"
#include "plan/compose/resnet/resnet_shape.h"
#include "scenario/resnet_blocks.h"
#include "tests/numbers/pytorch_summary.h"
#include "tests/numbers/step_by_hand.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

const Json& golden_cases() {
  static const Json cases = [] {
    const auto text =
        read_file(STEPGATE_SOURCE_DIR "/tests/golden/pytorch_resnet.json", "a golden file");
    return Json::parse(std::get<std::string>(text)).at("cases");
  }();
  return cases;
}

Knobs knobs_of(const Json& golden) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::resnet;
  knobs.model.layers = golden.at("layers");
  knobs.model.width = golden.at("width");
  knobs.model.image = golden.at("image");
  knobs.model.classes = golden.at("classes");
  knobs.model.stem = golden.at("stem") == "cifar" ? ModelStem::cifar : ModelStem::imagenet;
  knobs.batch.size = golden.at("batch");
  knobs.optim.kind = OptimKind::momentum;
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

double mean_of(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

std::span<const float> tensor_named(const StepResult& result, std::string_view name) {
  for (const Tensor& tensor : result.tensors) {
    if (tensor.name == name) return tensor.values;
  }
  ADD_FAILURE() << "no tensor is called " << name;
  return {};
}

// The largest error of the summaries of all parameters.
template <class Number>
double largest_error(const Json& golden, std::span<const Number> flat, const Json& expected) {
  const ResnetParameters parameters(knobs_of(golden));
  EXPECT_EQ(expected.size(), parameters.tensors().size());
  double largest = 0;
  for (const ParameterTensor& tensor : parameters.tensors()) {
    const auto part = flat.subspan(static_cast<std::size_t>(tensor.first),
                                   static_cast<std::size_t>(tensor.elements));
    largest = std::max(largest, error_of_summary(tensor.name, part, 1, expected.at(tensor.name)));
  }
  return largest;
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

TEST(PyTorchResnet, HasTheSameStepsInDouble) {
  for (const Json& golden : golden_cases()) {
    const StepErrors errors = errors_in_double(golden, in_double(plan_of(golden)));
    EXPECT_LT(errors.loss, 1e-12) << golden.at("name");
    EXPECT_LT(errors.gradients, 1e-9) << golden.at("name");
    EXPECT_LT(errors.running, 1e-9) << golden.at("name");
    // Rounding grows from norm to norm.
    const bool is_deep = golden.at("layers") == usual_resnet_layers;
    EXPECT_LT(errors.weights, is_deep ? 1e-8 : 1e-11) << golden.at("name");
  }
}

// nullptr where the step has no such launch.
LaunchKernel* launch_named(StepPlan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.operations, name, &Operation::name);
  return found == plan.operations.end() ? nullptr : std::get_if<LaunchKernel>(&found->action);
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
  };
  for (const auto& [name, plant, error] : faults) {
    int planted = 0;
    for (const Json& golden : golden_cases()) {
      if (golden.at("layers") == usual_resnet_layers) continue;  // takes longer and shows no more
      StepPlan plan = in_double(plan_of(golden));
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
  const Json& golden = golden_cases().back();
  for (const char* name : {"conv1: gradient sums", "conv1: norm and pool gradient"}) {
    StepPlan plan = in_double(plan_of(golden));
    launch_named(plan, name)->attributes =
        kernels::NormPool::Attributes{.window = 3, .stride = 2, .padding = 0};
    EXPECT_GT(errors_in_double(golden, plan).gradients, 1e-3) << name;
  }
}

struct Way {
  std::string name;
  void (*set)(Knobs&);
};

// Ways of running the step that change no number.
const Way ways[] = {{"as it is", [](Knobs&) {}},
                    {"in an arena", [](Knobs& knobs) { knobs.alloc.with = Allocator::arena; }},
                    {"allocated by operation",
                     [](Knobs& knobs) {
                       knobs.alloc.with = Allocator::caching;
                       knobs.alloc.when = AllocWhen::op;
                     }},
                    {"zeroed", [](Knobs& knobs) { knobs.memory.zero_grad = ZeroGrad::memset; }}};

void expect_alike_in_fp32(const Json& golden, const Way& way, double bound) {
  SCOPED_TRACE(golden.at("name").get<std::string>() + ", " + way.name);
  Knobs knobs = knobs_of(golden);
  way.set(knobs);
  const StepPlan plan = plan_of(golden, knobs);
  const auto step = make_reference_device(1)->load(plan);
  const StepResult first = step->run({.steps = 1, .tensors = true});
  const StepResult rest =
      step->run({.steps = golden.at("steps").get<std::int64_t>() - 1, .tensors = true});
  std::vector<float> losses = first.losses;
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  const auto expected = golden.at("losses").get<std::vector<double>>();
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], expected[i], bound * expected[i]) << "step " << i;
  EXPECT_LT(largest_error(golden, tensor_named(first, "gradients"), golden.at("gradients")), bound);
  // Each step trains on the rounding of those before it.
  EXPECT_LT(largest_error(golden, tensor_named(rest, "weights"), golden.at("weights")), 10 * bound);
}

// Rounding grows from norm to norm. PyTorch's own gradients of 50 layers are off by 6 % in fp32, so
// only smaller networks can be compared.
TEST(PyTorchResnet, TrainsAlikeInFp32) {
  int compared = 0;
  for (const Json& golden : golden_cases()) {
    const double error = golden.at("fp32_error");
    if (error > 1e-2) continue;
    ++compared;
    for (const Way& way : ways) expect_alike_in_fp32(golden, way, std::max(1e-4, 4 * error));
  }
  EXPECT_GE(compared, 2);
}

}  // namespace
}  // namespace stepgate
