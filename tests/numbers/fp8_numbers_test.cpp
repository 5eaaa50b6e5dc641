// SPDX-License-Identifier: MIT
// Numbers of transformers with GEMMs in fp8, beside those of bf16 and fp32: losses of ten steps,
// gradients of the first, and faults that must show. Host references carry out the steps.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "kernels/fp8/fp8.h"
#include "kernels/fp8/fp8_numbers.h"
#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "plan/testing/plan_by_hand.h"
#include "tests/numbers/equal_steps.h"

namespace stepgate {
namespace {

Knobs gpt(DType dtype, ModelFp8 fp8) {
  Knobs knobs = small_transformer();
  knobs.model.layers = 2;
  knobs.model.seq = 16;
  knobs.batch.size = 8;
  knobs.model.dtype = dtype;
  knobs.model.fp8 = fp8;
  knobs.optim.master = dtype == DType::bf16;
  return knobs;
}

Knobs llama(DType dtype, ModelFp8 fp8) {
  Knobs knobs = gpt(dtype, fp8);
  knobs.model.norm = ModelNorm::rms;
  knobs.model.mlp = ModelMlp::swiglu;
  knobs.model.position = ModelPosition::rope;
  knobs.model.kv_heads = 1;
  knobs.model.tied = true;
  knobs.model.bias = false;
  return knobs;
}

// Biases are added apart, parts of a batch add up, and blocks are computed again.
Knobs unfused_gpt(DType dtype, ModelFp8 fp8) {
  Knobs knobs = gpt(dtype, fp8);
  knobs.launch.fuse = Fuse::none;
  knobs.batch.accumulate = 2;
  knobs.memory.checkpoint_every = 2;
  return knobs;
}

using Model = Knobs (*)(DType, ModelFp8);
constexpr Model models[] = {gpt, llama};
constexpr ModelFp8 ways_to_scale[] = {ModelFp8::current, ModelFp8::delayed};

std::vector<double> losses_of(const Knobs& knobs) {
  const StepPlan plan = plan_of(knobs);
  StepByHand by_hand(plan);
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) {
    by_hand.step();
    double sum = 0;
    const auto rows = by_hand.numbers("row losses");
    for (const float row : rows) sum += row;
    losses.push_back(sum / static_cast<double>(rows.size()));
  }
  return losses;
}

// The largest distance of two losses of a step, relative to them.
double distance(const std::vector<double>& one, const std::vector<double>& other) {
  double most = 0;
  for (std::size_t step = 0; step < one.size(); ++step)
    most = std::max(most, std::abs(one[step] / other[step] - 1));
  return most;
}

TEST(Fp8Numbers, LossesOfTenStepsAreNearThoseOfFp32) {
  for (const auto model : models) {
    const std::vector<double> fp32 = losses_of(model(DType::fp32, ModelFp8::none));
    EXPECT_LT(fp32.back(), 0.99 * fp32.front()) << "it learns";
    EXPECT_LT(distance(losses_of(model(DType::bf16, ModelFp8::none)), fp32), 5e-4);
    for (const ModelFp8 scales : ways_to_scale)
      EXPECT_LT(distance(losses_of(model(DType::bf16, scales)), fp32), 4e-3);
  }
}

using Runner = void (*)(const Operation&, const LaunchKernel&, std::span<void* const>);

// Gradients of the first step, in whose launches `run` may plant a fault.
std::vector<float> gradients_of(const StepPlan& plan, Runner run = &StepByHand::run_reference) {
  StepByHand by_hand(plan);
  by_hand.step(run);
  const std::span<float> words = by_hand.numbers("gradients");
  return floats_of(words.data(), DType::bf16, 2 * std::ssize(words));
}

// The norm of a tensor's difference, relative to its norm: the largest of all tensors, infinite
// where one is NaN.
double largest_difference(const StepPlan& plan, const std::vector<float>& one,
                          const std::vector<float>& other) {
  double largest = 0;
  for (const Parameter& tensor : plan.parameters) {
    double difference = 0, norm = 0;
    for (std::int64_t index = 0; index < tensor.elements; ++index) {
      const auto i = static_cast<std::size_t>(tensor.first + index);
      difference += std::pow(one[i] - other[i], 2);
      norm += std::pow(other[i], 2);
    }
    const double relative = std::sqrt(difference / norm);
    largest = std::isnan(relative) ? std::numeric_limits<double>::infinity()
                                   : std::max(largest, relative);
    if (std::isinf(largest)) break;
  }
  return largest;
}

constexpr double near = 0.25;  // of gradients in fp8 and in bf16

// How far the gradients of a step in fp8 are from those of bf16.
double from_bf16(Model model, ModelFp8 scales, Runner run = &StepByHand::run_reference) {
  const StepPlan bf16 = plan_of(model(DType::bf16, ModelFp8::none));
  const StepPlan fp8 = plan_of(model(DType::bf16, scales));
  return largest_difference(bf16, gradients_of(fp8, run), gradients_of(bf16));
}

TEST(Fp8Numbers, GradientsAreNearThoseOfBf16) {
  for (const Model model : {gpt, llama, unfused_gpt})
    for (const ModelFp8 scales : ways_to_scale) EXPECT_LT(from_bf16(model, scales), near);
}

bool is_gemm_in_fp8(const LaunchKernel& launch) {
  const std::string_view name = launch.kernel.name();
  return name == kernels::MatmulFp8::name || name == kernels::LinearFp8::name;
}

bool is_quantization(const LaunchKernel& launch) {
  const std::string_view name = launch.kernel.name();
  return name == kernels::QuantizeFp8::name || name == kernels::QuantizeFp8Delayed::name;
}

TEST(Fp8Numbers, ShowAScaleThatIsNotTakenBack) {
  const Runner without_scale = [](const Operation& operation, const LaunchKernel& launch,
                                  std::span<void* const> operands) {
    std::vector<void*> changed(operands.begin(), operands.end());
    float one = 1;
    if (is_gemm_in_fp8(launch)) changed[2] = &one;
    StepByHand::run_reference(operation, launch, changed);
  };
  EXPECT_GT(from_bf16(gpt, ModelFp8::current, without_scale), near);
}

// Gradients are the smaller the larger a batch is. Those of a first step, which has no scale yet,
// are below the smallest number of e4m3.
TEST(Fp8Numbers, ShowGradientsInTheFormatOfActivations) {
  const Runner in_e4m3 = [](const Operation& operation, const LaunchKernel& launch,
                            std::span<void* const> operands) {
    LaunchKernel changed = launch;
    if (is_quantization(launch)) changed.attributes = Fp8Attributes{};
    if (launch.kernel.name() == kernels::MatmulFp8::name) {
      auto told = launch.attributes.as<kernels::MatmulFp8>();
      told.gradient = false;
      changed.attributes = told;
    }
    StepByHand::run_reference(operation, changed, operands);
  };
  EXPECT_GT(from_bf16(gpt, ModelFp8::delayed, in_e4m3), near);
}

TEST(Fp8Numbers, ShowAWriterAndAReaderOfOtherFormats) {
  const Runner written_in_e4m3 = [](const Operation& operation, const LaunchKernel& launch,
                                    std::span<void* const> operands) {
    LaunchKernel changed = launch;
    if (is_quantization(launch)) changed.attributes = Fp8Attributes{};
    StepByHand::run_reference(operation, changed, operands);
  };
  EXPECT_GT(from_bf16(gpt, ModelFp8::current, written_in_e4m3), near);
}

// Inverse scales after each of `steps` steps. They are 16 bytes apart.
std::vector<std::vector<float>> inverse_scales_of(const StepPlan& plan, int steps) {
  StepByHand by_hand(plan);
  std::vector<std::vector<float>> scales;
  for (int step = 0; step < steps; ++step) {
    by_hand.step();
    const std::span<float> all = by_hand.numbers("fp8 inverse scales");
    scales.emplace_back();
    for (std::size_t i = 0; i < all.size(); i += 4) scales.back().push_back(all[i]);
  }
  return scales;
}

// The factors of a GEMM are its input, its weight and the gradient of its result.
float largest_of_format(std::size_t factor) {
  return factor % 3 == 2 ? e5m2.largest : e4m3.largest;
}

TEST(Fp8Numbers, DelayedScalesAreThoseOfStepsBefore) {
  constexpr int steps = 20;
  const Knobs knobs = gpt(DType::bf16, ModelFp8::delayed);
  const StepPlan plan = plan_of(knobs);
  const auto scales = inverse_scales_of(plan, steps);
  EXPECT_EQ(std::set(scales[0].begin(), scales[0].end()), std::set{1.0f}) << "an empty history";
  // A step's own maxima lie in the history behind it.
  StepByHand by_hand(plan);
  std::vector<std::vector<float>> maxima;
  for (int step = 0; step < steps; ++step) {
    by_hand.step();
    const std::span<float> all = by_hand.numbers("fp8 maxima");
    ASSERT_EQ(std::ssize(all), std::ssize(scales[0]) * amax_numbers);
    maxima.emplace_back();
    for (std::size_t factor = 0; factor < scales[0].size(); ++factor)
      maxima.back().push_back(all[factor * amax_numbers + 1]);
  }
  for (int step = 1; step < steps; ++step) {
    for (std::size_t factor = 0; factor < scales[0].size(); ++factor) {
      float largest = 0;
      for (int before = std::max(0, step - 16); before < step; ++before)
        largest = std::max(largest, maxima[static_cast<std::size_t>(before)][factor]);
      ASSERT_NEAR(scales[static_cast<std::size_t>(step)][factor],
                  largest / largest_of_format(factor), 1e-6 * largest)
          << step << ' ' << factor;
    }
  }
}

TEST(Fp8Numbers, ShowAHistoryThatIsNotMovedOn) {
  StepPlan plan = plan_of(gpt(DType::bf16, ModelFp8::delayed));
  const auto right = inverse_scales_of(plan, 3);
  plan.operations.erase(operation_named(plan, "move the maxima of fp8 on"));
  const auto wrong = inverse_scales_of(plan, 3);
  EXPECT_EQ(wrong[0], right[0]);
  EXPECT_NE(wrong[2], right[2]);
}

}  // namespace
}  // namespace stepgate
