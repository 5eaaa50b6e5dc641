// SPDX-License-Identifier: MIT
// Tests the cost of communication in a step with handwritten traces.
#include "measure/trace/communication.h"

#include <gtest/gtest.h>

#include "measure/testing/trace_by_hand.h"
#include "measure/trace/trace_metrics.h"

namespace stepgate {
namespace {

// Operations after those of plan_by_hand.
constexpr int reduce = 7;
constexpr int gather = 8;
constexpr std::int64_t payload = 1000;

// Returns a plan for this number of ranks, with an all-reduce and an all-gather on a stream of
// their own.
PlannedStep plan_of_ranks(int ranks) {
  StepPlan plan = plan_by_hand();
  plan.ranks.count = ranks;
  const int stream = static_cast<int>(plan.streams.size());
  plan.streams.push_back({.name = "communication", .kind = StreamKind::non_blocking});
  const auto add = [&](CollectiveKind kind) {
    plan.operations.push_back(
        {.name = "collective",
         .phase = Phase::backward,
         .stream = stream,
         .action = Collective{.kind = kind, .from = {2, 0, payload}, .to = {2, 0, payload}}});
  };
  add(CollectiveKind::all_reduce);
  add(CollectiveKind::all_gather);
  return with_facts(std::move(plan));
}

DeviceWork collective(CollectiveKind kind = CollectiveKind::all_reduce) {
  return {.kind = WorkKind::collective,
          .name = "all-reduce",
          .stream = 3,
          .bytes = payload,
          .collective = kind};
}

RankArrival came(int rank, int operation, std::int64_t step, std::int64_t microsecond) {
  return {.operation = operation,
          .step = step,
          .rank = rank,
          .at = std::chrono::microseconds(microsecond)};
}

TEST(Communication, IsExposedWhereNoKernelRuns) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100)
      .work(reduce, 0, collective(), 60, 140)
      .work(gather, 0, collective(CollectiveKind::all_gather), 130, 160)
      .work(by_hand::memory, 0, a_kernel, 150, 200);
  const PlannedStep plan = plan_of_ranks(4);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan);
  EXPECT_NEAR(step.values.at(Metric::comm_us), 100 * microsecond, close);
  EXPECT_NEAR(step.values.at(Metric::exposed_comm_us), 50 * microsecond, close);
  EXPECT_NEAR(step.values.at(Metric::comm_overlap), 0.5, close);
  EXPECT_NEAR(step.time.communication, 50 * microsecond, close);
  EXPECT_NEAR(sum_of_parts(step.time), step.time.step, close);
  EXPECT_NEAR(step.values.at(Metric::gpu_idle), 0, close) << "the device is busy with it";
  EXPECT_NEAR(step.values.at(Metric::kernel_idle), 50. / 200, close) << "and runs no kernel";
  EXPECT_EQ(step.values.at(Metric::all_reduces_per_step), 1);
  EXPECT_EQ(step.values.at(Metric::all_gathers_per_step), 1);
  EXPECT_EQ(step.values.at(Metric::reduce_scatters_per_step), 0);
  EXPECT_EQ(step.values.at(Metric::payload_bytes_per_step), 2 * payload);
  EXPECT_EQ(step.work.at("(collectives)").times, 2);
}

// Communication beside a copy counts as a copy in the partition of the window, but is still
// exposed.
TEST(Communication, BesideACopyAloneIsExposed) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 10)
      .work(reduce, 0, collective(), 10, 30)
      .work(by_hand::copy, 0, to_device, 20, 40);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_of_ranks(4));
  EXPECT_NEAR(step.values.at(Metric::exposed_comm_us), 20 * microsecond, close);
  EXPECT_NEAR(step.time.communication, 10 * microsecond, close);
  EXPECT_NEAR(step.time.copies, 20 * microsecond, close);
  EXPECT_NEAR(sum_of_parts(step.time), step.time.step, close);
}

TEST(Communication, IsNoKernelOfItsPhaseAndItsCallNoLaunch) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.call(by_hand::math, 0, launch(1), 0, 1)
      .call(reduce, 0, launch(2), 1, 2)
      .work(by_hand::math, 0, caused_by(1), 2, 30);
  DeviceWork reduced = collective();
  reduced.correlation = 2;
  by_hand_trace.work(reduce, 0, reduced, 10, 40);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_of_ranks(4));
  EXPECT_EQ(step.values.at(Metric::launches_per_step), 1);
  EXPECT_EQ(step.values.at(Metric::backward_us), 0);
  EXPECT_EQ(step.values.at(Metric::memset_bytes_per_step), 0);
  EXPECT_EQ(step.values.at(Metric::copies_per_step), 0);
  EXPECT_EQ(step.values.at(Metric::short_kernel_share), 0);
  EXPECT_EQ(step.phases[static_cast<std::size_t>(Phase::backward)].device_busy, 0);
}

// The optimizer waits for the all-reduce after the math kernel. No operation waits for the
// all-gather.
PlannedStep plan_that_waits() {
  StepPlan plan = plan_of_ranks(4);
  const int stream = operation_at(plan, reduce).stream;
  plan.events = {{.name = "reduced"}};
  plan.operations.insert(plan.operations.begin() + reduce + 1,
                         {.name = "reduced", .stream = stream, .action = RecordEvent{0}});
  const Operation optimizer = plan.operations[by_hand::memory];
  plan.operations.push_back({.name = "wait", .action = StreamWaitsEvent{0}});
  plan.operations.push_back(optimizer);
  return with_facts(std::move(plan));
}
constexpr int gather_behind = 9;
constexpr int update = 11;

TEST(Communication, BlocksWhereTheComputeStreamIsIdleAndAwaitsIt) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100)
      .work(reduce, 0, collective(), 60, 140)
      .work(by_hand::fill, 0, a_fill, 110,
            120)  // which awaits nothing: 10 before it are not blocked
      .work(gather_behind, 0, collective(CollectiveKind::all_gather), 140, 160)
      .work(update, 0, a_kernel, 150, 200);  // 20 of its 30, the rest is not for the all-reduce
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_that_waits());
  EXPECT_NEAR(step.values.at(Metric::blocking_comm_us), 20 * microsecond, close);
  EXPECT_NEAR(step.values.at(Metric::exposed_comm_us), 50 * microsecond, close);
}

TEST(Communication, DoesNotBlockWhatAwaitsNothing) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100)
      .work(reduce, 0, collective(), 60, 140)
      .work(by_hand::memory, 0, a_kernel, 150, 200);
  EXPECT_EQ(summary_of(by_hand_trace.trace(), plan_of_ranks(4)).values.at(Metric::blocking_comm_us),
            0);
}

// A wait at the end of a step delays the first kernel of the next step.
TEST(Communication, OfTheStepBeforeBlocksTheNextOne) {
  StepPlan plan = plan_that_waits();
  plan.operations.pop_back();
  TraceByHand by_hand_trace(2);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100)
      .work(reduce, 0, collective(), 90, 130)
      .work(by_hand::math, 1, a_kernel, 130, 200)
      .work(reduce, 1, collective(), 150, 170);
  const TracedStep step = summary_of(by_hand_trace.trace(), with_facts(std::move(plan)));
  EXPECT_NEAR(step.values.at(Metric::blocking_comm_us), 30 / 2. * microsecond, close);
}

TEST(Communication, StretchesKernelsAsFarAsTheSameOnesTakeLongerUnderIt) {
  TraceByHand by_hand_trace(2);
  by_hand_trace.work(by_hand::memory, 0, a_kernel, 0, 10)
      .work(by_hand::math, 0, a_kernel, 10, 20)  // never alone
      .work(reduce, 0, collective(), 10, 60)
      .work(by_hand::memory, 0, a_kernel, 20, 34)
      .work(by_hand::memory, 0, a_kernel, 50, 63)  // half of it
      .work(by_hand::memory, 1, a_kernel, 100, 110);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_of_ranks(4));
  EXPECT_NEAR(step.values.at(Metric::comm_stretch), 1.4, close);
  by_hand_trace.trace().work.erase(by_hand_trace.trace().work.begin());
  by_hand_trace.trace().work.pop_back();
  EXPECT_FALSE(
      summary_of(by_hand_trace.trace(), plan_of_ranks(4)).values.contains(Metric::comm_stretch))
      << "nothing ran alone";
}

TEST(Communication, IsAsFastAsItIsOnceItsLastRankHasCome) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100).work(reduce, 0, collective(), 0, 100);
  EXPECT_NEAR(summary_of(by_hand_trace.trace(), plan_of_ranks(4)).values.at(Metric::bus_gbps),
              1.5 * payload / (100 * microsecond), 1);
  EXPECT_NEAR(summary_of(by_hand_trace.trace(), plan_of_ranks(2)).values.at(Metric::bus_gbps),
              1.0 * payload / (100 * microsecond), 1);
  by_hand_trace.trace().arrivals = {came(0, reduce, 0, 0), came(2, reduce, 0, 60)};
  EXPECT_NEAR(summary_of(by_hand_trace.trace(), plan_of_ranks(4)).values.at(Metric::bus_gbps),
              1.5 * payload / (40 * microsecond), 1);
}

TEST(Communication, SkewIsOfTheCollectiveOfAStepThatIsAwaitedLongest) {
  TraceByHand by_hand_trace(2);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100);
  by_hand_trace.trace().arrivals = {
      came(0, reduce, 0, 10), came(2, reduce, 0, 40),  // 30
      came(0, gather, 0, 50), came(2, gather, 0, 45),  // 5, the other way
      came(0, reduce, 1, 60), came(1, reduce, 1, 62), came(2, reduce, 1, 70)};
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_of_ranks(4));
  EXPECT_NEAR(step.values.at(Metric::skew_us), (30 + 10) / 2. * microsecond, close);
  EXPECT_EQ(step.values.at(Metric::last_rank), 2);
}

TEST(Communication, NamesNoRankWhereAllComeAtOnceOrNobodyCanTell) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100);
  const TracedStep untold = summary_of(by_hand_trace.trace(), plan_of_ranks(4));
  EXPECT_FALSE(untold.values.contains(Metric::skew_us));
  EXPECT_FALSE(untold.values.contains(Metric::last_rank));
  by_hand_trace.trace().arrivals = {came(0, reduce, 0, 10), came(2, reduce, 0, 10)};
  const TracedStep at_once = summary_of(by_hand_trace.trace(), plan_of_ranks(4));
  EXPECT_EQ(at_once.values.at(Metric::skew_us), 0);
  EXPECT_FALSE(at_once.values.contains(Metric::last_rank));
}

TEST(Communication, IsCountedByTheTraceWhateverThePlanSays) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100)
      .work(reduce, 0, collective(), 10, 20)
      .work(reduce, 0, collective(), 30, 40)
      .work(gather, 0, collective(CollectiveKind::reduce_scatter), 40, 50);
  const PlannedStep plan = plan_of_ranks(4);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan);
  EXPECT_EQ(plan.facts().count(Metric::all_reduces_per_step), 1);
  EXPECT_EQ(step.values.at(Metric::all_reduces_per_step), 2);
  EXPECT_EQ(plan.facts().count(Metric::reduce_scatters_per_step), 0);
  EXPECT_EQ(step.values.at(Metric::reduce_scatters_per_step), 1);
  EXPECT_NE(step.values.at(Metric::payload_bytes_per_step),
            plan.facts().count(Metric::payload_bytes_per_step));
}

TEST(Communication, TakesNoTimeInAStepOfOneRankAndHasNothingToDivideBy) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 100);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  for (const Metric metric : {Metric::comm_us, Metric::exposed_comm_us, Metric::skew_us})
    EXPECT_EQ(step.values.at(metric), 0) << row_of(metric).name;
  for (const Metric metric : {Metric::comm_overlap, Metric::bus_gbps, Metric::all_reduces_per_step,
                              Metric::payload_bytes_per_step})
    EXPECT_FALSE(step.values.contains(metric)) << row_of(metric).name;
}

}  // namespace
}  // namespace stepgate
