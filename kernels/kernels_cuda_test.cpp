// SPDX-License-Identifier: MIT
// Compares every kernel's CUDA launch with its host reference, at every shape, dtype and attribute
// of its recipe, on random numbers. kernels_test.cpp tests the references themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/catalogue.h"
#include "kernels/cudnn/open_cudnn.h"
#include "kernels/kernels.h"
#include "kernels/stopwatch.h"
#include "kernels/trial/cuda_trial.h"

namespace stepgate {

// Prints a recipe in GoogleTest's messages.
void PrintTo(const TrialRecipe& recipe, std::ostream* out) {
  *out << recipe.kernel.name();
}

namespace {

// cuDNN, without which there is no convolution; nullptr for other kernels, which are the project's
// own or cuBLASLt's. Throws std::runtime_error where it cannot be opened.
std::shared_ptr<Cudnn> cudnn_for(const TrialRecipe& recipe) {
  if (!recipe.shapes.front().holds<ConvolutionShape>()) return nullptr;
  std::string reason;
  std::shared_ptr<Cudnn> cudnn = open_cudnn(&reason);
  if (cudnn == nullptr) throw std::runtime_error(reason);
  return cudnn;
}

class CudaKernel : public testing::TestWithParam<TrialRecipe> {
 protected:
  // Runs the trial on the GPU and returns its operands afterwards; the guard zones must be intact.
  KernelTrial carried_out(const KernelTrial& trial, Placement placement) {
    const DeviceOperands operands(trial, placement);
    run_cuda(trial, operands, libraries_);
    EXPECT_TRUE(operands.guards_are_untouched());
    return operands.read_back();
  }

  template <class Check>
  void for_each_trial(Check check) {
    const std::uint64_t seed = std::random_device{}();
    for (const KernelTrial& trial : all_trials(GetParam(), seed)) {
      SCOPED_TRACE(describe(trial, seed));
      check(trial);
      if (HasFatalFailure()) return;
    }
  }

 private:
  const std::shared_ptr<Cudnn> cudnn_ = cudnn_for(GetParam());
  CudaLibraries libraries_{cudnn_.get()};
};

TEST_P(CudaKernel, AgreesWithTheReferenceAndTouchesNothingElse) {
  for_each_trial([this](const KernelTrial& trial) {
    KernelTrial expected = trial;
    run_reference(expected);
    EXPECT_EQ(difference(carried_out(trial, {}), expected), "");
  });
}

TEST_P(CudaKernel, GivesTheSameBitsTwice) {
  for_each_trial([this](const KernelTrial& trial) {
    const KernelTrial first = carried_out(trial, {});
    const KernelTrial second = carried_out(trial, {});
    for (std::size_t operand = 0; operand < trial.operands.size(); ++operand) {
      if (is_clock(trial, operand)) continue;
      if (operand_of(trial, operand).format == OperandFormat::scratch) continue;
      ASSERT_EQ(first.operands[operand], second.operands[operand]) << "operand " << operand;
    }
  });
}

TEST_P(CudaKernel, TakesOperandsThatAreAlignedToTheirNumbersOnly) {
  for_each_trial([this](const KernelTrial& trial) {
    KernelTrial expected = trial;
    run_reference(expected);
    EXPECT_EQ(difference(carried_out(
                             trial, {.offset_bytes = operand_alignment(kernel(GetParam().kernel))}),
                         expected),
              "");
  });
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CudaKernel, testing::ValuesIn(trial_recipes()),
                         [](const auto& recipe) {
                           return std::string(recipe.param.kernel.name());
                         });

class CudaKernelInPlace : public CudaKernel {};

TEST_P(CudaKernelInPlace, AgreesWithTheReference) {
  const Kernel& row = kernel(GetParam().kernel);
  const std::size_t output = operand_in_place(row);
  const std::size_t replaced = row.operands[output].may_replace;
  for_each_trial([&](KernelTrial trial) {
    if (operand_bytes(trial, output) != operand_bytes(trial, replaced)) return;
    const KernelTrial got = carried_out(trial, {.output = Placement::Output::in_place});
    run_reference_in_place(trial);
    EXPECT_EQ(difference(got, trial, output), "");
  });
}

std::vector<TrialRecipe> in_place_recipes() {
  std::vector<TrialRecipe> recipes;
  for (const TrialRecipe& recipe : trial_recipes()) {
    if (operand_in_place(kernel(recipe.kernel)) != no_operand) recipes.push_back(recipe);
  }
  return recipes;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CudaKernelInPlace, testing::ValuesIn(in_place_recipes()),
                         [](const auto& recipe) {
                           return std::string(recipe.param.kernel.name());
                         });

constexpr std::int64_t kibibyte = 1024;
// The shared memory of a block on compute capability 8.6, 8.9 and 12.0, and the amount that a
// launch may use without a request.
constexpr std::int64_t shared_bytes_of_86 = 99 * kibibyte, unasked_shared_bytes = 48 * kibibyte;

KernelTrial carried_out_with(const KernelTrial& trial, std::int64_t shared_bytes) {
  const CudaLibraries libraries(nullptr, shared_bytes);
  const DeviceOperands operands(trial, {});
  run_cuda(trial, operands, libraries);
  return operands.read_back();
}

void expect_all_trials_with(std::string_view name, std::int64_t shared_bytes) {
  const std::uint64_t seed = std::random_device{}();
  for (const KernelTrial& trial : all_trials(trial_recipe(name), seed)) {
    SCOPED_TRACE(describe(trial, seed));
    KernelTrial expected = trial;
    run_reference(expected);
    ASSERT_EQ(difference(carried_out_with(trial, shared_bytes), expected), "");
  }
}

TEST(CudaSharedMemory, KernelsChooseByWhatABlockMayHave) {
  for (const char* name :
       {"layer_norm_gradient", "rms_norm_gradient", "cross_entropy", "scaled_cross_entropy"}) {
    expect_all_trials_with(name, shared_bytes_of_86);
    expect_all_trials_with(name, unasked_shared_bytes);
  }
  for (const char* name : {"attention", "attention_gradient"})
    expect_all_trials_with(name, shared_bytes_of_86);
}

// Rows of 1,024 packs are kept in 112 KiB of shared memory if a block may use that much. Otherwise
// another kernel processes them, which sums in another order.
TEST(CudaSharedMemory, LongRowsOfANormsGradientAreNotHeldWhereTheyDoNotFit) {
  const kernels::LayerNormGradient::Attributes attributes{};
  const KernelTrial trial = make_trial<kernels::LayerNormGradient>(
      {.rows = 600, .columns = 4096, .parts = 264}, DType::fp32, attributes, 7);
  const KernelTrial held = carried_out_with(trial, 0);
  EXPECT_EQ(carried_out_with(trial, 113 * kibibyte).operands, held.operands);
  const KernelTrial not_held = carried_out_with(trial, shared_bytes_of_86);
  // The sums within a row are added in another order; the sums over rows are not.
  EXPECT_TRUE(not_held.operands[4] != held.operands[4]);
  KernelTrial expected = trial;
  run_reference(expected);
  EXPECT_EQ(difference(not_held, expected), "");
}

TEST(CudaSharedMemory, WhatFitsNowhereIsSaidBeforeALaunch) {
  const KernelTrial trial = make_trial<kernels::Attention>(
      {.rows = 256, .columns = 256, .tokens = 128, .heads = 2}, DType::bf16, {}, 7);
  try {
    (void)carried_out_with(trial, unasked_shared_bytes);
    FAIL() << "carried out";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what())
                  .find("attention: needs 98304 bytes of shared memory a block, "
                        "of which this GPU has "),
              0U)
        << error.what();
  }
}

// Recipes have no matrix so large that a thread walks down rows several times.
void expect_on_device(const KernelTrial& trial, std::uint64_t seed) {
  SCOPED_TRACE(describe(trial, seed));
  const CudaLibraries libraries;
  const DeviceOperands operands(trial, {});
  run_cuda(trial, operands, libraries);
  KernelTrial expected = trial;
  run_reference(expected);
  EXPECT_EQ(difference(operands.read_back(), expected), "");
}

TEST(CudaBatchNorm, WalksDownTallMatrices) {
  const std::uint64_t seed = std::random_device{}();
  constexpr MatrixShape tall{70'001, 128};
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    expect_on_device(make_trial<kernels::BatchNormApply>(tall, dtype, {.relu = true}, seed), seed);
    expect_on_device(make_trial<kernels::BatchNormGradientApply>(tall, dtype, {.relu = true}, seed),
                     seed);
    expect_on_device(
        make_trial<kernels::BatchNormSums>({tall.rows, tall.columns, 264}, dtype, {}, seed), seed);
  }
}

TEST(CudaGroupNorm, WalksDownTallImages) {
  const std::uint64_t seed = std::random_device{}();
  constexpr GroupNormShape tall{30, 4097, 32, 16, 12};
  constexpr GroupNormPartsShape in_parts{30, 4097, 32, 16, 12, group_norm_parts(30, 4097)};
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    expect_on_device(make_trial<kernels::GroupNormSums>(in_parts, dtype, {}, seed), seed);
    expect_on_device(make_trial<kernels::GroupNormApply>(tall, dtype, {.silu = true}, seed), seed);
    expect_on_device(
        make_trial<kernels::GroupNormGradientSums>(in_parts, dtype, {.silu = true}, seed), seed);
    expect_on_device(make_trial<kernels::GroupNormGradientApply>(
                         tall, dtype, {.silu = true, .accumulate = true}, seed),
                     seed);
  }
}

// A NaN wins its windows, wherever it is in them.
TEST(CudaNormPool, TakesANaNWhereverItIs) {
  const CudaLibraries libraries;
  const std::uint64_t seed = std::random_device{}();
  constexpr kernels::NormPool::Shape shape{.images = 2, .height = 9, .width = 8, .columns = 16};
  for (std::int64_t pixel = 0; pixel < shape.height * shape.width; ++pixel) {
    KernelTrial trial = make_trial<kernels::NormPool>(
        shape, DType::fp32, {.window = 3, .stride = 2, .padding = 1}, seed);
    SCOPED_TRACE(describe(trial, seed));
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(trial.operands[0].data() + pixel * shape.columns * 4, &nan, sizeof nan);
    const DeviceOperands operands(trial, {});
    run_cuda(trial, operands, libraries);
    const KernelTrial got = operands.read_back();
    run_reference(trial);
    EXPECT_EQ(got.operands[3], trial.operands[3]) << "pixel " << pixel;
    for (std::int64_t i = 0; i < value_count(trial, 2); ++i)
      ASSERT_EQ(std::isnan(value_at(got, 2, i)), std::isnan(value_at(trial, 2, i))) << i;
  }
}

// Recipes have fewer strips of images than blocks, and then every block has one.
TEST(CudaImageLayer, WalksThroughManyStrips) {
  constexpr ConvolutionShape many{.images = 100,
                                  .height = 64,
                                  .width = 64,
                                  .channels = 3,
                                  .outputs = 64,
                                  .window = 7,
                                  .stride = 2,
                                  .padding = 3};
  const CudaLibraries libraries;
  const std::uint64_t seed = std::random_device{}();
  for (KernelTrial trial :
       {make_trial<kernels::Convolution>(many, DType::bf16, {}, seed),
        make_trial<kernels::ConvolutionWeightGradient>(many, DType::bf16, {}, seed)}) {
    SCOPED_TRACE(describe(trial, seed));
    const DeviceOperands operands(trial, {});
    run_cuda(trial, operands, libraries);  // cuDNN is not needed
    std::vector<KernelChoice> choices;
    LaunchContext context = libraries.context();
    context.choices = &choices;
    const KernelRef& kernel_of_images = trial.recipe->kernel;
    (void)kernel(kernel_of_images).prepare(trial.shape, trial.dtype, trial.attributes, context);
    ASSERT_EQ(choices.size(), 1U);
    EXPECT_EQ(choices[0].kernel, kernel_of_images.name());
    EXPECT_EQ(choices[0].library, "");
    run_reference(trial);
    EXPECT_EQ(difference(operands.read_back(), trial), "");
  }
}

TEST(CudaCrossEntropy, SurvivesLogitsWhoseExponentialOverflows) {
  const std::uint64_t seed = std::random_device{}();
  KernelTrial trial = make_trial<kernels::CrossEntropy>({33, 300}, DType::fp32, {}, seed);
  SCOPED_TRACE(describe(trial, seed));
  auto* logits = reinterpret_cast<float*>(trial.operands[0].data());
  for (std::int64_t i = 0; i < value_count(trial, 0); ++i) logits[i] *= 1000;
  const CudaLibraries libraries;
  const DeviceOperands operands(trial, {});
  run_cuda(trial, operands, libraries);
  const KernelTrial got = operands.read_back();
  run_reference(trial);
  EXPECT_LE(relative_error(got, trial, 2), 1e-4);
  EXPECT_LE(relative_error(got, trial, 3), 1e-5);
}

// The widths cover rows of single numbers, rows of packs, rows that shared memory holds, and rows
// that it does not.
TEST(CudaCrossEntropy, IgnoresColumnsBeyondTheClassesAndRowsOfPadding) {
  const CudaLibraries libraries;
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    for (const std::int64_t columns : {12, 301, 304, 16648, 50304, 131072}) {
      const std::uint64_t seed = std::random_device{}();
      const std::int64_t classes = columns - 7;
      KernelTrial trial = make_trial<kernels::CrossEntropy>(
          {5, columns}, dtype, kernels::CrossEntropy::Attributes{.classes = classes}, seed);
      SCOPED_TRACE(describe(trial, seed));
      auto* labels = reinterpret_cast<std::int32_t*>(trial.operands[1].data());
      for (int row = 0; row < 5; ++row) labels[row] %= static_cast<std::int32_t>(classes);
      labels[1] = labels[4] = -1;
      const DeviceOperands operands(trial, {});
      run_cuda(trial, operands, libraries);
      const KernelTrial got = operands.read_back();
      run_reference(trial);
      EXPECT_LE(relative_error(got, trial, 2), dtype == DType::fp32 ? 1e-4 : 1e-2);
      EXPECT_LE(relative_error(got, trial, 3), 1e-5);
      for (std::int64_t c = classes; c < columns; ++c) EXPECT_EQ(value_at(got, 2, c), 0) << c;
      for (const std::int64_t row : {1, 4}) {
        EXPECT_EQ(value_at(got, 3, row), 0);
        for (std::int64_t c = 0; c < columns; ++c)
          EXPECT_EQ(value_at(got, 2, row * columns + c), 0) << row << ' ' << c;
      }
    }
  }
}

TEST(CudaSpin, LastsAsLongAsItWasTold) {
  const CudaLibraries libraries;
  const KernelTrial trial = make_trial<kernels::Spin>({}, DType::fp32, {2000}, 1);
  const DeviceOperands operands(trial, {});
  const Launch launch =
      kernel("spin").prepare(trial.shape, trial.dtype, trial.attributes, libraries.context());
  Stopwatch stopwatch;
  const double seconds = stopwatch.seconds_each(1, [&] { launch(operands.pointers(), nullptr); });
  EXPECT_GE(seconds, 1.99e-3);
  EXPECT_LE(seconds, 2.5e-3);
}

}  // namespace
}  // namespace stepgate
