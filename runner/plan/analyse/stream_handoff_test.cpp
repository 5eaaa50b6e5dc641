// SPDX-License-Identifier: MIT
#include "plan/analyse/stream_handoff.h"

#include <gtest/gtest.h>

#include "plan/analyse/find_capture_errors.h"
#include "plan/analyse/find_races.h"
#include "plan/compose/build_parts.h"
#include "plan/testing/steps_by_hand.h"

namespace stepgate {
namespace {

// A step with compute kernels, a concurrent copy on the side stream, and the events of both
// handoffs.
struct Handoff {
  Step step;
  int handed = step.buffer("handed");
  int ready = step.builder.add_event("ready", 1);
  int over = step.builder.add_event("over", 1);

  enum Index : std::size_t { write, record, other_work, wait, read, record_back, wait_back, last };

  Handoff() {
    const int other = step.buffer("other", Purpose::gradients);
    step.on(compute_stream).write(handed).act(RecordEvent{ready}).write(other);
    step.on(side_stream).act(StreamWaitsEvent{ready}).read(handed).act(RecordEvent{over});
    step.on(compute_stream).act(StreamWaitsEvent{over}).write(other);
  }
};

TEST(StreamHandoffs, AreAtTheRecordThatTheOtherStreamWaitsForAndAtTheWaitForIt) {
  const Handoff by_hand;
  EXPECT_EQ(last_awaited_record(by_hand.step.plan, Handoff::read), Handoff::record);
  EXPECT_EQ(next_awaiting_wait(by_hand.step.plan, Handoff::read), Handoff::wait_back);
}

TEST(StreamHandoffs, AreAtTheOperationItselfOnTheComputeStream) {
  const Handoff by_hand;
  for (const std::size_t index : {Handoff::write, Handoff::last}) {
    EXPECT_EQ(last_awaited_record(by_hand.step.plan, index), index);
    EXPECT_EQ(next_awaiting_wait(by_hand.step.plan, index), index);
  }
}

TEST(StreamHandoffs, GoBackToAnotherStreamThanThatOfTheKernelsToo) {
  const Handoff by_hand;
  const StepPlan& plan = by_hand.step.plan;
  EXPECT_EQ(next_awaiting_wait(plan, Handoff::write, side_stream), Handoff::wait);
  EXPECT_EQ(next_awaiting_wait(plan, Handoff::last, side_stream), Handoff::last) << "nobody waits";
  EXPECT_EQ(next_awaiting_wait(plan, Handoff::read, side_stream), Handoff::read);
}

TEST(StreamHandoffs, AreNotThereWhereNobodyWaits) {
  for (const std::size_t without : {Handoff::wait, Handoff::wait_back}) {
    Handoff by_hand;
    by_hand.step.plan.operations[without].action = HostWork{1};
    const bool waits_first = without != Handoff::wait;
    EXPECT_EQ(last_awaited_record(by_hand.step.plan, Handoff::read) != Handoff::read, waits_first);
    EXPECT_EQ(next_awaiting_wait(by_hand.step.plan, Handoff::read) != Handoff::read, !waits_first);
  }
}

// Compute, side and third stream each wait for the previous one, and back.
TEST(StreamHandoffs, GoOverStreamsInBetween) {
  Step step;
  const int far = step.builder.add_stream({.name = "far", .kind = StreamKind::non_blocking});
  const int handed = step.buffer("handed");
  const int out = step.builder.add_event("out", 1);
  const int further = step.builder.add_event("further", 1);
  const int back = step.builder.add_event("back", 1);
  step.write(handed).act(RecordEvent{out});                                            // 0, 1
  step.on(side_stream).act(StreamWaitsEvent{out}).act(RecordEvent{further});           // 2, 3
  step.on(far).act(StreamWaitsEvent{further}).read(handed).act(RecordEvent{further});  // 4, 5, 6
  step.on(side_stream).act(StreamWaitsEvent{further}).act(RecordEvent{back});          // 7, 8
  step.on(compute_stream).act(StreamWaitsEvent{back}).write(handed);                   // 9, 10
  constexpr std::size_t read = 5;
  EXPECT_EQ(last_awaited_record(step.plan, read), 1U);
  EXPECT_EQ(next_awaiting_wait(step.plan, read), 9U);
  for (Operation& operation : step.plan.operations) operation.captured = true;
  EXPECT_EQ(find_capture_error(step.plan), std::nullopt);
  for (const std::size_t wait : {2U, 4U, 7U, 9U}) {
    StepPlan cut = step.plan;
    cut.operations[wait].action = RecordEvent{step.builder.add_event("unrelated", 1)};
    cut.events = step.plan.events;
    const bool on_the_way_out = wait < read;
    EXPECT_EQ(last_awaited_record(cut, read), on_the_way_out ? read : 1U)
        << "without wait " << wait;
    EXPECT_EQ(next_awaiting_wait(cut, read), on_the_way_out ? 9U : read) << "without wait " << wait;
  }
}

TEST(StreamHandoffs, BoundWhatAStepAllocatesForAnotherStream) {
  Handoff by_hand;
  StepPlan& plan = by_hand.step.plan;
  build_allocations(plan, {.with = Allocator::cuda_async, .when = AllocWhen::op});
  EXPECT_EQ(find_race(plan), std::nullopt);
  const auto release = std::find_if(
      plan.operations.begin(), plan.operations.end(),
      [](const Operation& operation) { return std::holds_alternative<Release>(operation.action); });
  ASSERT_NE(release, plan.operations.end());
  // The buffer is released right where the copy is issued, before the copy is complete.
  std::rotate(plan.operations.begin() + Handoff::read + 2, release, release + 1);
  EXPECT_NE(find_race(plan), std::nullopt);
}

TEST(StreamHandoffs, MakeNoBranchOfTheLegacyStream) {
  Handoff by_hand;
  for (Operation& operation : by_hand.step.plan.operations) {
    operation.captured = true;
    if (operation.stream == side_stream) operation.stream = legacy_stream;
  }
  EXPECT_EQ(find_capture_error(by_hand.step.plan),
            "'act' cannot be part of a graph: CUDA captures nothing on the legacy default stream");
}

TEST(StreamHandoffs, MakeABranchOfAGraph) {
  const auto error_of = [](std::optional<Handoff::Index> without) {
    Handoff by_hand;
    for (Operation& operation : by_hand.step.plan.operations) operation.captured = true;
    if (without) by_hand.step.plan.operations[*without].action = FillZero{{by_hand.handed, 0, 0}};
    return find_capture_error(by_hand.step.plan).value_or("none");
  };
  EXPECT_EQ(error_of(std::nullopt), "none");
  EXPECT_NE(error_of(Handoff::wait).find("its stream has waited for nothing that the graph"),
            std::string::npos);
  EXPECT_NE(error_of(Handoff::wait_back).find("the compute stream never waits for it"),
            std::string::npos);
}

}  // namespace
}  // namespace stepgate
