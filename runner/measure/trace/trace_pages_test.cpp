// SPDX-License-Identifier: MIT
// Tests managed memory in traces: page faults, migrated bytes, and the time of migrations.
#include <gtest/gtest.h>

#include "measure/testing/trace_by_hand.h"
#include "measure/trace/trace_metrics.h"

namespace stepgate {
namespace {

TEST(TracePages, CountsFaultsAndMovedPagesOfManagedMemory) {
  StepPlan plan = plan_by_hand();
  Trace trace = TraceByHand(4).work(by_hand::math, 0, a_kernel, 0, 10).trace();
  EXPECT_EQ(summary_of(trace, with_facts(plan)).values.at(Metric::page_faults_per_step), 0);
  plan.buffers.push_back({.name = "managed batch", .memory = MemoryKind::managed, .bytes = 1000});
  EXPECT_FALSE(summary_of(trace, with_facts(plan)).values.contains(Metric::page_faults_per_step))
      << "nobody could tell";
  trace.page_events = {{PageEventKind::device_faults, 3, TraceTime(0), TraceTime(9)},
                       {PageEventKind::device_faults, 5, TraceTime(1), TraceTime(9)},
                       {PageEventKind::host_faults, 1, TraceTime(1), TraceTime(1)},
                       {PageEventKind::to_device, 4000, TraceTime(0), TraceTime(9)},
                       {PageEventKind::to_host, 400, TraceTime(5), TraceTime(9)}};
  const auto values = summary_of(trace, with_facts(plan)).values;
  EXPECT_EQ(values.at(Metric::page_faults_per_step), 2);
  EXPECT_EQ(values.at(Metric::host_page_faults_per_step), 0.25);
  EXPECT_EQ(values.at(Metric::migrated_bytes_per_step), 1100);
}

TEST(TracePages, TakesPagesThatMoveForCopies) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 10).work(by_hand::math, 0, a_kernel, 30, 40);
  Trace trace = by_hand_trace.trace();
  // The migration runs 6 us before the second kernel and 4 us after the first one.
  trace.page_events = {{PageEventKind::to_device, 1000, TraceTime(24'000), TraceTime(34'000)}};
  const auto values = summary_of(trace, plan_by_hand()).values;
  EXPECT_NEAR(values.at(Metric::exposed_copy_us), 6 * microsecond, close);
  EXPECT_NEAR(values.at(Metric::copy_overlap), 0.4, close);
}

}  // namespace
}  // namespace stepgate
