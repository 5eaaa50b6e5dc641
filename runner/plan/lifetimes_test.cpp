// SPDX-License-Identifier: MIT
// How long buffers live, on steps of a few operations written down here and on planned ones.
#include "plan/lifetimes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "plan/find_races.h"
#include "plan/plan_by_hand.h"
#include "plan/plan_in_arena.h"
#include "plan/step_builder.h"
#include "support/random.h"

namespace stepgate {

// How a failing test calls it.
void PrintTo(const Lifetime& live, std::ostream* out) {
  *out << "buffer " << live.buffer << ", " << live.slots << " slots, " << live.bytes
       << " bytes, from " << live.first << " to " << live.last << ": " << in_words(live.because);
}

namespace {

constexpr std::int64_t block = block_alignment_bytes;

// A step of fills (which write) and copies (which read the one and write the other).
class Step {
 public:
  int buffer(const char* name, Purpose purpose = Purpose::activations, std::int64_t bytes = block,
             std::int64_t slots = 1) {
    return builder.add({.name = name, .purpose = purpose, .bytes = bytes, .slots = slots});
  }
  Step& on(StreamName stream) {
    builder.enter(Phase::forward, stream);
    return *this;
  }
  Step& write(int to) {
    builder.act("write", FillZero{builder.whole(to)});
    return *this;
  }
  Step& write(int to, std::int64_t offset, std::int64_t bytes) {
    builder.act("write a part", FillZero{StepBuilder::part(to, offset, bytes)});
    return *this;
  }
  Step& read(int from) {
    builder.act("read", CopyBytes{builder.whole(sink_), StepBuilder::part(from, 0, block)});
    return *this;
  }
  Step& act(Action action) {
    builder.act("act", std::move(action));
    return *this;
  }
  Step& captured() {
    plan.operations.back().captured = true;
    return *this;
  }

  StepPlan plan;
  StepBuilder builder{plan};

 private:
  int sink_ = buffer("sink", Purpose::bookkeeping);
};

std::vector<Lifetime> of_buffer(const std::vector<Lifetime>& all, int buffer) {
  std::vector<Lifetime> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [&](const Lifetime& live) { return live.buffer == buffer; });
  return found;
}

Lifetime only(const Step& step, int buffer) {
  const std::vector<Lifetime> found = of_buffer(lifetimes_of(step.plan).device, buffer);
  EXPECT_EQ(found.size(), 1U);
  return found.empty() ? Lifetime{} : found.front();
}

Lifetime in_blocks_of(int buffer, int first, int last, LiveBecause because) {
  return {buffer, 1, block, first, last, because};
}

TEST(Lifetimes, LastFromTheFirstToTheLastUse) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  step.write(a).write(b).read(a).read(b).write(b);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 2, LiveBecause::it_is_used));
  EXPECT_EQ(only(step, b), in_blocks_of(b, 1, 4, LiveBecause::it_is_used));
}

TEST(Lifetimes, AreOneOperationLongForWhatIsWrittenAndNeverRead) {
  Step step;
  const int a = step.buffer("a");
  step.write(a).act(HostWork{1});
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 0, LiveBecause::it_is_used));
}

TEST(Lifetimes, AreWholeStepsForWeightsStateBatchesAndBookkeeping) {
  for (const Purpose purpose :
       {Purpose::weights, Purpose::optimizer_state, Purpose::batch, Purpose::bookkeeping}) {
    Step step;
    const int a = step.buffer("a", purpose, 3 * block, 2);
    step.act(HostWork{1}).write(a).read(a).act(HostWork{1});
    EXPECT_EQ(only(step, a), (Lifetime{a, 2, 6 * block, 0, 3, LiveBecause::it_is_kept}));
  }
}

TEST(Lifetimes, CountBytesInWholeBlocks) {
  Step step;
  const int a = step.buffer("a", Purpose::weights, block + 1, 3);
  step.act(HostWork{1});
  EXPECT_EQ(only(step, a).bytes, 3 * 2 * block);
}

TEST(Lifetimes, AreWholeStepsForWhatIsReadBeforeItIsWritten) {
  Step step;
  const int a = step.buffer("a", Purpose::gradients);
  step.read(a).write(a);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 1, LiveBecause::it_is_carried_over));
}

TEST(Lifetimes, AreWholeStepsWhenOneByteOfARangeIsNotWrittenBefore) {
  Step step;
  const int a = step.buffer("a");
  step.write(a, 0, 100).write(a, 101, block - 101).read(a);
  EXPECT_EQ(only(step, a).because, LiveBecause::it_is_carried_over);
  Step whole;
  const int b = whole.buffer("b");
  whole.write(b, 100, block - 100).write(b, 0, 100).read(b);
  EXPECT_EQ(only(whole, b), in_blocks_of(b, 0, 2, LiveBecause::it_is_used));
}

TEST(Lifetimes, DoNotTakeARareWriteForOneBeforeEveryRead) {
  const auto reason = [](std::int64_t write_every, std::int64_t read_every) {
    Step step;
    const int a = step.buffer("a");
    step.builder.only_every(write_every);
    step.write(a);
    step.builder.only_every(read_every);
    step.read(a);
    return only(step, a).because;
  };
  EXPECT_EQ(reason(1, 1), LiveBecause::it_is_used);
  EXPECT_EQ(reason(1, 3), LiveBecause::it_is_used);
  EXPECT_EQ(reason(3, 3), LiveBecause::it_is_used);
  EXPECT_EQ(reason(3, 6), LiveBecause::it_is_used);
  EXPECT_EQ(reason(3, 1), LiveBecause::it_is_carried_over);
  EXPECT_EQ(reason(2, 3), LiveBecause::it_is_carried_over);
}

TEST(Lifetimes, AreWholeStepsWhenUsesActForDifferentSteps) {
  Step step;
  const int a = step.buffer("a", Purpose::staging, block, 2);
  step.builder.look_ahead(1);
  step.write(a);
  step.builder.look_ahead(0);
  step.read(a);
  EXPECT_EQ(only(step, a), (Lifetime{a, 2, 2 * block, 0, 1, LiveBecause::it_spans_steps}));
}

TEST(Lifetimes, GoThroughTheWholeGraphThatUsesThem) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  step.write(b).write(b).captured().write(a).captured().write(b).captured().read(b);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 1, 3, LiveBecause::the_graph_uses_it));
  EXPECT_EQ(only(step, b), in_blocks_of(b, 0, 4, LiveBecause::the_graph_uses_it));
}

TEST(Lifetimes, OfWorkspaceLastFromTheFirstProductToTheLast) {
  const StepPlan plan = plan_of(small_mlp());
  const auto workspace =
      std::find_if(plan.buffers.begin(), plan.buffers.end(),
                   [](const Buffer& buffer) { return buffer.purpose == Purpose::workspace; });
  ASSERT_NE(workspace, plan.buffers.end());
  const auto found =
      of_buffer(lifetimes_of(plan).device, static_cast<int>(workspace - plan.buffers.begin()));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(plan.operations[static_cast<std::size_t>(found[0].first)].name, "layer 0: product");
  EXPECT_EQ(plan.operations[static_cast<std::size_t>(found[0].last)].name,
            "layer 0: weight gradient");
}

TEST(Lifetimes, AreWholeStepsForWhatNobodyNames) {
  Step step;
  const int a = step.buffer("a");
  step.act(HostWork{1});
  EXPECT_EQ(only(step, a).because, LiveBecause::nobody_names_it);
}

// --- allocators ----------------------------------------------------------------------------------

int allocated(Step& step, std::int64_t slots = 1) {
  return step.builder.add({.name = "allocated",
                           .bytes = block,
                           .slots = slots,
                           .allocated_by = AllocatedBy::cuda_async});
}

TEST(Lifetimes, OfAllocatedBuffersLastFromTheAllocationToTheRelease) {
  Step step;
  const int a = allocated(step);
  step.act(HostWork{1}).act(Allocate{a}).write(a).act(Release{a}).act(HostWork{1});
  EXPECT_EQ(only(step, a), in_blocks_of(a, 1, 3, LiveBecause::it_is_allocated));
}

TEST(Lifetimes, KnowThatABatchAllocatedAStepAheadIsThereTwiceForAWhile) {
  Step step;
  const int a = allocated(step, 2);
  step.builder.look_ahead(1);
  step.act(Allocate{a}).write(a);
  step.builder.look_ahead(0);
  step.read(a).act(Release{a}).act(HostWork{1});
  EXPECT_EQ(of_buffer(lifetimes_of(step.plan).device, a),
            (std::vector{Lifetime{a, 1, block, 0, 4, LiveBecause::it_spans_steps},
                         in_blocks_of(a, 0, 3, LiveBecause::it_is_allocated)}));
}

TEST(Lifetimes, AreWholeStepsForWhatTheNextStepReleases) {
  Step step;
  const int a = allocated(step);
  step.act(Release{a}).act(Allocate{a}).write(a);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 2, LiveBecause::it_spans_steps));
}

TEST(Lifetimes, OfWhatIsNeverReleasedGrowByOneAStep) {
  Step step;
  const int a = allocated(step, 1000);
  step.act(HostWork{1});
  step.builder.only_every(4);
  step.act(Allocate{a}).write(a);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 1, 2, LiveBecause::it_is_never_released));
  EXPECT_EQ(growth_bytes_per_step(step.plan), block / 4.0);
}

TEST(Lifetimes, OfAPlanThatReleasesWhatItAllocatesDoNotGrow) {
  Knobs knobs = small_mlp();
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::op, .keep_bytes = std::nullopt};
  EXPECT_EQ(growth_bytes_per_step(plan_of(knobs)), 0);
  knobs.log = {.every = 2, .via = LogVia::keep_on_device};
  EXPECT_EQ(growth_bytes_per_step(plan_of(knobs)), 4.0 / 2);
}

// --- host memory ---------------------------------------------------------------------------------

TEST(Lifetimes, OfPageLockedMemoryAreWholeStepsUnlessTheStepLocksItItself) {
  Knobs knobs = small_mlp();
  const auto page_locked = [&](HostMemory host) {
    knobs.h2d.host = host;
    return lifetimes_of(plan_of(knobs)).page_locked;
  };
  EXPECT_TRUE(page_locked(HostMemory::resident).empty());
  EXPECT_TRUE(page_locked(HostMemory::pageable).empty());
  const auto pinned = page_locked(HostMemory::pinned);
  ASSERT_EQ(pinned.size(), 1U);
  EXPECT_EQ(pinned[0].because, LiveBecause::it_is_kept);
  EXPECT_EQ(pinned[0].bytes, pinned[0].slots * plan_of(knobs).batch_bytes);
  const auto locked = page_locked(HostMemory::pin_each_step);
  const StepPlan plan = plan_of(knobs);
  ASSERT_EQ(locked.size(), 1U);
  EXPECT_EQ(locked[0].bytes, plan.batch_bytes);
  const auto name = [&](int index) {
    return plan.operations[static_cast<std::size_t>(index)].name;
  };
  EXPECT_EQ(name(locked[0].first), "page-lock the host batch");
  EXPECT_EQ(name(locked[0].last), "unlock the host batch");
}

// --- streams -------------------------------------------------------------------------------------

TEST(Lifetimes, LastUntilAnotherStreamHasWaitedForTheLastUse) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  const int c = step.buffer("c");
  const int done = step.builder.add_event("done", 1);
  const int all = step.builder.add_event("all", 1);
  step.write(a).act(RecordEvent{done});                                           // 0, 1
  step.on(StreamName::side).write(b).act(StreamWaitsEvent{done}).write(c);        // 2, 3, 4
  step.act(RecordEvent{all}).on(StreamName::compute).act(StreamWaitsEvent{all});  // 5, 6
  // The side stream writes b without knowing whether a is over; before it writes c it waits.
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 2, LiveBecause::it_is_used));
}

TEST(Lifetimes, AreWholeStepsWhenTheNextStepDoesNotWaitForTheLastUse) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  const int filled = step.builder.add_event("filled", 1);
  step.on(StreamName::side).write(a).act(RecordEvent{filled});
  step.on(StreamName::compute).act(StreamWaitsEvent{filled}).write(b);
  // The compute stream waits for the side stream, but nothing holds back the side stream's next
  // step: it may write a while this step's b is written.
  EXPECT_EQ(only(step, b).because, LiveBecause::nothing_orders_it);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 0, LiveBecause::it_is_used));
}

TEST(Lifetimes, EndAtTheLastUseWhenTheHostWaitsForTheDevice) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  step.write(a).act(HostWaits{WaitFor::device});
  step.on(StreamName::side).write(b).act(HostWaits{WaitFor::device});
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 0, LiveBecause::it_is_used));
  EXPECT_EQ(only(step, b), in_blocks_of(b, 2, 2, LiveBecause::it_is_used));
}

TEST(Lifetimes, EndAtTheLastUseOnTheLegacyStreamWhichWaitsForTheOther) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  step.write(a).on(StreamName::legacy).write(b).on(StreamName::compute).act(HostWork{1});
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 0, LiveBecause::it_is_used));
  EXPECT_EQ(only(step, b), in_blocks_of(b, 1, 1, LiveBecause::it_is_used));
}

// Steps of random operations on random streams, with random waits between them.
Step random_step(Random& random) {
  Step step;
  std::vector<int> buffers;
  std::vector<int> events;
  for (int index = 0; index < 6; ++index) {
    const auto bytes = static_cast<std::int64_t>(1 + random.below(4)) * block;
    buffers.push_back(step.buffer("random", Purpose::activations, bytes));
    events.push_back(step.builder.add_event("random", 1));
  }
  const std::uint64_t length = 4 + random.below(20);
  for (std::uint64_t index = 0; index < length; ++index) {
    step.on(static_cast<StreamName>(random.below(stream_count)));
    const int buffer = buffers[random.below(buffers.size())];
    const int event = events[random.below(events.size())];
    switch (random.below(6)) {
      case 0:
        step.act(RecordEvent{event});
        break;
      case 1:
        step.act(StreamWaitsEvent{event});
        break;
      case 2:
        step.act(HostWaits{random.below(4) == 0 ? WaitFor::device : WaitFor::event, event});
        break;
      case 3:
        step.act(CopyBytes{StepBuilder::part(buffers[random.below(buffers.size())], 0, block),
                           StepBuilder::part(buffer, 0, block)});
        break;
      default:
        step.write(buffer);
    }
  }
  return step;
}

TEST(Lifetimes, ThatDoNotMeetMayShareMemoryWithoutARace) {
  constexpr std::uint64_t seed = 20260406;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  int without_race = 0;
  int sharing = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const Step step = random_step(random);
    if (find_race(step.plan)) continue;
    ++without_race;
    const StepPlan packed = in_arena(step.plan);
    std::int64_t apart = 0;
    for (const Lifetime& live : lifetimes_of(step.plan).device)
      apart += live.always() ? 0 : live.bytes;
    if (packed.buffers.back().bytes < apart) ++sharing;
    ASSERT_EQ(find_race(packed), std::nullopt) << "trial " << trial;
  }
  // Enough of them say something.
  EXPECT_GT(without_race, 1000);
  EXPECT_GT(sharing, 200);
}

TEST(Lifetimes, OfPlannedStepsMayShareMemoryWithoutARace) {
  Knobs knobs = small_mlp();
  for (const CopyStream stream : {CopyStream::compute, CopyStream::side, CopyStream::legacy}) {
    for (const LaunchVia via : {LaunchVia::stream, LaunchVia::graph}) {
      knobs.h2d = {.host = HostMemory::pinned, .stream = stream, .buffers = 2};
      knobs.launch.via = via;
      EXPECT_EQ(find_race(in_arena(plan_of(knobs))), std::nullopt);
    }
  }
}

// --- planned steps -------------------------------------------------------------------------------

TEST(Lifetimes, OfGradientsBeginInTheBackwardPassUnlessTheyAccumulateOverSteps) {
  const StepPlan plan = plan_of(small_mlp());
  const auto gradients =
      std::find_if(plan.buffers.begin(), plan.buffers.end(),
                   [](const Buffer& buffer) { return buffer.purpose == Purpose::gradients; });
  const int index = static_cast<int>(gradients - plan.buffers.begin());
  const auto found = of_buffer(lifetimes_of(plan).device, index);
  ASSERT_EQ(found.size(), 1U);
  const auto operation_at = [&](int at) { return plan.operations[static_cast<std::size_t>(at)]; };
  EXPECT_EQ(operation_at(found[0].first).name, "layer 2: bias gradient");
  EXPECT_EQ(operation_at(found[0].last).name, "update all parameters");

  // The same step without its zeroing adds to what the step before has left.
  Knobs knobs = small_mlp();
  knobs.memory.zero_grad = ZeroGrad::memset;
  StepPlan adding = plan_of(knobs);
  EXPECT_FALSE(of_buffer(lifetimes_of(adding).device, index).front().always());
  std::erase_if(adding.operations, [](const Operation& operation) {
    return std::holds_alternative<FillZero>(operation.action);
  });
  EXPECT_EQ(of_buffer(lifetimes_of(adding).device, index).front().because,
            LiveBecause::it_is_carried_over);
}

}  // namespace
}  // namespace stepgate
