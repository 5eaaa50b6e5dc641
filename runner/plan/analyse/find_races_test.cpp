// SPDX-License-Identifier: MIT
// Which waits between streams a plan cannot lack. plan_refusals_test.cpp and the builders' tests
// check that planned steps have no race.
#include "plan/analyse/find_races.h"

#include <gtest/gtest.h>

#include "plan/testing/steps_by_hand.h"

namespace stepgate {
namespace {

// A batch arrives on the side stream, passes through a third stream and is read by the compute
// stream. Each stream waits for the previous one, and for the next one's read in the step before.
struct ThreeStages {
  Step step;
  int unpacking = step.builder.add_stream({.name = "unpack", .kind = StreamKind::non_blocking});
  int packed = step.buffer("packed", Purpose::batch);
  int batch = step.buffer("batch", Purpose::batch);
  int arrived = step.builder.add_event("arrived", 1);
  int emptied = step.builder.add_event("emptied", 1);
  int unpacked = step.builder.add_event("unpacked", 1);
  int consumed = step.builder.add_event("consumed", 1);

  enum Index : std::size_t {
    wait_emptied,
    arrive,
    record_arrived,
    wait_arrived,
    wait_consumed,
    unpack,
    record_unpacked,
    record_emptied,
    wait_unpacked,
    read,
    record_consumed
  };

  ThreeStages() {
    step.on(side_stream).act(StreamWaitsEvent{emptied}).write(packed).act(RecordEvent{arrived});
    step.on(unpacking).act(StreamWaitsEvent{arrived}).act(StreamWaitsEvent{consumed});
    step.act(CopyBytes{step.builder.whole(batch), step.builder.whole(packed)});
    step.act(RecordEvent{unpacked}).act(RecordEvent{emptied});
    step.on(compute_stream).act(StreamWaitsEvent{unpacked}).read(batch).act(RecordEvent{consumed});
  }
};

std::string race_without(std::optional<ThreeStages::Index> left_out, bool captured = false) {
  ThreeStages stages;
  for (Operation& operation : stages.step.plan.operations) operation.captured = captured;
  if (left_out) stages.step.plan.operations[*left_out].action = HostWork{1};
  return find_race(stages.step.plan).value_or("none");
}

TEST(FindRaces, FindsNoneWhereEveryStreamWaitsForTheNext) {
  EXPECT_EQ(race_without(std::nullopt), "none");
}

TEST(FindRaces, FindsThatTwoStreamsBesideTheComputeStreamDoNotWaitForEachOther) {
  EXPECT_EQ(race_without(ThreeStages::wait_arrived),
            "'act' of step 0 on the unpack stream and 'write' of step 0 on the side stream both "
            "touch 'packed', and nothing orders them");
  EXPECT_EQ(race_without(ThreeStages::wait_emptied),
            "'write' of step 1 on the side stream and 'act' of step 0 on the unpack stream both "
            "touch 'packed', and nothing orders them");
}

TEST(FindRaces, FindsThatTheComputeStreamAndAThirdOneDoNotWaitForEachOther) {
  EXPECT_EQ(race_without(ThreeStages::wait_unpacked),
            "'read' of step 0 on the compute stream and 'act' of step 0 on the unpack stream both "
            "touch 'batch', and nothing orders them");
  EXPECT_EQ(race_without(ThreeStages::wait_consumed),
            "'act' of step 1 on the unpack stream and 'read' of step 0 on the compute stream both "
            "touch 'batch', and nothing orders them");
}

// In a graph each stream is a branch of its own.
TEST(FindRaces, FindsThatTwoBranchesOfAGraphDoNotWaitForEachOther) {
  EXPECT_EQ(race_without(std::nullopt, true), "none");
  EXPECT_EQ(race_without(ThreeStages::wait_arrived, true),
            "'act' of step 0 on a branch of the graph and 'write' of step 0 on a branch of the "
            "graph both touch 'packed', and nothing orders them");
}

TEST(FindRaces, TakesBlockingStreamsForOrderedWithTheLegacyStreamAlone) {
  Step step;
  const int another = step.builder.add_stream({.name = "another", .kind = StreamKind::blocking});
  const int buffer = step.buffer("buffer", Purpose::batch);
  step.on(another).write(buffer).on(legacy_stream).read(buffer);
  EXPECT_EQ(find_race(step.plan), std::nullopt);
  step.on(compute_stream).write(buffer);
  EXPECT_EQ(find_race(step.plan),
            "'write' of step 1 on the another stream and 'write' of step 0 on "
            "the compute stream both touch 'buffer', and nothing orders them");
}

}  // namespace
}  // namespace stepgate
