// SPDX-License-Identifier: MIT
// Tests that resnet_launches_cuda_test.cpp would notice a wrong launch, whichever of a step it is.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "tests/numbers/launches_of_step.h"
#include "tests/numbers/pytorch_resnet.h"

namespace stepgate {
namespace {

StepPlan small_resnet(DType dtype, ModelStem stem, Fuse fuse = Fuse::pointwise) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::resnet;
  knobs.model.layers = 14;
  knobs.model.width = 8;
  knobs.model.image = stem == ModelStem::cifar ? 9 : 33;
  knobs.model.classes = 10;
  knobs.model.stem = stem;
  knobs.model.dtype = dtype;
  knobs.launch.fuse = fuse;
  knobs.batch.size = 4;
  knobs.optim.kind = OptimKind::momentum;
  knobs.optim.master = is_16_bit(dtype);
  return plan_with_drawn_norms(knobs, 20);
}

KernelTrial left_by_reference(KernelTrial trial, bool in_place) {
  in_place ? run_reference_in_place(trial) : run_reference(trial);
  return trial;
}

TEST(ResnetLaunches, DifferWhereAnOperandOrAnAttributeIsAnother) {
  std::set<std::string_view> kernels;
  const auto expect_to_differ = [&](const StepPlan& plan, const auto& is_tested) {
    for_each_launch(plan, [&](const LaunchOfStep& launch) {
      if (!is_tested(launch.before.recipe->kernel.name())) return;
      const KernelTrial got = left_by_reference(launch.before, launch.in_place);
      EXPECT_EQ(difference_in_step(got, launch.after), "") << launch.name;
      for (const PlantedFault& fault : faults_of(launch)) {
        const KernelTrial wrong = left_by_reference(fault.before, launch.in_place);
        EXPECT_TRUE(is_noticed(fault, wrong, launch)) << launch.name << ": " << fault.words;
        kernels.insert(launch.before.recipe->kernel.name());
      }
    });
  };
  const auto all = [](std::string_view) { return true; };
  expect_to_differ(small_resnet(DType::fp32, ModelStem::cifar), all);
  expect_to_differ(small_resnet(DType::bf16, ModelStem::imagenet), all);
  expect_to_differ(small_resnet(DType::fp16, ModelStem::cifar), all);
  // Where nothing is fused, norms compute the same with a relu: their gradients are 0 already.
  const std::set<std::string_view> fused = kernels;
  expect_to_differ(small_resnet(DType::bf16, ModelStem::imagenet, Fuse::none),
                   [&](std::string_view kernel) { return !fused.contains(kernel); });
  EXPECT_GE(kernels.size(), fused.size() + 5) << "norms, additions, relus and pools apart";
  EXPECT_GT(fused.size(), 20U);
}

}  // namespace
}  // namespace stepgate
