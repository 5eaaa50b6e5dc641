// SPDX-License-Identifier: MIT
// Carries out every launch of a ResNet's step on the GPU, on the operands that the references have
// left, and compares it with the reference: layer by layer, so that no difference grows from norm
// to norm. resnet_launches_test.cpp tests that a wrong launch would be noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/cudnn/open_cudnn.h"
#include "kernels/trial/cuda_trial.h"
#include "tests/numbers/launches_of_step.h"
#include "tests/numbers/pytorch_resnet.h"

namespace stepgate {
namespace {

// Throws std::runtime_error where there is no cuDNN, without which there is no convolution.
std::shared_ptr<Cudnn> cudnn_or_throw() {
  std::string reason;
  std::shared_ptr<Cudnn> cudnn = open_cudnn(&reason);
  if (cudnn == nullptr) throw std::runtime_error(reason);
  return cudnn;
}

class CudaResnetLaunches : public testing::Test {
 protected:
  KernelTrial carried_out(const KernelTrial& trial, bool in_place) {
    const DeviceOperands operands(
        trial, {.output = in_place ? Placement::Output::in_place : Placement::Output::apart});
    run_cuda(trial, operands, libraries_);
    EXPECT_TRUE(operands.guards_are_untouched());
    return operands.read_back();
  }

  void expect_as_the_reference(const LaunchOfStep& launch) {
    SCOPED_TRACE(launch.name + ": " + describe(launch.before, 0));
    const KernelTrial got = carried_out(launch.before, launch.in_place);
    EXPECT_EQ(difference_in_step(got, launch.after), "");
    const KernelTrial again = carried_out(launch.before, launch.in_place);
    for (std::size_t operand = 0; operand < got.operands.size(); ++operand) {
      const bool is_scratch = operand_of(got, operand).format == OperandFormat::scratch;
      if (is_scratch || is_clock(got, operand)) continue;
      EXPECT_EQ(got.operands[operand] == again.operands[operand], true)
          << "other bits: " << operand_of(got, operand).name;
    }
    record_errors(got, launch.after);
  }

  // Plants faults in the first launch of each kernel and dtype.
  void expect_faults_to_be_noticed(const LaunchOfStep& launch) {
    const KernelTrial& before = launch.before;
    const std::string_view kernel = before.recipe->kernel.name();
    if (!planted_.insert(std::string(kernel).append(name_of(before.dtype))).second) return;
    for (const PlantedFault& fault : faults_of(launch)) {
      EXPECT_TRUE(is_noticed(fault, carried_out(fault.before, launch.in_place), launch))
          << launch.name << ": " << fault.words;
    }
  }

  void expect_launches_as_the_references(const Knobs& knobs) {
    const StepPlan plan = plan_with_drawn_norms(knobs, 20);
    std::int64_t launches = 0;
    for_each_launch(plan, [&](const LaunchOfStep& launch) {
      ++launches;
      expect_as_the_reference(launch);
      expect_faults_to_be_noticed(launch);
    });
    // A convolution and its norm are at least six launches, forward and backward.
    EXPECT_GT(launches, 6 * knobs.model.layers);
  }

  // The largest errors are properties of the test's XML, as "batch_norm_apply_y_bf16".
  void TearDown() override {
    for (const auto& [what, error] : errors_) RecordProperty(what, testing::PrintToString(error));
  }

 private:
  void record_errors(const KernelTrial& got, const KernelTrial& expected) {
    for (std::size_t operand = 0; operand < expected.operands.size(); ++operand) {
      const KernelOperand& declared = operand_of(expected, operand);
      const bool is_number =
          declared.format == OperandFormat::storage || declared.format == OperandFormat::single;
      if (!is_number || got.operands[operand] == expected.operands[operand]) continue;
      double& largest =
          errors_[std::string(expected.recipe->kernel.name()) + "_" + std::string(declared.name) +
                  "_" + std::string(name_of(expected.dtype))];
      largest = std::max(largest, error_of_small_numbers(got, expected, operand));
    }
  }

  const std::shared_ptr<Cudnn> cudnn_ = cudnn_or_throw();
  CudaLibraries libraries_{cudnn_.get()};
  std::set<std::string> planted_;
  std::map<std::string, double> errors_;
};

Knobs resnet(std::int64_t layers, DType dtype, ModelStem stem, std::int64_t image) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::resnet;
  knobs.model.layers = layers;
  knobs.model.width = layers == 50 ? 64 : 8;
  knobs.model.image = image;
  knobs.model.classes = layers == 50 ? 1000 : 10;
  knobs.model.stem = stem;
  knobs.model.dtype = dtype;
  knobs.batch.size = 8;
  knobs.optim.kind = OptimKind::momentum;
  knobs.optim.master = is_16_bit(dtype);
  return knobs;
}

TEST_F(CudaResnetLaunches, OfResnet50InBf16AreAsTheReferences) {
  expect_launches_as_the_references(resnet(50, DType::bf16, ModelStem::imagenet, 64));
}

TEST_F(CudaResnetLaunches, OfSmallNetworksAreAsTheReferences) {
  for (const DType dtype : {DType::fp32, DType::tf32, DType::bf16, DType::fp16}) {
    expect_launches_as_the_references(resnet(14, dtype, ModelStem::cifar, 9));
    expect_launches_as_the_references(resnet(26, dtype, ModelStem::imagenet, 33));
    Knobs unfused = resnet(14, dtype, ModelStem::imagenet, 33);
    unfused.launch.fuse = Fuse::none;
    expect_launches_as_the_references(unfused);
  }
}

}  // namespace
}  // namespace stepgate
