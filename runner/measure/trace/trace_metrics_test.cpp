// SPDX-License-Identifier: MIT
// Tests counts and shares on traces with known results. time_split_test.cpp tests what the device
// waited for.
#include "measure/trace/trace_metrics.h"

#include <gtest/gtest.h>

#include "measure/testing/trace_by_hand.h"
#include "plan/compose/replace_kernels.h"

namespace stepgate {
namespace {

TEST(TraceMetrics, CountTheKernelsThatALibraryMakesOfOneOperationAsOneLaunch) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.call(by_hand::math, 0, launch(1), 0, 2)
      .call(by_hand::math, 0, launch(2), 2, 3)
      .call(by_hand::math, 0, launch(3), 3, 4);
  Trace trace = by_hand_trace.trace();
  ASSERT_EQ(summary_of(trace, plan_by_hand()).values.at(Metric::launches_per_step), 3);
  trace.calls[1].span = trace.calls[0].span;
  EXPECT_EQ(summary_of(trace, plan_by_hand()).values.at(Metric::launches_per_step), 2);
}

TEST(TraceMetrics, CountEachKernelOfALibraryOfTheUsers) {
  StepPlan plan = plan_by_hand();
  replace_kernels(plan, {{"spin", {"m.so", "spin"}}});
  TraceByHand by_hand_trace(1);
  by_hand_trace.call(by_hand::math, 0, launch(1), 0, 2).call(by_hand::math, 0, launch(2), 2, 3);
  Trace trace = by_hand_trace.trace();
  trace.calls[1].span = trace.calls[0].span;
  EXPECT_EQ(summary_of(trace, with_facts(std::move(plan))).values.at(Metric::launches_per_step), 2);
}

TEST(TraceMetrics, CountsWhatTheHostDidForThePlanAndDividesByTheSteps) {
  TraceByHand by_hand_trace(4);
  by_hand_trace.call(by_hand::math, 0, launch(1), 0, 2)
      .call(by_hand::math, 1, {.name = "cudaGraphLaunch", .kind = CallKind::graph_launch}, 2, 3)
      .call(by_hand::memory, 1, launch(2), 3, 4)
      .call(by_hand::wait, 1, device_wait, 4, 5)
      .call(by_hand::wait, 2, {.kind = CallKind::wait_for_stream, .can_block = true}, 5, 6)
      .call(by_hand::copy, 2, {.kind = CallKind::copy, .can_block = true}, 6, 7)
      .call(by_hand::copy, 2, {.kind = CallKind::copy}, 7, 8)
      .call(by_hand::wait, 3, {.kind = CallKind::poll, .count = 1000}, 8, 9)
      .call(by_hand::work, 3, {.kind = CallKind::allocate}, 9, 10)
      .call(by_hand::work, 3, {.kind = CallKind::release, .can_block = true}, 10, 11)
      .call(by_hand::work, 3, {.kind = CallKind::release}, 11, 12)
      .call(by_hand::work, 3, {.kind = CallKind::pin}, 12, 13)
      .call(by_hand::work, 3, {.kind = CallKind::unpin, .can_block = true}, 13, 14)
      .call(by_hand::work, 3, {.kind = CallKind::other}, 14, 15)
      // These calls belong to the runner.
      .call(-1, 3, launch(9), 20, 21)
      .call(-1, 3, device_wait, 21, 22)
      .call(-1, 3, {.kind = CallKind::poll}, 22, 23)
      .work(by_hand::copy, 0, to_device, 3, 4)
      .work(by_hand::copy, 1, to_host, 4, 5)
      .work(by_hand::fill, 2, a_fill, 5, 6)
      .work(by_hand::math, 3, a_kernel, 6, 7)
      .work(-1, 3, to_host, 7, 8)
      .work(-1, 3, a_fill, 8, 9);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  const std::map<Metric, double> expected = {
      {Metric::launches_per_step, 3.0 / 4},       {Metric::host_waits_per_step, 5.0 / 4},
      {Metric::device_syncs_per_step, 1.0 / 4},   {Metric::polls_per_step, 1.0 / 4},
      {Metric::device_allocs_per_step, 1.0 / 4},  {Metric::device_frees_per_step, 2.0 / 4},
      {Metric::pinned_allocs_per_step, 1.0 / 4},  {Metric::copies_per_step, 2.0 / 4},
      {Metric::copy_bytes_per_step, 1004.0 / 4},  {Metric::memset_bytes_per_step, 1000.0 / 4},
      {Metric::pageable_copies_per_step, 1.0 / 4}};
  for (const auto& [metric, value] : expected) {
    EXPECT_EQ(step.values.at(metric), value) << row_of(metric).name;
  }
  ASSERT_EQ(step.copies.size(), 2u);
  EXPECT_EQ(step.copies[0].from, CopyEnd::pinned);
  EXPECT_EQ(step.copies[0].bytes, 250);
  EXPECT_EQ(step.copies[1].to, CopyEnd::pageable);
  EXPECT_EQ(step.copies[1].copies, 0.25);
}

TEST(TraceMetrics, LeavesOutACountThatDoesNotComeOutEvenInSoManySteps) {
  StepPlan plan = plan_by_hand();
  plan.operations[by_hand::wait].every = 3;
  TraceByHand by_hand_trace(4);
  by_hand_trace.call(by_hand::wait, 2, device_wait, 0, 1);
  const TracedStep uneven = summary_of(by_hand_trace.trace(), with_facts(plan));
  EXPECT_FALSE(uneven.values.contains(Metric::host_waits_per_step));
  EXPECT_FALSE(uneven.values.contains(Metric::device_syncs_per_step));
  EXPECT_EQ(uneven.values.at(Metric::launches_per_step), 0);
  by_hand_trace.trace().steps = 3;
  const TracedStep even = summary_of(by_hand_trace.trace(), with_facts(plan));
  EXPECT_EQ(even.values.at(Metric::host_waits_per_step), 1.0 / 3);
}

// The timeline is: math 0-10, idle 10-20, copy 20-30 beside memory 25-40, fill 40-44, idle 44-50,
// math 50-60.
TEST(TraceMetrics, MeasuresSharesOfTheWindow) {
  TraceByHand by_hand_trace(2);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 10)
      .work(by_hand::copy, 0, to_device, 20, 30)
      .work(by_hand::memory, 0, a_kernel, 25, 40)
      .work(by_hand::fill, 0, a_fill, 40, 44)
      .work(by_hand::math, 1, a_kernel, 50, 60);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_NEAR(step.values.at(Metric::gpu_idle), 16.0 / 60, close);
  EXPECT_NEAR(step.values.at(Metric::kernel_idle), 25.0 / 60, close);
  EXPECT_NEAR(step.values.at(Metric::copy_overlap), 0.5, close);
  EXPECT_NEAR(step.values.at(Metric::exposed_copy_us), 2.5 * microsecond, close);
  EXPECT_NEAR(step.values.at(Metric::h2d_share), 10.0 / 55, close);
  EXPECT_NEAR(step.values.at(Metric::h2d_gbps), 1000 / (10 * microsecond), 1);
  EXPECT_NEAR(step.time.step, 30 * microsecond, close);
  EXPECT_NEAR(step.time.math, 10 * microsecond, close);
  EXPECT_NEAR(step.time.memory, (15 + 4) / 2.0 * microsecond, close);
  EXPECT_NEAR(step.time.copies, 2.5 * microsecond, close);
  EXPECT_NEAR(step.time.idle_for_host, 8 * microsecond, close);
  EXPECT_NEAR(sum_of_parts(step.time), step.time.step, close);
  EXPECT_NEAR(step.phases[static_cast<std::size_t>(Phase::forward)].device_busy, 10 * microsecond,
              close);
  EXPECT_NEAR(step.phases[static_cast<std::size_t>(Phase::h2d)].device_busy, 5 * microsecond,
              close);
  EXPECT_NEAR(step.phases[static_cast<std::size_t>(Phase::h2d)].copying, 5 * microsecond, close);
  EXPECT_EQ(step.phases[static_cast<std::size_t>(Phase::forward)].copying, 0);
}

TEST(TraceMetrics, HasNoOverlapWithoutACopyToTheDevice) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 10).work(by_hand::copy, 0, to_host, 5, 12);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_FALSE(step.values.contains(Metric::copy_overlap));
  EXPECT_FALSE(step.values.contains(Metric::h2d_gbps));
  EXPECT_EQ(step.values.at(Metric::h2d_share), 0);
  EXPECT_NEAR(step.values.at(Metric::exposed_copy_us), 2 * microsecond, close);
}

TEST(TraceMetrics, HasOnlyCountsWhereNothingRan) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.span(by_hand::work, 0, 0, 10);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_EQ(step.values.at(Metric::launches_per_step), 0);
  EXPECT_FALSE(step.values.contains(Metric::gpu_idle));
  EXPECT_FALSE(step.values.contains(Metric::data_share));
  EXPECT_EQ(step.time.step, 0);
}

TEST(TraceMetrics, ComparesKernelsWithTheirOwnLaunchCalls) {
  TraceByHand by_hand_trace(1);
  DeviceWork of_graph = caused_by(4);
  of_graph.from_graph = true;
  by_hand_trace.call(by_hand::math, 0, launch(1), 0, 5)
      .call(by_hand::math, 0, launch(2), 5, 7)
      .call(by_hand::math, 0, launch(3), 7, 9)
      .call(by_hand::math, 0, {.kind = CallKind::graph_launch, .correlation = 4}, 9, 19)
      .work(by_hand::math, 0, caused_by(1), 6, 8)  // shorter than 5
      .work(by_hand::math, 0, caused_by(2), 8, 10)
      .work(by_hand::math, 0, caused_by(3), 10, 19)
      .work(by_hand::math, 0, of_graph, 20, 21)
      .work(by_hand::math, 0, a_kernel, 21, 22);  // of unknown origin
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_NEAR(step.values.at(Metric::short_kernel_share), 1.0 / 3, close);
}

TEST(TraceMetrics, PassesOnMemoryAndWhatIsNotSteady) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.trace().memory.peak_allocated_bytes = 17;
  by_hand_trace.trace().unsteady = {{.kind = UnsteadyKind::module_loading},
                                    {.kind = UnsteadyKind::module_loading}};
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_EQ(step.memory.peak_allocated_bytes, 17);
  EXPECT_EQ(step.unsteady.at(UnsteadyKind::module_loading), 2);
}

TEST(TraceMetrics, KnowsOfTheDriversMemoryWhatTheTraceKnows) {
  TraceByHand by_hand_trace(1);
  EXPECT_FALSE(
      summary_of(by_hand_trace.trace(), plan_by_hand()).values.contains(Metric::driver_used));
  by_hand_trace.trace().memory.driver_bytes = 3 << 20;
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_EQ(step.values.at(Metric::driver_used), 3 << 20);
}

// Two kernels of the forward pass overlap for 1 us, then there is a pause. The copy runs beside
// them.
TEST(TraceMetrics, TimesAPhaseByTheUnionOfItsWork) {
  TraceByHand by_hand_trace(2);
  by_hand_trace.span(by_hand::take, 0, 0, 3)
      .span(by_hand::take, 1, 10, 14)
      .work(by_hand::copy, 0, to_device, 2, 6)
      .work(by_hand::math, 0, caused_by(1), 3, 6)
      .work(by_hand::math, 1, caused_by(2), 5, 8)
      .work(by_hand::memory, 1, caused_by(3), 20, 21)
      .work(by_hand::fill, 1, a_fill, 21, 23)
      .work(-1, 1, a_kernel, 30, 40);
  const std::map<Metric, double> values = summary_of(by_hand_trace.trace(), plan_by_hand()).values;
  EXPECT_NEAR(values.at(Metric::data_wait_us), 7 * microsecond / 2, close);
  EXPECT_NEAR(values.at(Metric::h2d_us), 4 * microsecond / 2, close);
  EXPECT_NEAR(values.at(Metric::forward_us), 5 * microsecond / 2, close);
  EXPECT_NEAR(values.at(Metric::backward_us), 2 * microsecond / 2, close);
  EXPECT_NEAR(values.at(Metric::optimizer_us), 1 * microsecond / 2, close);
}

TEST(TraceMetrics, AddsUpTheTimeOfEachKernelByItsNameInTheCatalogue) {
  TraceByHand by_hand_trace(2);
  by_hand_trace.work(by_hand::math, 0, caused_by(1), 3, 6)
      .work(by_hand::math, 0, caused_by(2), 5, 8)  // of the same launch
      .work(by_hand::math, 1, caused_by(3), 9, 10)
      .work(by_hand::memory, 1, caused_by(4), 20, 21)
      .work(by_hand::copy, 0, to_device, 2, 6)
      .work(by_hand::copy, 1, to_host, 12, 13)
      .work(by_hand::fill, 1, a_fill, 21, 23)
      .work(-1, 1, a_kernel, 30, 40);
  const WorkTimes work = summary_of(by_hand_trace.trace(), plan_by_hand()).work;
  ASSERT_EQ(work.size(), 4u);
  EXPECT_EQ(work.at("spin").times, 1);
  EXPECT_NEAR(work.at("spin").seconds, 7 * microsecond / 2, close);
  EXPECT_NEAR(work.at("sgd").seconds, 1 * microsecond / 2, close);
  EXPECT_EQ(work.at("(copies)").times, 1);
  EXPECT_NEAR(work.at("(copies)").seconds, 5 * microsecond / 2, close);
  EXPECT_NEAR(work.at("(fills)").seconds, 2 * microsecond / 2, close);
}

}  // namespace
}  // namespace stepgate
