// SPDX-License-Identifier: MIT
// Tests the useful throughput of kernels with handwritten traces.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stepgate
