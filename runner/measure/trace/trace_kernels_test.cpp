// SPDX-License-Identifier: MIT
// Tests the useful throughput of kernels with handwritten traces.
#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "measure/testing/trace_by_hand.h"
#include "measure/trace/trace_metrics.h"

namespace stepgate {
namespace {

constexpr double sgd_bytes = 3 * 4 * 1024 * 1024;  // reads weights and gradients, writes weights

TEST(TraceKernels, DividesUsefulBytesByTheTimeOfKernelsThatMemoryLimits) {
  TraceByHand by_hand_trace(2);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 10)
      .work(by_hand::memory, 0, a_kernel, 10, 20)
      .work(by_hand::memory, 0, a_kernel, 20, 24)  // of the same launch
      .work(by_hand::memory, 1, a_kernel, 30, 36);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_NEAR(step.values.at(Metric::kernel_gbps), 2 * sgd_bytes / 20e-6, 1);
}

TEST(TraceKernels, HaveNoSpeedWhereMemoryLimitsNone) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 10);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_FALSE(step.values.contains(Metric::kernel_gbps));
}

PlannedStep plan_with_a_chase() {
  const PlannedStep usual = plan_by_hand();
  StepPlan plan = usual;
  plan.operations[by_hand::math].action =
      LaunchKernel{.kernel = "chase",
                   .shape = kernels::Chase::Shape{.lines = 128},
                   .attributes = kernels::Chase::Attributes{.accesses = 1000},
                   .operands = {{2, 0, 128 * chase_line_bytes}, {0, 0, 4}, {0, 4, 4}}};
  return with_facts(std::move(plan));
}

TEST(TraceKernels, DividesTheCyclesOfAChaseByItsLoads) {
  TraceByHand by_hand_trace(2);
  by_hand_trace.work(by_hand::math, 0, a_kernel, 0, 20)
      .work(by_hand::memory, 0, a_kernel, 20, 90)
      .work(by_hand::math, 1, a_kernel, 100, 140);
  Trace trace = by_hand_trace.trace();
  EXPECT_FALSE(summary_of(trace, plan_with_a_chase()).values.contains(Metric::cycles_per_load))
      << "nobody knows the clock";
  trace.clocks = {{.at = TraceTime(1), .hertz = 1e9}, {.at = TraceTime(2), .hertz = 2e9}};
  EXPECT_NEAR(summary_of(trace, plan_with_a_chase()).values.at(Metric::cycles_per_load),
              1.5 * 60'000 / 2'000, 1e-9);
  EXPECT_FALSE(summary_of(trace, plan_by_hand()).values.contains(Metric::cycles_per_load))
      << "it has no such load";
}

}  // namespace
}  // namespace stepgate
