// SPDX-License-Identifier: MIT
// Steps of models of images with checkpoints, and with copies of what convolutions make, are those
// that keep everything and copy nothing, to the bit, on every device that computes numbers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/compose/build_step_plan.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

std::vector<PlannedStep> plans_of(ModelKind kind, DType dtype) {
  Scenario scenario;
  scenario.name = "image_checkpoints";
  constexpr int norms = MemoryKnobs::checkpoint_norms;
  struct Way {
    int every = 0;
    bool copies = false;
    LaunchVia via = LaunchVia::stream;
  };
  for (const auto& [every, copies, via] :
       {Way{0}, Way{1}, Way{2}, Way{3}, Way{norms}, Way{0, true}, Way{2, true, LaunchVia::graph}}) {
    Knobs knobs;
    knobs.model.layout_copies = copies;
    knobs.launch.via = via;
    knobs.transfer.host = HostMemory::resident;
    knobs.model.kind = kind;
    knobs.model.dtype = dtype;
    knobs.model.width = 8;
    knobs.batch.size = 2;
    knobs.memory.checkpoint_every = every;
    if (kind == ModelKind::unet) {
      knobs.model.layers = 1;
      knobs.model.image = 8;
      knobs.optim.kind = OptimKind::adamw;
    } else {
      knobs.model.layers = 50;
      knobs.model.stem = ModelStem::cifar;
      knobs.model.image = 9;
      knobs.model.classes = 7;
      knobs.optim.kind = OptimKind::momentum;
    }
    scenario.variants.push_back({.name = (copies ? "copied_by_" : "by_") + std::to_string(every),
                                 .knobs = knobs,
                                 .place = {}});
  }
  return with_facts(build_step_plans(scenario, 20261129));
}

class ImageCheckpoints : public testing::TestWithParam<ModelKind> {};

TEST_P(ImageCheckpoints, AreEqualToTheBit) {
  for (const DeviceCase& test : devices_with_numbers()) {
    const auto device = test.make();
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      const std::vector<PlannedStep> plans = plans_of(GetParam(), dtype);
      const StepResult expected = device->load(plans.front())->run({.steps = 3, .tensors = true});
      EXPECT_NE(expected.losses.back(), expected.losses.front());
      for (const StepPlan& plan : plans) {
        SCOPED_TRACE(test.name + " " + plan.variant);
        const StepResult found = device->load(plan)->run({.steps = 3, .tensors = true});
        EXPECT_EQ(found.losses, expected.losses);
        ASSERT_EQ(found.tensors.size(), expected.tensors.size());
        for (std::size_t tensor = 0; tensor < found.tensors.size(); ++tensor) {
          EXPECT_EQ(found.tensors[tensor].name, expected.tensors[tensor].name);
          EXPECT_EQ(found.tensors[tensor].values, expected.tensors[tensor].values);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ImageCheckpoints,
                         testing::Values(ModelKind::resnet, ModelKind::unet),
                         [](const auto& model) {
                           return model.param == ModelKind::resnet ? "resnet" : "unet";
                         });

}  // namespace
}  // namespace stepgate
