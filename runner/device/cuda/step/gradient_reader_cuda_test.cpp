// SPDX-License-Identifier: MIT
// Tests the reading of gradients on the GPU. Fails, never skips, where there is no GPU.
#include "device/cuda/step/gradient_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "device/cuda/check.h"

namespace stepgate {
namespace {

// In this plan, one launch reads the gradients of all parameters, which have equally many elements.
StepPlan plan_with_parameters(std::int64_t count, std::int64_t elements) {
  StepPlan plan;
  plan.dtype = DType::fp32;
  for (std::int64_t index = 0; index < count; ++index)
    plan.parameters.push_back({"weight", index * elements, elements});
  plan.operations.push_back({.name = "update", .action = LaunchKernel{}});
  plan.operations.back().reads_gradients =
      GradientsRead{.operand = 0, .flat = {.first = 0, .elements = count * elements}};
  return plan;
}

std::size_t free_device_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "ask for free memory");
  return free;
}

TEST(GradientReader, SumsAsTheHostDoes) {
  constexpr std::int64_t elements = 1'000'003;
  const StepPlan plan = plan_with_parameters(2, elements);
  Random random(1);
  std::vector<float> values(2 * elements);
  for (float& value : values) value = static_cast<float>(random.normal());
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
  const DeviceMemoryBlock gradients = make_device_memory(bytes);
  check(cudaMemcpy(gradients.get(), values.data(), static_cast<std::size_t>(bytes),
                   cudaMemcpyHostToDevice),
        "copy the gradients");
  GradientReader reader(plan, 0);
  const CudaStream stream = make_stream();
  reader.read(plan.operations.front(), gradients.get(), stream.get());
  check(cudaStreamSynchronize(stream.get()), "wait");
  const std::vector<GradientSketch> sketches = reader.take();
  ASSERT_EQ(sketches.size(), 2U);
  for (const GradientPart& part : gradient_parts(plan, *plan.operations.front().reads_gradients)) {
    GradientSketch expected;
    add_part(part, values.data(), DType::fp32, expected);
    const GradientSketch& own = sketches[part.parameter];
    EXPECT_EQ(own.elements, elements);
    EXPECT_NEAR(own.squares / expected.squares, 1, 1e-5);
    EXPECT_LT(relative_difference(own, expected), 1e-5);
  }
}

// The sums of 2 GB of gradients take 68 MB of host memory; mapping them may take a page of device
// memory.
TEST(GradientReader, TakesNoDeviceMemory) {
  const StepPlan plan = plan_with_parameters(1000, 540'672);
  check(cudaFree(nullptr), "start the device");
  const std::size_t before = free_device_bytes();
  const GradientReader reader(plan, 0);
  EXPECT_LE(before, free_device_bytes() + (std::size_t{4} << 20));
}

}  // namespace
}  // namespace stepgate
