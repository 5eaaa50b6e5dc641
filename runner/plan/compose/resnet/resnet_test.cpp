// SPDX-License-Identifier: MIT
// Tests the sizes of a ResNet's step, its operations, and what is refused.
// tests/numbers/pytorch_resnet_test.cpp checks its numbers.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "base/text/units.h"
#include "plan/analyse/find_races.h"
#include "plan/compose/resnet/resnet_shape.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"
#include "scenario/resnet_blocks.h"

namespace stepgate {
namespace {

Knobs resnet50() {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::resnet;
  knobs.model.layers = usual_resnet_layers;
  knobs.optim.kind = OptimKind::momentum;
  knobs.batch.size = 8;
  return knobs;
}

template <class Set>
StepPlan resnet_with(Set set) {
  Knobs knobs = resnet50();
  set(knobs);
  return plan_of(knobs);
}

std::int64_t parameters_of(const StepPlan& plan) {
  std::int64_t elements = 0;
  for (const Parameter& parameter : plan.parameters) elements += parameter.elements;
  return elements;
}

// torchvision's documentation has 25,557,032 parameters and 4.09 G multiply-adds for 224 pixels.
TEST(Resnet, HasTheParametersAndTheWorkOfTorchvisions) {
  const StepPlan plan = plan_of(resnet50());
  EXPECT_EQ(parameters_of(plan), 25'557'032);
  EXPECT_EQ(parameters_of(resnet_with([](Knobs& knobs) { knobs.model.layers = 101; })), 44'549'160);
  EXPECT_EQ(parameters_of(resnet_with([](Knobs& knobs) { knobs.model.layers = 152; })), 60'192'808);
  const double forward = 2 * 4.089e9;
  const double stem = 2.0 * 112 * 112 * 64 * 7 * 7 * 3;  // its images have no gradient
  EXPECT_NEAR(facts_of(plan).model_flops / 8, 3 * forward - stem, 2e-3 * 3 * forward);
}

// More channels are a longer sample, and a deeper first convolution and its gradient.
TEST(Resnet, ReadsMoreChannelsOfImagesInItsFirstConvolutionAlone) {
  const StepPlan three = plan_of(resnet50());
  const StepPlan eight = resnet_with([](Knobs& knobs) { knobs.model.image_channels = 8; });
  constexpr std::int64_t weights = 64 * 7 * 7 * 5, pixels = 224 * 224;
  EXPECT_EQ(parameters_of(eight) - parameters_of(three), weights);
  EXPECT_EQ(eight.batch_bytes - three.batch_bytes, 8 * pixels * 5 * 4);
  EXPECT_EQ(facts_of(eight).model_flops - facts_of(three).model_flops,
            8.0 * 2 * 2 * 112 * 112 * weights);
  EXPECT_EQ(eight.operations.size(), three.operations.size());
}

TEST(Resnet, HalvesTheImageFiveTimesAndRoundsUp) {
  const auto last_side = [](std::int64_t image, ModelStem stem) {
    Knobs knobs = resnet50();
    knobs.model.image = image;
    knobs.model.stem = stem;
    return ResnetParameters(knobs).blocks().back().third.shape.output_height();
  };
  EXPECT_EQ(last_side(224, ModelStem::imagenet), 7);
  EXPECT_EQ(last_side(225, ModelStem::imagenet), 8);
  EXPECT_EQ(last_side(32, ModelStem::imagenet), 1);
  EXPECT_EQ(last_side(1, ModelStem::imagenet), 1);
  EXPECT_EQ(last_side(32, ModelStem::cifar), 4);
}

// A step has 53 convolutions, each with a norm; 33 of them are GEMMs, and only the
// images have no gradient.
TEST(Resnet, LaunchesConvolutionsAndGemms) {
  const StepPlan plan = plan_of(resnet50());
  EXPECT_EQ(launches_of(plan, "convolution"), 20);
  EXPECT_EQ(launches_of(plan, "convolution_data_gradient"), 19);
  EXPECT_EQ(launches_of(plan, "convolution_weight_gradient"), 20);
  EXPECT_EQ(launches_of(plan, "matmul"), 3 * 33 + 2);
  EXPECT_EQ(launches_of(plan, "batch_norm_finish"), 53);
  EXPECT_EQ(launches_of(plan, "batch_norm_gradient_finish"), 53);
  EXPECT_EQ(launches_of(plan, "batch_norm_two_apply"), 4);
  EXPECT_EQ(launches_of(plan, "batch_norm_add_apply"), 12);
  EXPECT_EQ(find_race(plan), std::nullopt);
}

// torch.cuda.max_memory_allocated of PyTorch 2.11 on an H200, with channels_last, autocast to bf16
// and torch.compile. A step of 256 images whose gradients have memory of their own takes 11.8 GiB.
TEST(Resnet, TakesNoMoreMemoryThanPyTorch) {
  const auto gibibytes = [](std::int64_t images, Allocator with, AllocWhen when) {
    const StepPlan plan = resnet_with([&](Knobs& knobs) {
      knobs.model.dtype = DType::bf16;
      knobs.optim.master = true;
      knobs.batch.size = images;
      knobs.alloc.with = with;
      knobs.alloc.when = when;
    });
    return value(plan, Metric::peak_live) / gibibyte;
  };
  using enum Allocator;
  for (const auto& [images, pytorch] : {std::pair{256, 10.57}, {64, 2.89}}) {
    for (const Allocator with : {fixed, arena})
      EXPECT_LE(gibibytes(images, with, AllocWhen::never), 1.05 * pytorch);
    for (const Allocator with : {cuda, cuda_async, caching, expandable, first_fit})
      EXPECT_LE(gibibytes(images, with, AllocWhen::op), 1.05 * pytorch);
  }
}

// 33 norms with a relu, of which the stem's has a pool, and 16 with an addition are launches of
// their own; the 4 norms of shortcuts are no longer part of an addition.
TEST(Resnet, LaunchesNormsAdditionsAndRelusApartWithoutFusion) {
  const StepPlan fused = plan_of(resnet50());
  for (const bool inplace : {true, false}) {
    const StepPlan plan = resnet_with([=](Knobs& knobs) {
      knobs.launch.fuse = Fuse::none;
      knobs.model.inplace = inplace;
    });
    EXPECT_EQ(launches_of(plan, "batch_norm_apply"), 33 + 16 + 4);
    EXPECT_EQ(launches_of(plan, "relu"), 33 + 16);
    EXPECT_EQ(launches_of(plan, "add"), 16);
    EXPECT_EQ(launches_of(plan, "relu_gradient"), 33 + 16);
    EXPECT_EQ(launches_of(plan, "batch_norm_gradient_sums"), 53);
    EXPECT_EQ(launches_of(plan, "batch_norm_add_apply"), 0);
    EXPECT_EQ(launches_of(plan, "batch_norm_two_apply"), 0);
    EXPECT_EQ(launches_of(plan, "norm_pool"), 0);
    EXPECT_EQ(launches_of(plan, "max_pool") + launches_of(plan, "max_pool_gradient"), 2);
    EXPECT_EQ(facts_of(plan).model_flops, facts_of(fused).model_flops);
    EXPECT_EQ(find_race(plan), std::nullopt);
  }
  const auto by_pointwise = resnet_with([](Knobs& knobs) { knobs.launch.fuse = Fuse::pointwise; });
  EXPECT_EQ(by_pointwise.operations.size(), fused.operations.size());
}

// torch.cuda.max_memory_allocated of PyTorch 2.11 on an H200, with channels_last and autocast to
// bf16, without torch.compile. A relu in place takes as much as one that is not: the result of its
// norm is released before the step's peak.
TEST(Resnet, TakesNoMoreMemoryThanPyTorchWithoutFusion) {
  const auto gibibytes = [](std::int64_t images, bool inplace) {
    const StepPlan plan = resnet_with([=](Knobs& knobs) {
      knobs.model.dtype = DType::bf16;
      knobs.model.inplace = inplace;
      knobs.optim.master = true;
      knobs.batch.size = images;
      knobs.launch.fuse = Fuse::none;
      knobs.alloc.with = Allocator::caching;
      knobs.alloc.when = AllocWhen::op;
    });
    return value(plan, Metric::peak_live) / gibibyte;
  };
  for (const auto& [images, pytorch] : {std::pair{256, 11.01}, {64, 3.0}}) {
    EXPECT_LE(gibibytes(images, true), 1.05 * pytorch);
    EXPECT_NEAR(gibibytes(images, false) / gibibytes(images, true), 1, 1e-3);
  }
}

TEST(Resnet, DecodesImagesOfBytesInTheLaunchThatIngestsThem) {
  for (const std::int64_t parts : {1, 2}) {
    const auto plan_with = [&](BatchFormat format) {
      return resnet_with([&](Knobs& knobs) {
        knobs.batch.accumulate = parts;
        knobs.batch.format = format;
      });
    };
    const StepPlan words = plan_with(BatchFormat::fp32);
    const StepPlan bytes = plan_with(BatchFormat::uint8);
    EXPECT_EQ(4 * bytes.batch_bytes, words.batch_bytes);
    EXPECT_EQ(launches_of(words, "ingest"), parts);
    EXPECT_EQ(launches_of(bytes, "decode_images"), parts);
    EXPECT_EQ(bytes.operations.size(), words.operations.size());
    EXPECT_EQ(bytes.buffers.size(), words.buffers.size()) << "no words lie between";
    EXPECT_EQ(find_race(bytes), std::nullopt);
  }
}

// Recomputed blocks convolve and apply norms again, but neither sum nor finish them: 2 norms of
// each block, whose third norm only blocks that end no segment need again.
TEST(Resnet, ComputesBlocksAgainWithTheStatisticsThatItKept) {
  const StepPlan kept = plan_of(resnet50());
  const auto with_checkpoints = [](std::int64_t every) {
    return resnet_with([=](Knobs& knobs) { knobs.memory.checkpoint_every = every; });
  };
  double last_bytes = 0;
  for (const auto& [every, inner] : {std::pair{1, 0}, {2, 1 + 2 + 3 + 1}, {3, 2 + 2 + 4 + 2}}) {
    const StepPlan plan = with_checkpoints(every);
    EXPECT_EQ(find_race(plan), std::nullopt);
    const auto again = [&](const char* name) {
      return launches_of(plan, name) - launches_of(kept, name);
    };
    EXPECT_EQ(again("convolution") + again("matmul"), 52) << "all but the stem";
    EXPECT_EQ(again("batch_norm_apply"), 32);
    EXPECT_EQ(again("batch_norm_add_apply") + again("batch_norm_two_apply"), inner);
    EXPECT_EQ(again("batch_norm_sums") + again("batch_norm_finish"), 0);
    EXPECT_EQ(facts_of(plan).model_flops, facts_of(kept).model_flops);
    EXPECT_GT(value(plan, Metric::peak_live), last_bytes);
    last_bytes = value(plan, Metric::peak_live);
  }
  EXPECT_LT(last_bytes, value(kept, Metric::peak_live));
}

// The results of 32 norms inside of blocks and of 7 that end blocks are computed again, and no
// convolution.
TEST(Resnet, AppliesNormsAgain) {
  const StepPlan kept = plan_of(resnet50());
  const StepPlan plan = resnet_with(
      [](Knobs& knobs) { knobs.memory.checkpoint_every = MemoryKnobs::checkpoint_norms; });
  EXPECT_EQ(find_race(plan), std::nullopt);
  const auto again = [&](const char* name) {
    return launches_of(plan, name) - launches_of(kept, name);
  };
  EXPECT_EQ(again("batch_norm_apply"), 32);
  EXPECT_EQ(again("batch_norm_add_apply"), 3);
  EXPECT_EQ(again("batch_norm_two_apply"), 4);
  EXPECT_EQ(value(plan, Metric::launches_per_step) - value(kept, Metric::launches_per_step), 39);
  EXPECT_EQ(facts_of(plan).model_flops, facts_of(kept).model_flops);
  EXPECT_LT(value(plan, Metric::peak_live), value(kept, Metric::peak_live));
}

// Each convolution's result and its gradient are copied to NCHW and back, and so is the result of
// one that is computed again. Nothing else is launched, and the copies share a buffer.
TEST(Resnet, CopiesWhatConvolutionsMakeToNchwAndBack) {
  constexpr std::int64_t convolutions = 53, again = 52;
  constexpr auto norms = MemoryKnobs::checkpoint_norms;
  for (const auto& [every, parts, copies] : {std::tuple{std::int64_t{0}, 1, 4 * convolutions},
                                             {0, 2, 8 * convolutions},
                                             {1, 1, 4 * convolutions + 2 * again},
                                             {norms, 1, 4 * convolutions}}) {
    const auto plan_with = [&](bool layout_copies) {
      return resnet_with([&](Knobs& knobs) {
        knobs.memory.checkpoint_every = every;
        knobs.batch.accumulate = parts;
        knobs.model.layout_copies = layout_copies;
      });
    };
    const StepPlan without = plan_with(false), plan = plan_with(true);
    EXPECT_EQ(launches_of(without, "change_layout"), 0);
    EXPECT_EQ(launches_of(plan, "change_layout"), copies);
    EXPECT_EQ(plan.operations.size(), without.operations.size() + static_cast<std::size_t>(copies));
    EXPECT_EQ(plan.buffers.size(), without.buffers.size() + 1);
    EXPECT_EQ(facts_of(plan).model_flops, facts_of(without).model_flops);
    EXPECT_EQ(find_race(plan), std::nullopt);
  }
}

// The smaller stem has neither a pool nor its choices.
TEST(Resnet, PoolsNothingBehindTheSmallerStem) {
  const StepPlan plan = resnet_with([](Knobs& knobs) {
    knobs.model.stem = ModelStem::cifar;
    knobs.model.image = 32;
  });
  EXPECT_EQ(launches_of(plan, "norm_pool"), 0);
  EXPECT_EQ(launches_of(plan, "batch_norm_apply"), 33);
}

TEST(Resnet, IsTooLargeForAPlanRatherThanWrong) {
  Knobs knobs = resnet50();
  knobs.model.image = 4096;
  knobs.model.width = 1024;
  knobs.batch.size = 1048576;
  EXPECT_NE(refusal_of(knobs).find("than a plan counts"), std::string::npos) << refusal_of(knobs);
}

}  // namespace
}  // namespace stepgate
