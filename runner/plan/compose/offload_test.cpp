// SPDX-License-Identifier: MIT
// Tests activations, moments and weights that lie in host memory between their uses: the copies,
// memory and waits of a step. The device contract checks the numbers.
#include <gtest/gtest.h>

#include "plan/allocate/pack_arena.h"
#include "plan/analyse/access.h"
#include "plan/analyse/find_races.h"
#include "plan/analyse/lifetimes.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

constexpr OffloadVia ways[] = {OffloadVia::pinned_overlap, OffloadVia::pinned,
                               OffloadVia::pageable};
constexpr Offload everything[] = {Offload::activations, Offload::optimizer, Offload::weights};
constexpr std::int64_t layers = 12;
constexpr double offloaded_bytes_of_a_block = 64.0 * 16 * 4;
constexpr double moment_bytes = layers * 16.0 * 17 * 4;

Knobs deep_mlp(OffloadVia via, Offload what = Offload::activations) {
  Knobs knobs = small_mlp();
  knobs.model.layers = layers;
  knobs.batch.size = 64;
  knobs.optim = {.kind = OptimKind::adamw, .impl = OptimImpl::per_tensor};
  knobs.memory.offload = what;
  knobs.memory.offload_via = via;
  return knobs;
}

Knobs resident(Knobs knobs) {
  knobs.memory = {};
  return knobs;
}

TEST(OffloadedActivations, GoToTheHostAndBackOnceAStep) {
  for (const OffloadVia via : ways) {
    const bool pageable = via == OffloadVia::pageable;
    const Knobs knobs = deep_mlp(via);
    EXPECT_EQ(value(knobs, Metric::copies_per_step), 2 * layers);
    EXPECT_EQ(value(knobs, Metric::copy_bytes_per_step), 2 * layers * offloaded_bytes_of_a_block);
    EXPECT_EQ(value(knobs, Metric::pageable_copies_per_step), pageable ? 2 * layers : 0);
    EXPECT_EQ(value(knobs, Metric::host_waits_per_step), pageable ? 2 * layers : 0);
    EXPECT_EQ(value(knobs, Metric::host_pinned),
              pageable ? 0 : layers * offloaded_bytes_of_a_block);
    EXPECT_EQ(value(knobs, Metric::launches_per_step),
              value(resident(knobs), Metric::launches_per_step));
  }
}

// Without offloading, all activations are live at the loss, with the logits and their gradient.
// With it, two activations on their way back and two gradients remain.
TEST(OffloadedActivations, LeaveTwoOfThemAndTwoGradientsOnTheDevice) {
  const double all = value(resident(deep_mlp(OffloadVia::pinned)), Metric::need);
  for (const OffloadVia via : {OffloadVia::pinned, OffloadVia::pageable}) {
    EXPECT_EQ(value(deep_mlp(via), Metric::need), all - (layers - 2) * offloaded_bytes_of_a_block);
  }
  // With overlap, two activations may still be copied out while two are copied back, and there is
  // one gradient.
  EXPECT_EQ(value(deep_mlp(OffloadVia::pinned_overlap), Metric::need),
            all - (layers - 3) * offloaded_bytes_of_a_block);
}

TEST(OffloadedActivations, TakeFourPlacesHoweverManyThereAre) {
  for (const OffloadVia via : ways) {
    EXPECT_EQ(value(deep_mlp(via), Metric::peak_live),
              value(resident(deep_mlp(via)), Metric::peak_live) -
                  (layers - 4) * offloaded_bytes_of_a_block);
    Knobs few = deep_mlp(via);
    few.model.layers = 3;
    EXPECT_EQ(value(few, Metric::peak_live),
              value(resident(few), Metric::peak_live) + offloaded_bytes_of_a_block)
        << "with buffers of their own, few layers need more";
  }
}

TEST(OffloadedActivations, MakeTheArenaSmallerAsTheyDoTheNeed) {
  for (const OffloadVia via : ways) {
    Knobs knobs = deep_mlp(via);
    knobs.alloc.with = Allocator::arena;
    EXPECT_EQ(value(knobs, Metric::arena_bytes), value(knobs, Metric::need));
    EXPECT_LE(value(knobs, Metric::peak_live), value(resident(knobs), Metric::peak_live) -
                                                   (layers - 4) * offloaded_bytes_of_a_block);
  }
}

TEST(OffloadedActivations, AreAllocatedAndReleasedWhereTheComputeStreamHasThem) {
  for (const OffloadVia via : ways) {
    for (const Allocator with : {Allocator::cuda, Allocator::cuda_async, Allocator::caching}) {
      for (const AllocWhen when : {AllocWhen::op, AllocWhen::step}) {
        for (const Offload what : everything) {
          Knobs knobs = deep_mlp(via, what);
          knobs.alloc = {.with = with, .when = when};
          EXPECT_EQ(refusal_of(knobs), "accepted");
          knobs.batch.sizes = {16, 64, 32};
          EXPECT_EQ(refusal_of(knobs), "accepted") << "with batches that take turns";
        }
      }
    }
  }
}

TEST(OffloadedActivations, MayBeOneOrTwo) {
  for (const OffloadVia via : ways) {
    for (const std::int64_t few : {1, 2, 3}) {
      Knobs knobs = deep_mlp(via);
      knobs.model.layers = few;
      EXPECT_EQ(value(knobs, Metric::copies_per_step), 2 * few);
      knobs.memory.offload = Offload::optimizer;
      EXPECT_EQ(value(knobs, Metric::copies_per_step), 4 * few);
      knobs.memory.offload = Offload::weights;
      EXPECT_EQ(value(knobs, Metric::copies_per_step), 6 * few) << "none comes a second time";
    }
  }
}

TEST(OffloadedMoments, GoToTheDeviceAndBackOnceAStep) {
  for (const OffloadVia via : ways) {
    const bool pageable = via == OffloadVia::pageable;
    const Knobs knobs = deep_mlp(via, Offload::optimizer);
    EXPECT_EQ(value(knobs, Metric::copies_per_step), 4 * layers);
    EXPECT_EQ(value(knobs, Metric::copy_bytes_per_step), 4 * moment_bytes);
    EXPECT_EQ(value(knobs, Metric::pageable_copies_per_step), pageable ? 4 * layers : 0);
    EXPECT_EQ(value(knobs, Metric::host_waits_per_step), pageable ? 4 * layers : 0);
    EXPECT_EQ(value(knobs, Metric::host_pinned), pageable ? 0 : 2 * moment_bytes);
  }
}

// The moments are on the device after the backward pass, and can use its memory.
TEST(OffloadedMoments, LeaveNothingBehindThatTheNeedWouldShow) {
  for (const OffloadVia via : ways) {
    const Knobs knobs = deep_mlp(via, Offload::optimizer);
    EXPECT_EQ(value(knobs, Metric::need),
              value(resident(knobs), Metric::need) -
                  2 * static_cast<double>(in_blocks(static_cast<std::int64_t>(moment_bytes))));
  }
}

// Weights are copied to the device twice, except those of the last three layers, and back once.
// Moments are copied to the device and back once.
TEST(OffloadedParameters, GoToTheDeviceTwiceAndBackOnceAStep) {
  for (const OffloadVia via : ways) {
    const bool pageable = via == OffloadVia::pageable;
    const Knobs knobs = deep_mlp(via, Offload::weights);
    const double copies = 7 * layers - 3;
    EXPECT_EQ(value(knobs, Metric::copies_per_step), copies);
    EXPECT_EQ(value(knobs, Metric::copy_bytes_per_step), copies * moment_bytes / layers);
    EXPECT_EQ(value(knobs, Metric::pageable_copies_per_step), pageable ? copies : 0);
    EXPECT_EQ(value(knobs, Metric::host_waits_per_step), pageable ? copies : 0);
    EXPECT_EQ(value(knobs, Metric::host_pinned), pageable ? 0 : 3 * moment_bytes);
    EXPECT_EQ(value(knobs, Metric::launches_per_step),
              value(resident(knobs), Metric::launches_per_step));
  }
}

TEST(OffloadedParameters, AreOnlyWhatTheRuleKeeps) {
  for (const auto& [kind, moments] : {std::pair(OptimKind::sgd, 0), {OptimKind::lion, 1}}) {
    for (const OffloadVia via : ways) {
      Knobs knobs = deep_mlp(via, Offload::weights);
      knobs.optim.kind = kind;
      EXPECT_EQ(value(knobs, Metric::copies_per_step), (3 + 2 * moments) * layers - 3);
    }
  }
}

// Each layer has four parts: weights, gradient and two moments. Three parts of three layers stay on
// the device, and one gradient.
TEST(OffloadedParameters, TakeThreeLayersAndAGradient) {
  for (const OffloadVia via : ways) {
    const Knobs knobs = deep_mlp(via, Offload::weights);
    EXPECT_EQ(value(knobs, Metric::peak_live), value(resident(knobs), Metric::peak_live) -
                                                   (4 * layers - 10) * moment_bytes / layers);
  }
}

TEST(OffloadedParameters, TakeNoMoreOfADeeperModelWhoseActivationsDo) {
  for (const OffloadVia via : ways) {
    for (const Allocator with : {Allocator::fixed, Allocator::arena}) {
      for (const Metric memory : {Metric::need, Metric::peak_live, Metric::peak_reserved}) {
        Knobs knobs = deep_mlp(via, Offload::weights);
        knobs.alloc.with = with;
        Knobs deeper = knobs;
        deeper.model.layers = 4 * layers;
        EXPECT_EQ(value(deeper, memory),
                  value(knobs, memory) + 3 * layers * offloaded_bytes_of_a_block);
      }
    }
  }
}

TEST(OffloadedParameters, AreAsManyBytesAsTheModelHasWhereverTheyLie) {
  const StepPlan plan = plan_of(deep_mlp(OffloadVia::pinned, Offload::weights));
  EXPECT_EQ(static_cast<double>(plan.param_bytes), moment_bytes);
}

// Counts the waits, and checks that leaving out any one of them makes a race.
int waits_that_hold(const StepPlan& good) {
  EXPECT_EQ(find_race(good), std::nullopt);
  int waits = 0;
  for (std::size_t index = 0; index < good.operations.size(); ++index) {
    if (!std::holds_alternative<StreamWaitsEvent>(good.operations[index].action)) continue;
    StepPlan bad = good;
    bad.operations.erase(bad.operations.begin() + static_cast<std::ptrdiff_t>(index));
    EXPECT_NE(find_race(bad), std::nullopt) << "without '" << good.operations[index].name << "'";
    ++waits;
  }
  return waits;
}

TEST(OffloadedActivations, AreARaceWithoutAnyOneOfTheirWaits) {
  Knobs knobs = deep_mlp(OffloadVia::pinned_overlap);
  knobs.alloc.with = Allocator::arena;  // so that the way back shares memory with the loss
  // Each activation has a wait until it is written and one until it is back. All but two also wait
  // for a free place, in each direction. One wait belongs to the loss.
  EXPECT_EQ(waits_that_hold(plan_of(knobs)), 2 * layers + 2 * (layers - 2) + 1);
}

TEST(OffloadedMoments, AreARaceWithoutAnyOneOfTheirWaits) {
  Knobs knobs = deep_mlp(OffloadVia::pinned_overlap, Offload::optimizer);
  knobs.alloc.with = Allocator::arena;  // they share memory with what comes before and after
  EXPECT_EQ(waits_that_hold(plan_of(knobs)), 1 + layers + (layers - 2));
}

TEST(OffloadedParameters, AreARaceWithoutAnyOneOfTheirWaits) {
  for (const Allocator with : {Allocator::fixed, Allocator::arena}) {
    Knobs knobs = deep_mlp(OffloadVia::pinned_overlap, Offload::weights);
    knobs.alloc.with = with;
    // The waits are the begin and end of the step; three copies of each layer; and one for a free
    // place in each direction, for all layers but three.
    EXPECT_EQ(waits_that_hold(plan_of(knobs)), 2 + 3 * layers + 2 * (layers - 3));
  }
}

TEST(Offload, IsCapturedUnlessItsMemoryIsPageable) {
  for (const Offload what : everything) {
    for (const OffloadVia via : ways) {
      Knobs knobs = deep_mlp(via, what);
      knobs.launch.via = LaunchVia::graph;
      if (via == OffloadVia::pageable) {
        EXPECT_NE(refusal_of(knobs).find("copies from and to pageable memory cannot be captured"),
                  std::string::npos)
            << refusal_of(knobs);
      } else {
        EXPECT_EQ(value(knobs, Metric::launches_per_step), 1);
        EXPECT_GE(value(knobs, Metric::copies_per_step), 2 * layers);
      }
    }
  }
}

// Within a graph the side stream waits for the batch's reader only as a branch. The copy of the
// next batch is outside of the graph.
TEST(Offload, WithinAGraphOrdersNothingOutsideOfIt) {
  Knobs knobs = deep_mlp(OffloadVia::pinned_overlap);
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side};
  EXPECT_EQ(refusal_of(knobs), "accepted") << "its waits happen to order the one batch";
  knobs.launch.via = LaunchVia::graph;
  EXPECT_NE(refusal_of(knobs).find("both touch 'device batch', and nothing orders them"),
            std::string::npos)
      << refusal_of(knobs);
}

}  // namespace
}  // namespace stepgate
