// SPDX-License-Identifier: MIT
#include "plan/analyse/hand_overs.h"

#include <gtest/gtest.h>

#include "plan/analyse/find_capture_errors.h"
#include "plan/analyse/find_races.h"
#include "plan/build/build_allocations.h"
#include "plan/testing/steps_by_hand.h"

namespace stepgate {
namespace {

// Two kernels' worth of compute, a copy beside them on the side stream, and both events.
struct HandOver {
  Step step;
  int passing = step.buffer("passing");
  int ready = step.builder.add_event("ready", 1);
  int over = step.builder.add_event("over", 1);

  enum Index : std::size_t { write, record, other_work, wait, read, record_back, wait_back, last };

  HandOver() {
    const int other = step.buffer("other", Purpose::gradients);
    step.on(StreamName::compute).write(passing).act(RecordEvent{ready}).write(other);
    step.on(StreamName::side).act(StreamWaitsEvent{ready}).read(passing).act(RecordEvent{over});
    step.on(StreamName::compute).act(StreamWaitsEvent{over}).write(other);
  }
};

TEST(HandOvers, AreAtTheRecordThatTheOtherStreamWaitsForAndAtTheWaitForIt) {
  const HandOver by_hand;
  EXPECT_EQ(handed_over_at(by_hand.step.plan, HandOver::read), HandOver::record);
  EXPECT_EQ(handed_back_at(by_hand.step.plan, HandOver::read), HandOver::wait_back);
}

TEST(HandOvers, AreAtTheOperationItselfOnTheComputeStream) {
  const HandOver by_hand;
  for (const std::size_t index : {HandOver::write, HandOver::last}) {
    EXPECT_EQ(handed_over_at(by_hand.step.plan, index), index);
    EXPECT_EQ(handed_back_at(by_hand.step.plan, index), index);
  }
}

TEST(HandOvers, AreNotThereWhereNobodyWaits) {
  for (const std::size_t without : {HandOver::wait, HandOver::wait_back}) {
    HandOver by_hand;
    by_hand.step.plan.operations[without].action = HostWork{1};
    const bool waits_first = without != HandOver::wait;
    EXPECT_EQ(handed_over_at(by_hand.step.plan, HandOver::read) != HandOver::read, waits_first);
    EXPECT_EQ(handed_back_at(by_hand.step.plan, HandOver::read) != HandOver::read, !waits_first);
  }
}

TEST(HandOvers, BoundWhatAStepAllocatesForAnotherStream) {
  HandOver by_hand;
  StepPlan& plan = by_hand.step.plan;
  build_allocations(plan, {.with = Allocator::cuda_async, .when = AllocWhen::op});
  EXPECT_EQ(find_race(plan), std::nullopt);
  const auto release = std::find_if(
      plan.operations.begin(), plan.operations.end(),
      [](const Operation& operation) { return std::holds_alternative<Release>(operation.action); });
  ASSERT_NE(release, plan.operations.end());
  // Released where the copy was issued, which is before it is over.
  std::rotate(plan.operations.begin() + HandOver::read + 2, release, release + 1);
  EXPECT_NE(find_race(plan), std::nullopt);
}

TEST(HandOvers, MakeABranchOfAGraph) {
  const auto error_of = [](std::optional<HandOver::Index> without) {
    HandOver by_hand;
    for (Operation& operation : by_hand.step.plan.operations) operation.captured = true;
    if (without) by_hand.step.plan.operations[*without].action = FillZero{{by_hand.passing, 0, 0}};
    return find_capture_error(by_hand.step.plan).value_or("none");
  };
  EXPECT_EQ(error_of(std::nullopt), "none");
  EXPECT_NE(error_of(HandOver::wait).find("its stream has waited for nothing that the graph"),
            std::string::npos);
  EXPECT_NE(error_of(HandOver::wait_back).find("the compute stream never waits for it"),
            std::string::npos);
}

}  // namespace
}  // namespace stepgate
