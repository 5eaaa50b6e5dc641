// SPDX-License-Identifier: MIT
// How streams extend live ranges: nothing shares memory that another stream may still use.
#include "plan/analyse/lifetimes.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/allocate/pack_arena.h"
#include "plan/analyse/find_races.h"
#include "plan/testing/plan_by_hand.h"
#include "plan/testing/steps_by_hand.h"

namespace stepgate {
namespace {

TEST(ExtendedLiveRanges, LastUntilAnotherStreamHasWaitedForTheLastUse) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  const int c = step.buffer("c");
  const int done = step.builder.add_event("done", 1);
  const int all = step.builder.add_event("all", 1);
  step.write(a).act(RecordEvent{done});                                      // 0, 1
  step.on(side_stream).write(b).act(StreamWaitsEvent{done}).write(c);        // 2, 3, 4
  step.act(RecordEvent{all}).on(compute_stream).act(StreamWaitsEvent{all});  // 5, 6
  // The side stream writes b without waiting for the use of a, but waits for it before it writes c.
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 2, LivenessReason::it_is_used));
}

TEST(ExtendedLiveRanges, AreWholeStepsWhenTheNextStepDoesNotWaitForTheLastUse) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  const int filled = step.builder.add_event("filled", 1);
  step.on(side_stream).write(a).act(RecordEvent{filled});
  step.on(compute_stream).act(StreamWaitsEvent{filled}).write(b);
  // The compute stream waits for the side stream, but nothing holds back the side stream's next
  // step: it may write a while this step's b is written.
  EXPECT_EQ(only(step, b).because, LivenessReason::nothing_orders_it);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 0, LivenessReason::it_is_used));
}

TEST(ExtendedLiveRanges, EndAtTheLastUseWhenTheHostWaitsForTheDevice) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  step.write(a).act(HostWaits{WaitFor::device});
  step.on(side_stream).write(b).act(HostWaits{WaitFor::device});
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 0, LivenessReason::it_is_used));
  EXPECT_EQ(only(step, b), in_blocks_of(b, 2, 2, LivenessReason::it_is_used));
}

TEST(ExtendedLiveRanges, EndAtTheLastUseOnTheLegacyStreamWhichWaitsForTheOther) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  step.write(a).on(legacy_stream).write(b).on(compute_stream).act(HostWork{1});
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 0, LivenessReason::it_is_used));
  EXPECT_EQ(only(step, b), in_blocks_of(b, 1, 1, LivenessReason::it_is_used));
}

// A step of random operations on random streams, with random waits.
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
    step.on(static_cast<int>(random.below(step.plan.streams.size())));
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

TEST(ExtendedLiveRanges, ThatDoNotMeetMayShareMemoryWithoutARace) {
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
  // Enough of the random steps test the property.
  EXPECT_GT(without_race, 1000);
  EXPECT_GT(sharing, 200);
}

TEST(ExtendedLiveRanges, OfPlannedStepsMayShareMemoryWithoutARace) {
  Knobs knobs = small_mlp();
  for (const CopyStream stream : {CopyStream::compute, CopyStream::side, CopyStream::legacy}) {
    for (const LaunchVia via : {LaunchVia::stream, LaunchVia::graph}) {
      knobs.transfer = {.host = HostMemory::pinned, .stream = stream, .buffers = 2};
      knobs.launch.via = via;
      EXPECT_EQ(find_race(in_arena(plan_of(knobs))), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace stepgate
