// SPDX-License-Identifier: MIT
// Tests which cause the pauses of a step are attributed to, and that its parts add up, on
// handwritten and on random traces.
#include "measure/trace/time_breakdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "measure/testing/trace_by_hand.h"
#include "measure/trace/trace_metrics.h"

namespace stepgate {
namespace {

// The device runs dry at 10, during the wait; the next launch takes effect 3 us after its call.
TEST(TraceMetrics, BlamesAPauseThatBeginsInAWaitOnTheWaitToItsEnd) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.call(by_hand::math, 0, launch(1), 0, 2)
      .call(by_hand::wait, 0, device_wait, 4, 12)
      .span(by_hand::take, 0, 12, 20)
      .call(by_hand::math, 0, launch(2), 30, 32)
      .work(by_hand::math, 0, caused_by(1), 3, 10)
      .work(by_hand::math, 0, caused_by(2), 33, 43);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_NEAR(step.time.idle_after_wait, 23 * microsecond, close);
  EXPECT_EQ(step.time.idle_for_data, 0);
  EXPECT_EQ(step.time.idle_for_host, 0);
  EXPECT_NEAR(step.values.at(Metric::host_blocked_us), 8 * microsecond, close);
  const PhaseSplit& sync = step.phases[static_cast<std::size_t>(Phase::sync)];
  EXPECT_NEAR(sync.host_blocked, 8 * microsecond, close);
  EXPECT_EQ(sync.host_waits, 1);
}

TEST(TraceMetrics, CountsAPollAsAWaitOfTheHostThatCannotBlock) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.call(by_hand::math, 0, launch(1), 0, 2)
      .call(by_hand::wait, 0, {.kind = CallKind::poll, .count = 70}, 4, 12)
      .call(by_hand::math, 0, launch(2), 30, 32)
      .work(by_hand::math, 0, caused_by(1), 3, 10)
      .work(by_hand::math, 0, caused_by(2), 33, 43);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_EQ(step.values.at(Metric::host_waits_per_step), 0);
  EXPECT_EQ(step.values.at(Metric::polls_per_step), 1);
  EXPECT_NEAR(step.values.at(Metric::host_blocked_us), 8 * microsecond, close);
  EXPECT_NEAR(step.time.idle_after_wait, 23 * microsecond, close);
}

// The kernels of a step take 18 us; the host is busy for 18 us and waits for 12 us. Without its
// wait it would keep up, and there would be no pause between the kernels. Where the host is busy
// for 20 us more, that pause is attributed to it.
TEST(TraceMetrics, BlamesTheFillingOfTheQueueOnTheWaitAsFarAsTheHostWouldHaveKeptUp) {
  for (const std::int64_t slow : {0, 20}) {
    TraceByHand by_hand_trace(3);
    for (std::int64_t step = 0; step < 3; ++step) {
      const std::int64_t at = step * (30 + slow);
      const auto number = static_cast<std::uint32_t>(2 * step + 1);
      by_hand_trace.call(by_hand::math, step, launch(number), at, at + 1)
          .call(by_hand::math, step, launch(number + 1), at + 14, at + 15)
          .call(by_hand::wait, step, device_wait, at + 15, at + 27)
          .span(by_hand::work, step, at + 27, at + 30 + slow)
          .work(by_hand::math, step, caused_by(number), at + 2, at + 10)
          .work(by_hand::math, step, caused_by(number + 1), at + 16, at + 26);
    }
    by_hand_trace.trace().closing_steps = 1;
    const TimeBreakdown time = summary_of(by_hand_trace.trace(), plan_by_hand()).time;
    EXPECT_NEAR(time.math, 18 * microsecond, close);
    // The device is idle from 10 to 16, and from 26, within the wait, to the next step.
    EXPECT_NEAR(time.idle_after_wait + time.idle_for_host,
                (12. + static_cast<double>(slow)) * microsecond, close);
    EXPECT_NEAR(time.idle_for_host, slow == 0 ? 0 : 6 * microsecond, close);
  }
}

// The runner throttled the host from 4 to 12, which is not a wait of the step.
TEST(TraceMetrics, BlamesOtherPausesOnTheLoaderAndTheHost) {
  TraceByHand by_hand_trace(2);
  by_hand_trace.call(by_hand::math, 0, launch(1), 0, 2)
      .call(-1, 0, device_wait, 4, 12)
      .span(by_hand::take, 0, 12, 20)
      .call(by_hand::math, 1, launch(2), 30, 32)
      .work(by_hand::math, 0, caused_by(1), 3, 10)
      .work(by_hand::math, 1, caused_by(2), 33, 43);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_EQ(step.time.idle_after_wait, 0);
  EXPECT_NEAR(step.time.idle_for_data, 8 / 2.0 * microsecond, close);
  EXPECT_NEAR(step.time.idle_for_host, 15 / 2.0 * microsecond, close);
  EXPECT_NEAR(step.values.at(Metric::data_share), 8.0 / (40 - 8), close);
  EXPECT_EQ(step.values.at(Metric::host_blocked_us), 0);
}

// The second kernel's call came at 2 and could have taken effect at 5, long before the first kernel
// ended. So the pause between these kernels is the device's own, although the host is in a wait by
// then. The third kernel's call came at 11: the pause until it could take effect, at 14, is the
// host's, and the rest is not.
TEST(TraceMetrics, BlamesNobodyForPausesWhileWorkIsQueued) {
  TraceByHand by_hand_trace(1);
  by_hand_trace.call(by_hand::math, 0, launch(1), 0, 1)
      .call(by_hand::math, 0, launch(2), 2, 3)
      .call(by_hand::wait, 0, device_wait, 4, 11)
      .call(by_hand::math, 0, launch(3), 11, 12)
      .work(by_hand::math, 0, caused_by(1), 3, 7)
      .work(by_hand::math, 0, caused_by(2), 9, 10)
      .work(by_hand::math, 0, caused_by(3), 16, 20);
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_NEAR(step.time.idle_in_queue, (2 + 2) * microsecond, close);
  EXPECT_NEAR(step.time.idle_after_wait, 4 * microsecond, close);
  EXPECT_EQ(step.time.idle_for_host, 0);
}

// With copies prefetched one step ahead on a side stream, the copy of step 0 was not traced. The
// copy beside the steps before the window is no evidence about them.
TEST(TraceMetrics, BeginsTheWindowWhereAllPrefetchedCopiesWereTraced) {
  TraceByHand by_hand_trace(3);
  by_hand_trace
      .work(by_hand::copy, 0, to_device, 0, 40)  // beside a step that was not traced
      .work(by_hand::math, 0, a_kernel, 50, 60)
      .work(by_hand::copy, 1, to_device, 60, 80)
      .work(by_hand::math, 1, a_kernel, 70, 90)
      .work(by_hand::math, 2, a_kernel, 100, 110)
      .work(by_hand::copy, 2, to_device, 105, 125);  // for a step that was not traced
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand(side_stream, 1));
  // The window goes from 70 to 110 and holds two steps.
  EXPECT_NEAR(step.time.step, 20 * microsecond, close);
  EXPECT_NEAR(step.values.at(Metric::gpu_idle), 10.0 / 40, close);
  EXPECT_NEAR(step.values.at(Metric::copy_overlap), 1, close);
  EXPECT_EQ(step.values.at(Metric::exposed_copy_us), 0);
  EXPECT_EQ(step.values.at(Metric::copies_per_step), 1);
}

// Each counted step has its pause, including the last one. The step that closes the window is not
// counted.
TEST(TraceMetrics, PassesAsManyPausesAsStepsWhereAStepClosesTheWindow) {
  TraceByHand by_hand_trace(3);
  for (int step = 0; step < 3; ++step) {
    by_hand_trace
        .call(by_hand::math, step, launch(static_cast<std::uint32_t>(step + 1)), 30 * step,
              30 * step + 1)
        .work(by_hand::math, step, caused_by(static_cast<std::uint32_t>(step + 1)), 30 * step + 2,
              30 * step + 22);
  }
  by_hand_trace.trace().closing_steps = 1;
  const TracedStep step = summary_of(by_hand_trace.trace(), plan_by_hand());
  EXPECT_NEAR(step.time.step, 30 * microsecond, close);
  EXPECT_NEAR(step.values.at(Metric::gpu_idle), 1 / 3.0, close);
  EXPECT_NEAR(step.time.idle_for_host, 10 * microsecond, close);
  EXPECT_EQ(step.values.at(Metric::launches_per_step), 1);
  EXPECT_NEAR(step.values.at(Metric::forward_us), 20 * microsecond, close);
  const Trace counted = counted_part(by_hand_trace.trace());
  EXPECT_EQ(counted.steps, 2);
  EXPECT_EQ(counted.spans.size(), 2U);
  EXPECT_EQ(counted.calls.size(), 2U);
  EXPECT_EQ(counted.work.size(), 2U);
}

// Returns a trace of consecutive calls and of work at random times.
Trace random_trace(std::mt19937& random) {
  const auto below = [&](int bound) { return std::uniform_int_distribution(0, bound - 1)(random); };
  const int steps = 1 + below(5);
  TraceByHand drawn(steps);
  std::int64_t now = 0;
  for (int index = 0; index < 30; ++index) {
    const int operation = below(8) - 1;
    const std::int64_t step = index * steps / 30;
    const auto correlation = static_cast<std::uint32_t>(index + 1);
    now += below(4);
    const std::int64_t end = now + below(9);
    HostCall call = launch(correlation);
    call.kind = static_cast<CallKind>(below(call_kind_count));
    call.can_block = below(3) == 0;
    drawn.call(operation, step, call, now, end);
    now = end;
    if (below(3) == 0) continue;
    DeviceWork work = below(2) == 0 ? a_kernel : below(2) == 0 ? to_device : a_fill;
    work.correlation = correlation;
    const std::int64_t begin = now + below(20) - 3;
    drawn.work(operation, step, work, begin, begin + below(12));
  }
  auto& work = drawn.trace().work;
  std::stable_sort(work.begin(), work.end(), [](const DeviceWork& one, const DeviceWork& other) {
    return one.begin < other.begin;
  });
  return drawn.trace();
}

TEST(TraceMetrics, SplitsTheStepWithoutARest) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 2000; ++trial) {
    const Trace trace = random_trace(random);
    const int ahead = trial % 3;
    const TracedStep step =
        summary_of(trace, plan_by_hand(ahead > 0 ? side_stream : compute_stream, ahead));
    EXPECT_NEAR(sum_of_parts(step.time), step.time.step, close);
    for (const double part :
         {step.time.math, step.time.memory, step.time.copies, step.time.idle_after_wait,
          step.time.idle_for_data, step.time.idle_for_host, step.time.idle_in_queue}) {
      EXPECT_GE(part, 0);
    }
    for (const Metric share : {Metric::gpu_idle, Metric::kernel_idle, Metric::copy_overlap,
                               Metric::short_kernel_share}) {
      const auto value = step.values.find(share);
      if (value == step.values.end()) continue;
      EXPECT_GE(value->second, -close) << row_of(share).name;
      EXPECT_LE(value->second, 1 + close) << row_of(share).name;
    }
    ASSERT_FALSE(HasFailure()) << "trial " << trial;
  }
}

}  // namespace
}  // namespace stepgate
