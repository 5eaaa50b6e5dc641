// SPDX-License-Identifier: MIT
#include "tests/contract/expect_run.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// GEMMs that accumulate may split their sums differently and round differently: by 2^-24 per
// addition in fp32, and by half a unit of bf16 where gradients are stored so. Some steps later, the
// difference of the losses is still below this share.
double bound_of_added_gradients(DType dtype) {
  return dtype == DType::bf16 ? 1e-2 : 1e-4;
}

}  // namespace

void expect_losses(const StepResult& result, const Observe& observe, DeviceKind kind) {
  if (kind == DeviceKind::simulated) {
    EXPECT_TRUE(result.losses.empty());
    return;
  }
  ASSERT_EQ(static_cast<std::int64_t>(result.losses.size()),
            observe.wash_out_steps + observe.steps);
  for (const float loss : result.losses) ASSERT_TRUE(std::isfinite(loss)) << loss;
}

void expect_times(const StepResult& result, const Observe& observe, int steps_in_flight) {
  if (result.sm_clock_hertz) {
    EXPECT_GT(*result.sm_clock_hertz, 0);
  }
  if (!result.elapsed) {
    EXPECT_FALSE(result.sm_clock_hertz);
    EXPECT_FALSE(result.host_busy);
    EXPECT_TRUE(result.step_times.empty());
    return;
  }
  EXPECT_GT(result.elapsed->count(), 0);
  // Clocks of stamps and events may have a resolution of only one microsecond.
  constexpr nanoseconds ticks{2000};
  // The first scored step begins at the end of the step before.
  ASSERT_EQ(static_cast<std::int64_t>(result.step_times.size()),
            observe.wash_out_steps > 0 ? observe.steps : observe.steps - 1);
  for (const nanoseconds time : result.step_times) EXPECT_GE(time.count(), 0);
  // The first step begins before `elapsed` does if the host is behind the device.
  nanoseconds sum{0};
  for (auto index = std::size_t{observe.wash_out_steps > 0}; index < result.step_times.size();
       ++index) {
    sum += result.step_times[index];
  }
  EXPECT_LE(sum, *result.elapsed + *result.elapsed / 50 + ticks);
  // The host issues the first of these steps while the device still runs the wash-out; it is at
  // most this many steps ahead. A scheduler may also interrupt the host briefly.
  constexpr nanoseconds moment = std::chrono::milliseconds(2);
  ASSERT_TRUE(result.host_busy);
  EXPECT_GT(result.host_busy->count(), 0);
  EXPECT_LE(*result.host_busy,
            *result.elapsed + *result.elapsed * steps_in_flight / observe.steps + moment);
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

void expect_same_losses(const std::vector<float>& got, const std::vector<float>& expected,
                        DeviceKind kind, const Knobs& knobs) {
  if (kind != DeviceKind::cuda || knobs.memory.zero_grad == ZeroGrad::none) {
    ASSERT_EQ(bits_of(got), bits_of(expected));
    return;
  }
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t step = 0; step < got.size(); ++step) {
    ASSERT_NEAR(got[step], expected[step],
                bound_of_added_gradients(knobs.model.dtype) * std::abs(expected[step]))
        << "step " << step;
  }
}

std::vector<float> run_in_pieces(LoadedStep& step, const std::vector<Observe>& pieces) {
  std::vector<float> losses;
  for (const Observe& piece : pieces) {
    const StepResult result = step.run(piece);
    losses.insert(losses.end(), result.losses.begin(), result.losses.end());
  }
  return losses;
}

}  // namespace stepgate
