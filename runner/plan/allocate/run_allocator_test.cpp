// SPDX-License-Identifier: MIT
// The behaviour of a step's allocator over many steps, counted ahead.
#include "plan/allocate/run_allocator.h"

#include <gtest/gtest.h>

#include <map>

#include "base/text/units.h"
#include "plan/allocate/step_allocator.h"
#include "plan/analyse/find_races.h"
#include "plan/count/step_memory.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"
#include "plan/testing/three_streams.h"

namespace stepgate {
namespace {

Knobs served(Allocator with, AllocWhen when) {
  Knobs knobs = small_mlp();
  knobs.model.hidden = 512;
  knobs.batch.size = 1024;  // activations of 2 MiB
  knobs.alloc.with = with;
  knobs.alloc.when = when;
  return knobs;
}

StepPlan planned(const Knobs& knobs, std::int64_t steps = 50, bool planned_only = false) {
  Scenario scenario = scenario_of(knobs);
  scenario.measure.steps = steps;
  if (planned_only) scenario.tags = {"no_gpu"};
  return build_step_plans(scenario, 1).front();
}

TEST(RunAllocator, AsksTheDriverForNothingInASteadyStep) {
  for (const Allocator with : {Allocator::caching, Allocator::expandable, Allocator::first_fit}) {
    for (const AllocWhen when : {AllocWhen::never, AllocWhen::step, AllocWhen::op}) {
      const StepPlan plan = planned(served(with, when));
      EXPECT_EQ(value(plan, Metric::device_allocs_per_step), 0);
      EXPECT_EQ(value(plan, Metric::device_frees_per_step), 0);
      EXPECT_EQ(value(plan, Metric::host_waits_per_step), 0);
      EXPECT_EQ(value(plan, Metric::ooms), 0);
      EXPECT_EQ(value(plan, Metric::live_slope), 0);
      EXPECT_GE(value(plan, Metric::peak_reserved), value(plan, Metric::peak_live));
      EXPECT_GE(value(plan, Metric::peak_live), static_cast<double>(held_memory(plan).most_bytes));
    }
  }
}

TEST(RunAllocator, PassesNoMoreThanWithoutItBeyondItsRounding) {
  const StepPlan plan = planned(served(Allocator::caching, AllocWhen::op));
  const auto raw = static_cast<double>(held_memory(plan).most_bytes);
  // A block may be up to 1 MiB larger than the request.
  const auto rounding = static_cast<double>(plan.buffers.size()) * mebibyte;
  EXPECT_LE(value(plan, Metric::peak_live), raw + rounding);
}

TEST(RunAllocator, SeesALeakToTheByteAndNoneInACacheThatGrows) {
  Knobs leaking = served(Allocator::caching, AllocWhen::step);
  leaking.alloc.leak_bytes = 1500;
  const StepPlan leak = planned(leaking, 400);
  EXPECT_EQ(value(leak, Metric::live_slope), 1536) << "in blocks of 512";
  leaking.alloc.leak_bytes = 0;
  const StepPlan clean = planned(leaking, 400);
  EXPECT_EQ(value(leak, Metric::live_after_empty_cache),
            value(clean, Metric::live_after_empty_cache) + 400 * 1536);
  Knobs growing = served(Allocator::caching, AllocWhen::step);
  growing.batch.sizes = {256, 512, 1024, 768};
  EXPECT_EQ(value(planned(growing, 400), Metric::live_slope), 0);
}

// A list of losses grows by a block of 512 bytes at a time.
TEST(RunAllocator, SeesALeakThatIsRarerThanTheCountedSteps) {
  for (const std::int64_t every : {1, 7, 20, 25, 40, 50, 60, 100, 250}) {
    Knobs kept = served(Allocator::caching, AllocWhen::step);
    kept.log = {.every = every, .via = LogVia::keep_on_device};
    EXPECT_DOUBLE_EQ(value(planned(kept), Metric::live_slope), 512.0 / static_cast<double>(every));
  }
  Knobs leaking = served(Allocator::caching, AllocWhen::op);
  leaking.alloc.leak_bytes = 1 << 20;
  EXPECT_EQ(value(planned(leaking, 2), Metric::live_slope), 1 << 20);
}

Knobs evaluated_every(std::int64_t every) {
  Knobs knobs = served(Allocator::caching, AllocWhen::op);
  knobs.eval = {.every = every, .batches = 8, .store = EvalStore::device};
  return knobs;
}

TEST(RunAllocator, KnowsThePeakOfAnEvaluationThatIsRarerThanTheCountedSteps) {
  const StepPlan often = planned(evaluated_every(2));
  ASSERT_GT(value(often, Metric::peak_live),
            value(planned(served(Allocator::caching, AllocWhen::op)), Metric::peak_live));
  for (const std::int64_t every : {20, 51, 60, 100, 250}) {
    const StepPlan plan = planned(evaluated_every(every), 10);
    EXPECT_EQ(value(plan, Metric::peak_live), value(often, Metric::peak_live)) << every;
    EXPECT_EQ(value(plan, Metric::peak_reserved), value(often, Metric::peak_reserved)) << every;
    EXPECT_EQ(value(plan, Metric::live_slope), 0) << every;
    EXPECT_EQ(plan.allocator_simulation->steps, 10) << "over which refusals are counted";
  }
  Knobs emptied = served(Allocator::caching, AllocWhen::op);
  emptied.alloc.empty_cache_every = 100;
  EXPECT_GE(value(planned(emptied), Metric::device_frees_per_step), 0.01);
}

TEST(RunAllocator, KnowsThePeakOfMoreBatchSizesThanCountedSteps) {
  Knobs knobs = served(Allocator::caching, AllocWhen::op);
  knobs.batch.sizes.assign(60, 64);
  knobs.batch.sizes.back() = 4096;
  EXPECT_GE(value(planned(knobs), Metric::peak_live), value(planned(knobs), Metric::need));
  knobs.batch.sizes.resize(30, 64);
  knobs.batch.sizes.back() = 4096;
  knobs.alloc.when = AllocWhen::resize;
  knobs.alloc.release = false;
  EXPECT_GT(value(planned(knobs), Metric::live_slope), 0);
}

TEST(RunAllocator, RefusesAVariantThatIsRefusedMemoryAfterTheCountedSteps) {
  Knobs knobs = evaluated_every(100);
  knobs.batch.size = 8192;  // activations of 16 MiB, each a segment
  knobs.alloc.cap = {CapOf::bytes, value(planned(knobs), Metric::peak_reserved)};
  EXPECT_EQ(value(planned(knobs), Metric::ooms), 0);
  Knobs alone = knobs;
  alone.eval.every = 0;
  knobs.alloc.cap = {CapOf::bytes, value(planned(alone), Metric::peak_reserved)};
  const std::string refusal = refusal_of(knobs);
  EXPECT_NE(refusal.find("is refused memory after the 50 steps that are counted: step 99, "),
            std::string::npos)
      << refusal;
  EXPECT_THROW((void)planned(knobs, 50, true), RequestError) << "though its ooms would be 0";
  EXPECT_EQ(value(planned(knobs, 100, true), Metric::ooms), 1);
}

TEST(RunAllocator, DoesNotKnowTheStepsOfAPeriodThatIsTooLong) {
  Knobs knobs = evaluated_every(9973);
  knobs.log = {.every = 9967, .via = LogVia::keep_on_device};
  const StepPlan plan = planned(knobs);
  EXPECT_FALSE(steps_to_simulate(plan).know_every_step);
  for (const Metric unknown :
       {Metric::peak_live, Metric::peak_reserved, Metric::live_slope,
        Metric::device_allocs_per_step, Metric::device_frees_per_step, Metric::host_waits_per_step})
    EXPECT_FALSE(counted(plan, unknown)) << row_of(unknown).name;
  EXPECT_EQ(value(plan, Metric::ooms), 0);
  knobs.alloc = {.with = Allocator::fixed, .when = AllocWhen::never, .keep_bytes = std::nullopt};
  EXPECT_TRUE(counted(planned(knobs), Metric::peak_live)) << "without an allocator";
}

TEST(RunAllocator, EmptyingTheCacheGivesBackAndTakesEveryTime) {
  Knobs knobs = served(Allocator::caching, AllocWhen::step);
  knobs.alloc.empty_cache_every = 1;
  const StepPlan every = planned(knobs);
  EXPECT_GE(value(every, Metric::device_frees_per_step), 1);
  EXPECT_EQ(value(every, Metric::device_allocs_per_step),
            value(every, Metric::device_frees_per_step));
  EXPECT_EQ(value(every, Metric::host_waits_per_step), value(every, Metric::device_frees_per_step))
      << "each cudaFree is a wait";
  knobs.alloc.empty_cache_every = 5;
  EXPECT_DOUBLE_EQ(value(planned(knobs), Metric::device_frees_per_step),
                   value(every, Metric::device_frees_per_step) / 5);
}

TEST(RunAllocator, BlamesTheDriversCallsOnTheOperationsThatNeedThem) {
  Knobs knobs = served(Allocator::caching, AllocWhen::step);
  knobs.alloc.empty_cache_every = 5;
  StepPlan plan = planned(knobs);
  std::erase_if(plan.operations, [](const Operation& operation) {
    return !std::holds_alternative<EmptyCache>(operation.action);
  });
  EXPECT_GE(value(plan, Metric::device_frees_per_step), 0.2);
  EXPECT_EQ(value(plan, Metric::device_allocs_per_step), 0) << "which the next step makes";
  plan.operations.clear();
  EXPECT_EQ(value(plan, Metric::host_waits_per_step), 0);
}

TEST(RunAllocator, TemporariesRaiseWhatIsLiveAndAreGoneAfterTheStep) {
  Knobs knobs = served(Allocator::caching, AllocWhen::op);
  const double plain = value(planned(knobs), Metric::peak_live);
  knobs.alloc.temps = 4;
  const StepPlan temps = planned(knobs);
  EXPECT_GE(value(temps, Metric::peak_live), plain + 4 * 2 * mebibyte);
  EXPECT_EQ(value(temps, Metric::live_slope), 0);
}

TEST(RunAllocator, GivesUpAStepThatIsRefusedAndGoesOnWithTheNext) {
  Knobs knobs = served(Allocator::caching, AllocWhen::op);
  knobs.batch.sizes = {256, 8192};
  const StepPlan roomy = planned(knobs);
  knobs.alloc.cap = {CapOf::bytes, 0.85 * value(roomy, Metric::peak_reserved)};
  const StepPlan plan = planned(knobs, 60, true);
  ASSERT_TRUE(plan.allocator_simulation);
  EXPECT_EQ(plan.allocator_simulation->refused_steps, 30) << "every step of the larger batch";
  EXPECT_EQ(value(plan, Metric::ooms), 30) << "one request a step";
  EXPECT_LE(value(plan, Metric::peak_reserved), *plan.allocator->cap_bytes);
  EXPECT_EQ(value(plan, Metric::live_slope), 0) << "what a given-up step held went back";
  EXPECT_EQ(plan.allocator_simulation->first_refusal.find("step 1, 'allocate "), 0U)
      << plan.allocator_simulation->first_refusal;
  EXPECT_NE(plan.allocator_simulation->first_refusal.find(" under a cap of "), std::string::npos);
}

TEST(RunAllocator, RefusesToTimeAVariantThatIsRefusedMemory) {
  Knobs knobs = served(Allocator::caching, AllocWhen::op);
  knobs.batch.sizes = {256, 8192};
  knobs.alloc.cap = {CapOf::bytes, 0.85 * value(planned(knobs), Metric::peak_reserved)};
  EXPECT_NE(refusal_of(knobs).find("is refused memory in 25 of 50 steps and cannot be timed"),
            std::string::npos)
      << refusal_of(knobs);
}

TEST(RunAllocator, CannotStartWhereTheCapIsBelowWhatStays) {
  Knobs knobs = served(Allocator::caching, AllocWhen::op);
  knobs.alloc.cap = {CapOf::bytes, 8.0 * mebibyte};
  EXPECT_NE(refusal_of(knobs).find("has no memory to start with: cannot allocate "),
            std::string::npos)
      << refusal_of(knobs);
  knobs = served(Allocator::arena, AllocWhen::never);
  knobs.alloc.cap = {CapOf::bytes, 8.0 * mebibyte};
  EXPECT_NE(refusal_of(knobs).find("its buffers and its arena take "), std::string::npos)
      << refusal_of(knobs);
}

TEST(RunAllocator, CapsAtAShareOfWhatTheLargestBatchNeeds) {
  Knobs knobs = served(Allocator::caching, AllocWhen::op);
  knobs.batch.sizes = {256, 1024, 512};
  knobs.alloc.cap = {CapOf::need, 1.5};
  const StepPlan plan = planned(knobs);
  EXPECT_EQ(static_cast<double>(*plan.allocator->cap_bytes), 1.5 * value(plan, Metric::need));
}

TEST(RunAllocator, AnArenaTakesWhatTheStepNeedsAndNoMore) {
  Knobs knobs = served(Allocator::arena, AllocWhen::never);
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{}, {256, 1024, 512, 1024}}) {
    knobs.batch.sizes = sizes;
    const StepPlan plan = planned(knobs);
    EXPECT_LE(static_cast<double>(held_memory(plan).most_bytes), value(plan, Metric::need) + 4096);
    EXPECT_EQ(value(plan, Metric::device_allocs_per_step), 0);
    EXPECT_EQ(value(plan, Metric::reserve_overhead), 0);
    Knobs own = knobs;
    own.alloc.with = Allocator::fixed;
    EXPECT_LT(value(plan, Metric::peak_live), value(planned(own), Metric::peak_live));
  }
}

TEST(RunAllocator, TellsAHistoryThatAddsUpToWhatIsHeldAtTheEnd) {
  for (const Allocator with : {Allocator::caching, Allocator::expandable, Allocator::first_fit}) {
    Knobs knobs = served(with, AllocWhen::op);
    knobs.batch.sizes = {256, 8192, 512};
    knobs.alloc.leak_bytes = 4096;
    knobs.alloc.empty_cache_every = 7;
    const StepPlan plan = planned(knobs);
    MemoryHistory history;
    const auto simulation =
        std::get<CountedAllocations>(run_allocator(plan, 20, &history)).simulation;
    std::map<Address, std::int64_t> held;
    std::int64_t reserved = 0;
    for (const MemoryEvent& event : history.events) {
      switch (event.action) {
        case MemoryAction::take_segment:
          reserved += event.bytes;
          break;
        case MemoryAction::give_back_segment:
          reserved -= event.bytes;
          break;
        case MemoryAction::allocate:
          EXPECT_TRUE(held.emplace(event.address, event.bytes).second) << event.address;
          break;
        case MemoryAction::release:
          EXPECT_EQ(held.erase(event.address), 1U) << event.address;
          break;
        case MemoryAction::refuse:
          ADD_FAILURE() << "nothing is refused here";
      }
      EXPECT_LE(reserved, simulation.peak_reserved_bytes);
    }
    std::int64_t in_segments = 0;
    std::size_t live_blocks = 0;
    for (const SegmentState& segment : history.segments) {
      in_segments += segment.bytes;
      for (const BlockState& block : segment.blocks) {
        if (block.use != BlockUse::live) continue;
        ++live_blocks;
        EXPECT_TRUE(held.contains(block.address));
      }
    }
    EXPECT_EQ(reserved, in_segments);
    EXPECT_EQ(held.size(), live_blocks);
  }
}

TEST(RunAllocator, DoesNotGuessWhatStreamsDecide) {
  StepPlan plan = planned(served(Allocator::caching, AllocWhen::op));
  EXPECT_FALSE(frees_depend_on_streams(plan));
  for (Operation& operation : plan.operations) {
    if (operation.name == "loss") operation.stream = side_stream;
  }
  EXPECT_TRUE(frees_depend_on_streams(plan));
  plan.allocator_simulation = std::get<CountedAllocations>(run_allocator(plan, 50)).simulation;
  EXPECT_FALSE(counted(plan, Metric::peak_reserved));
  EXPECT_FALSE(counted(plan, Metric::ooms));
}

TEST(RunAllocator, LeavesToTheTraceOnlyTheDriversCallsThatStreamsDecide) {
  StepPlan plan = planned(served(Allocator::first_fit, AllocWhen::op));
  const auto may_differ = [&](Metric metric) { return facts_of(plan).may_differ.contains(metric); };
  EXPECT_FALSE(may_differ(Metric::device_allocs_per_step));
  for (Operation& operation : plan.operations) {
    if (operation.name == "loss") operation.stream = side_stream;
  }
  plan.allocator_simulation = std::get<CountedAllocations>(run_allocator(plan, 50)).simulation;
  EXPECT_TRUE(may_differ(Metric::device_allocs_per_step));
  EXPECT_FALSE(may_differ(Metric::device_frees_per_step)) << "nothing is given back";
  EXPECT_FALSE(may_differ(Metric::host_waits_per_step));
  EXPECT_FALSE(may_differ(Metric::launches_per_step));
  plan.allocator->cap_bytes = std::int64_t{1} << 40;
  EXPECT_TRUE(may_differ(Metric::device_frees_per_step)) << "or where the cap is met";
  EXPECT_TRUE(may_differ(Metric::host_waits_per_step));
}

// A deeper model has blocks of more sizes. The driver is asked for more until each block has found
// a piece of the cache that fits.
TEST(RunAllocator, SaysAfterHowManyStepsItAsksForTheSame) {
  std::int64_t latest = 0;
  for (const std::int64_t layers : {4, 9, 10, 16}) {
    for (const std::int64_t hidden : {512, 1024}) {
      Knobs knobs = served(Allocator::caching, AllocWhen::op);
      knobs.model = {.kind = ModelKind::transformer, .layers = layers, .hidden = hidden};
      knobs.model.seq = 256;
      knobs.model.vocab = 4096;
      knobs.model.dtype = DType::bf16;
      knobs.batch.size = 8;
      knobs.optim.kind = OptimKind::adamw;
      knobs.ranks.count = 2;
      knobs.ranks.shard = Shard::parameters;
      const StepPlan plan = planned(knobs);
      const auto reserved_after = [&](std::int64_t steps) {
        return std::get<CountedAllocations>(run_allocator(plan, steps))
            .simulation.peak_reserved_bytes;
      };
      const auto settled = plan.allocator_simulation->settled_after;
      ASSERT_TRUE(settled) << layers << " layers";
      EXPECT_EQ(value(plan, Metric::device_allocs_per_step), 0);
      EXPECT_EQ(reserved_after(*settled), reserved_after(*settled + 30)) << layers << " layers";
      if (*settled > 1) {
        EXPECT_LT(reserved_after(*settled - 1), reserved_after(*settled)) << layers << " layers";
      }
      latest = std::max(latest, *settled);
    }
  }
  EXPECT_GT(latest, 1) << "the first step would do";
  Knobs leaking = served(Allocator::caching, AllocWhen::step);
  leaking.alloc.leak_bytes = 1 << 20;
  EXPECT_FALSE(planned(leaking).allocator_simulation->settled_after) << "it never does";
}

TEST(RunAllocator, KnowsThatWhatTheComputeStreamHasWaitedForIsFreeAtOnce) {
  Knobs knobs = served(Allocator::caching, AllocWhen::op);
  knobs.memory.offload = Offload::activations;
  StepPlan plan = planned(knobs);
  EXPECT_FALSE(frees_depend_on_streams(plan));
  EXPECT_TRUE(counted(plan, Metric::peak_reserved));
  EXPECT_GT(std::erase_if(plan.operations,
                          [](const Operation& operation) {
                            return operation.name.starts_with("wait until it is back");
                          }),
            0U);
  EXPECT_TRUE(frees_depend_on_streams(plan));
}

// Activations that come back are written by the side stream. Its memory is kept for it, though the
// kernels need as much at another time of the step.
TEST(RunAllocator, RetriesInEveryStepWhereTwoStreamsKeepWhatOneNeedsAtATime) {
  Knobs shared = served(Allocator::caching, AllocWhen::op);
  shared.batch.size = 8192;  // activations of 16 MiB, each a segment
  shared.memory.offload = Offload::activations;
  Knobs apart = shared;
  apart.alloc.stream = AllocStream::writer;
  const double peak = value(planned(shared), Metric::peak_reserved);
  EXPECT_GT(value(planned(apart), Metric::peak_reserved), peak);
  shared.alloc.cap = {CapOf::bytes, peak};
  apart.alloc.cap = shared.alloc.cap;
  EXPECT_EQ(value(planned(shared), Metric::alloc_retries), 0);
  const StepPlan plan = planned(apart);
  EXPECT_FALSE(find_race(plan)) << *find_race(plan);
  EXPECT_FALSE(frees_depend_on_streams(plan));
  EXPECT_EQ(value(plan, Metric::ooms), 0);
  EXPECT_GE(value(plan, Metric::alloc_retries), 50) << "in every one of 50 steps";
  EXPECT_GE(value(plan, Metric::device_frees_per_step), 1);
  EXPECT_EQ(value(plan, Metric::device_frees_per_step), value(plan, Metric::host_waits_per_step));
  StepPlan careless = plan;
  EXPECT_GT(std::erase_if(careless.operations,
                          [](const Operation& operation) {
                            return operation.name.starts_with("wait until activation coming back");
                          }),
            0U);
  EXPECT_TRUE(frees_depend_on_streams(careless));
  EXPECT_TRUE(find_race(careless));
}

}  // namespace
}  // namespace stepgate
