// SPDX-License-Identifier: MIT
// Tests the sizes of a UNet's step, its operations, and what is refused.
// tests/numbers/pytorch_unet_test.cpp checks its numbers.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/kernels.h"
#include "plan/analyse/find_races.h"
#include "plan/compose/unet/unet_shape.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"
#include "scenario/unet_levels.h"

namespace stepgate {
namespace {

Knobs usual_unet() {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::unet;
  knobs.model.layers = usual_unet_layers;
  knobs.model.width = usual_unet_width;
  knobs.model.image = usual_unet_image;
  knobs.optim.kind = OptimKind::adamw;
  return knobs;
}

// UNet2DModel of diffusers with these channels has as many. The convolutions of single pixels and
// of 3 x 3 take 9,874 GFLOP at a batch of 64; attention and the times are added by hand.
TEST(Unet, HasTheParametersAndTheWorkOfDiffusers) {
  const StepPlan plan = plan_of(usual_unet());
  std::int64_t parameters = 0;
  for (const Parameter& parameter : plan.parameters) parameters += parameter.elements;
  EXPECT_EQ(parameters, 68'793'091);
  constexpr double samples = 64, convolutions = 9.874e12;
  constexpr double attention = 3 * samples * 4 * (5.0 * 256 * 256 * 256 + 64.0 * 64 * 512);
  constexpr double times = 3 * samples * 2 * (128.0 * 512 + 512 * 512 + 512 * 6784);
  EXPECT_NEAR(facts_of(plan).model_flops, convolutions + attention + times, 1e-4 * convolutions);
}

// Images of four channels are those that an autoencoder of a latent diffusion makes.
TEST(Unet, PredictsTheNoiseOfEveryChannelOfItsImages) {
  Knobs knobs = usual_unet();
  knobs.model.image_channels = 4;
  const UnetParameters parameters(knobs);
  EXPECT_EQ(parameters.conv_in().shape.channels, 4);
  EXPECT_EQ(parameters.conv_out().shape.outputs, 4);
  EXPECT_EQ(plan_of(knobs).batch_bytes, 64 * (4 * 64 * 64 + 1) * 4);
}

// There are 22 residual blocks with two norms, 6 of attention with one, and one before the end. 14
// of the residual blocks have other channels than their input.
TEST(Unet, LaunchesConvolutionsNormsAndGemms) {
  const StepPlan plan = plan_of(usual_unet());
  constexpr std::int64_t residuals = 22, attentions = 6, norms = 2 * residuals + attentions + 1;
  constexpr std::int64_t convolutions = 2 * residuals + 2 + 3 + 3;
  EXPECT_EQ(launches_of(plan, "convolution"), convolutions);
  EXPECT_EQ(launches_of(plan, "convolution_data_gradient"), convolutions - 1);
  EXPECT_EQ(launches_of(plan, "convolution_weight_gradient"), convolutions);
  for (const char* kernel :
       {"group_norm_sums", "group_norm_finish", "group_norm_apply", "group_norm_gradient_sums",
        "group_norm_gradient_finish", "group_norm_gradient_apply"})
    EXPECT_EQ(launches_of(plan, kernel), norms) << kernel;
  EXPECT_EQ(launches_of(plan, "softmax"), attentions);
  EXPECT_EQ(launches_of(plan, "upsample"), 3);
  EXPECT_EQ(launches_of(plan, "add"), 12);
  EXPECT_EQ(launches_of(plan, "linear"), 2 + residuals + attentions + 14);
  EXPECT_EQ(find_race(plan), std::nullopt);
}

// Without fusion, or where heads are no width of tensor cores, attention is GEMMs and a softmax.
// The heads of a width of 16 are 32 wide in the third level, and 64 in the middle.
TEST(Unet, FusesAttentionIn16BitsWhereTensorCoresServeItsHeads) {
  const auto with = [](DType dtype, Fuse fuse, std::int64_t width) {
    Knobs knobs = usual_unet();
    knobs.model.dtype = dtype;
    knobs.model.width = width;
    knobs.launch.fuse = fuse;
    return plan_of(knobs);
  };
  const StepPlan fused = with(DType::bf16, Fuse::attention, usual_unet_width);
  const StepPlan by_gemms = with(DType::bf16, Fuse::none, usual_unet_width);
  const auto expect = [](const StepPlan& plan, std::int64_t launches, std::int64_t softmaxes) {
    EXPECT_EQ(launches_of(plan, "attention"), launches);
    EXPECT_EQ(launches_of(plan, "attention_gradient"), launches);
    EXPECT_EQ(launches_of(plan, "softmax"), softmaxes);
    EXPECT_EQ(launches_of(plan, "softmax_gradient"), softmaxes);
    EXPECT_EQ(find_race(plan), std::nullopt);
  };
  expect(fused, 6, 0);
  expect(by_gemms, 0, 6);
  expect(with(DType::bf16, Fuse::pointwise, usual_unet_width), 0, 6);
  expect(with(DType::fp32, Fuse::attention, usual_unet_width), 0, 6);
  expect(with(DType::fp16, Fuse::attention, 16), 1, 5);
  EXPECT_EQ(facts_of(fused).model_flops, facts_of(by_gemms).model_flops);
  EXPECT_LT(value(fused, Metric::peak_live), value(by_gemms, Metric::peak_live));
  EXPECT_EQ(fused.operations.size() + 6 * (5 - 1 + 7 - 1), by_gemms.operations.size());
}

// A concatenation is two operands of a norm.
TEST(Unet, ReadsEverySkipOnceBesideTheStream) {
  const UnetParameters parameters(usual_unet());
  std::set<std::size_t> read;
  for (const UnetLayer& layer : parameters.layers()) {
    if (!layer.skip) continue;
    EXPECT_TRUE(read.insert(*layer.skip).second) << layer.name;
    const auto& norm = std::get<UnetResidual>(layer.what).norm1;
    const int from = parameters.skips()[*layer.skip];
    const std::int64_t others =
        from < 0 ? usual_unet_width : parameters.layers()[static_cast<std::size_t>(from)].channels;
    EXPECT_EQ(norm.shape.others, others) << layer.name;
  }
  EXPECT_EQ(read.size(), parameters.skips().size());
  EXPECT_EQ(read.size(), 12u);
}

TEST(Unet, DecodesImagesOfBytesInTheLaunchThatIngestsThem) {
  Knobs knobs = usual_unet();
  const StepPlan words = plan_of(knobs);
  knobs.batch.format = BatchFormat::uint8;
  const StepPlan bytes = plan_of(knobs);
  EXPECT_EQ(4 * bytes.batch_bytes, words.batch_bytes);
  EXPECT_EQ(launches_of(words, "decode_images"), 0);
  EXPECT_EQ(launches_of(bytes, "decode_images"), 1);
  EXPECT_EQ(launches_of(bytes, "ingest"), 0);
  EXPECT_EQ(bytes.buffers.size(), words.buffers.size()) << "no words lie between";
}

// A recomputed residual block ends with its second norm, attention with the merged heads and
// upsampling with the doubled image, unless a later layer of the segment reads what follows.
TEST(Unet, ComputesLayersAgainWithTheStatisticsThatItKept) {
  const StepPlan kept = plan_of(usual_unet());
  const auto with_checkpoints = [](std::int64_t every) {
    Knobs knobs = usual_unet();
    knobs.memory.checkpoint_every = every;
    return plan_of(knobs);
  };
  constexpr std::int64_t residuals = 22, attentions = 6, norms = 2 * residuals + attentions;
  struct Case {
    std::int64_t every, convolutions, softmaxes;
  };
  for (const auto& [every, convolutions, softmaxes] :
       {Case{1, residuals, attentions}, Case{3, residuals + 13, attentions},
        Case{MemoryKnobs::checkpoint_norms, 0, 0}}) {
    const StepPlan plan = with_checkpoints(every);
    EXPECT_EQ(find_race(plan), std::nullopt);
    const auto again = [&](const char* name) {
      return launches_of(plan, name) - launches_of(kept, name);
    };
    EXPECT_EQ(again("convolution"), convolutions) << every;
    EXPECT_EQ(again("softmax"), softmaxes) << every;
    EXPECT_EQ(again("group_norm_apply"), norms) << every;
    EXPECT_EQ(again("group_norm_sums") + again("group_norm_finish"), 0) << every;
    EXPECT_EQ(facts_of(plan).model_flops, facts_of(kept).model_flops) << every;
    EXPECT_LT(value(plan, Metric::peak_live), value(kept, Metric::peak_live)) << every;
  }
}

// A shortcut's convolution is two GEMMs with one result. As in a ResNet, nothing else is launched.
TEST(Unet, CopiesWhatConvolutionsMakeToNchwAndBack) {
  constexpr std::int64_t shortcuts = 14;
  for (const std::int64_t every : {0, 1, 3}) {
    Knobs knobs = usual_unet();
    knobs.memory.checkpoint_every = every;
    const StepPlan without = plan_of(knobs);
    knobs.model.layout_copies = true;
    const StepPlan plan = plan_of(knobs);
    // A shortcut computed again is that of a layer whose second convolution is.
    std::int64_t copies = 2 * launches_of(plan, "convolution") +
                          2 * launches_of(plan, "convolution_weight_gradient") + 4 * shortcuts;
    for (const Operation& operation : plan.operations)
      if (operation.name.starts_with("again: ") && operation.name.ends_with("conv_shortcut.weight"))
        copies += 2;
    EXPECT_EQ(launches_of(without, "change_layout"), 0);
    EXPECT_EQ(launches_of(plan, "change_layout"), copies) << every;
    EXPECT_EQ(plan.operations.size(), without.operations.size() + static_cast<std::size_t>(copies));
    EXPECT_EQ(find_race(plan), std::nullopt);
  }
}

// Gradients overwrite activations, so that few buffers lie unused at the peak.
TEST(Unet, HoldsLittleMoreThanItNeeds) {
  for (const std::int64_t every :
       {MemoryKnobs::checkpoint_norms, std::int64_t{0}, std::int64_t{1}}) {
    Knobs knobs = usual_unet();
    knobs.model.dtype = DType::bf16;
    knobs.memory.checkpoint_every = every;
    const StepPlan plan = plan_of(knobs);
    EXPECT_LT(value(plan, Metric::peak_live), 1.06 * value(plan, Metric::need)) << every;
  }
}

TEST(Unet, HasAtMost32GroupsOfAtLeastFourChannels) {
  Knobs knobs = usual_unet();
  for (const std::int64_t width : {8, 24, 128, 192}) {
    knobs.model.width = width;
    const UnetParameters parameters(knobs);
    for (const UnetNorm* norm : parameters.norms()) {
      const std::int64_t channels = norm->shape.channels();
      EXPECT_EQ(channels % norm->shape.groups, 0) << norm->name;
      EXPECT_LE(norm->shape.groups, 32) << norm->name;
      EXPECT_GE(channels, 4 * norm->shape.groups) << norm->name;
    }
    if (width != usual_unet_width) continue;
    for (const UnetNorm* norm : parameters.norms()) EXPECT_EQ(norm->shape.groups, 32);
  }
}

TEST(Unet, IsTooLargeForAPlanRatherThanWrong) {
  Knobs knobs = usual_unet();
  knobs.model.image = 4096;
  knobs.model.width = 1024;
  knobs.batch.size = 1048576;
  EXPECT_NE(refusal_of(knobs).find("make the step smaller"), std::string::npos)
      << refusal_of(knobs);
}

}  // namespace
}  // namespace stepgate
