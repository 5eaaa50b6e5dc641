// SPDX-License-Identifier: MIT
// Tests the operations of an elementwise model's step, and how layout, stride, place and copies
// change them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

constexpr std::int64_t elements = 4 * 64;

Knobs elementwise(std::int64_t kernels) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::elementwise, .hidden = 64, .kernels = kernels};
  knobs.batch.size = 4;
  return knobs;
}

template <class Set>
StepPlan elementwise_with(Set set) {
  Knobs knobs = elementwise(3);
  set(knobs);
  return plan_of(knobs);
}

std::vector<std::string_view> kernels_of(const StepPlan& plan) {
  std::vector<std::string_view> names;
  for (const Operation& operation : plan.operations) {
    if (const auto* launch = std::get_if<LaunchKernel>(&operation.action))
      names.push_back(launch->kernel.name());
  }
  return names;
}

// The launches that 'model.kernels' counts.
std::vector<LaunchKernel> scaling_of(const StepPlan& plan) {
  std::vector<LaunchKernel> launches;
  for (const Operation& operation : plan.operations) {
    if (operation.name.starts_with("scale "))
      launches.push_back(std::get<LaunchKernel>(operation.action));
  }
  return launches;
}

std::int64_t bytes_named(const StepPlan& plan, std::string_view name) {
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.name == name) return buffer.bytes;
  }
  return 0;
}

TEST(Elementwise, HasAsManyKernelsAsAskedForBetweenTheBatchAndTheLoss) {
  const StepPlan plan = plan_of(elementwise(3));
  EXPECT_EQ(kernels_of(plan), (std::vector<std::string_view>{
                                  "ingest", "strided_scale", "strided_scale", "strided_scale",
                                  "strided_scale", "strided_scale", "square_sums", "report_loss"}));
  EXPECT_EQ(scaling_of(plan).size(), 3u);
  EXPECT_EQ(plan.param_bytes, 0);
  EXPECT_EQ(plan.batch_bytes, 4 * (64 + 1) * 4);
}

TEST(Elementwise, PutsOneFieldOfSixIntoRecords) {
  const StepPlan field = plan_of(elementwise(3));
  const StepPlan records =
      elementwise_with([](Knobs& knobs) { knobs.model.layout = Layout::records; });
  EXPECT_EQ(bytes_named(field, "records"), elements * 4);
  EXPECT_EQ(bytes_named(records, "records"), elements * 24);
  EXPECT_EQ(bytes_named(records, "result"), elements * 4);
  EXPECT_EQ(kernels_of(records), kernels_of(field));
  for (const Metric metric : {Metric::flops_per_step, Metric::launches_per_step}) {
    EXPECT_EQ(counted(records, metric), counted(field, metric)) << row_of(metric).name;
  }
}

TEST(Elementwise, KeepsTheNumbersAsLargeAsTheyWere) {
  double product = 1;
  for (const LaunchKernel& launch : scaling_of(plan_of(elementwise(10)))) {
    EXPECT_NE(launch.attributes.as<kernels::StridedScale>().factor, 1);
    product *= launch.attributes.as<kernels::StridedScale>().factor;
  }
  EXPECT_EQ(product, 1);
}

TEST(Elementwise, ScalesInPlaceOrFromOneBufferToAnother) {
  for (const LaunchKernel& launch : scaling_of(plan_of(elementwise(3)))) {
    EXPECT_EQ(launch.operands[0].buffer, launch.operands[1].buffer);
  }
  const auto launches =
      scaling_of(elementwise_with([](Knobs& knobs) { knobs.model.inplace = false; }));
  for (std::size_t index = 0; index < launches.size(); ++index) {
    EXPECT_NE(launches[index].operands[0].buffer, launches[index].operands[1].buffer);
    if (index == 0) continue;
    EXPECT_EQ(launches[index].operands[0].buffer, launches[index - 1].operands[1].buffer);
  }
}

TEST(Elementwise, ComputesItsLossFromTheLastCopy) {
  for (const std::int64_t copies : {1, 2, 5}) {
    const StepPlan plan =
        elementwise_with([copies](Knobs& knobs) { knobs.model.extra_copies = copies; });
    EXPECT_EQ(counted(plan, Metric::copies_per_step), static_cast<double>(copies));
    EXPECT_EQ(counted(plan, Metric::copy_bytes_per_step),
              static_cast<double>(copies * elements * 4));
    int copied = -1;
    for (const Operation& operation : plan.operations) {
      if (const auto* copy = std::get_if<CopyBytes>(&operation.action)) {
        if (copied >= 0) {
          EXPECT_EQ(copy->from.buffer, copied);
        }
        copied = copy->to.buffer;
      }
      const auto* launch = std::get_if<LaunchKernel>(&operation.action);
      if (launch != nullptr && launch->kernel == "square_sums") {
        EXPECT_EQ(launch->operands[0].buffer, copied);
      }
    }
  }
}

TEST(Elementwise, TouchesSectorsByLayoutStrideAndDtype) {
  const auto sectors = [](Layout layout, std::int64_t stride, DType dtype) {
    return counted(elementwise_with([&](Knobs& knobs) {
                     knobs.model.layout = layout;
                     knobs.model.stride = stride;
                     knobs.model.dtype = dtype;
                   }),
                   Metric::sectors_per_request);
  };
  EXPECT_EQ(sectors(Layout::arrays, 1, DType::fp32), 4);
  EXPECT_EQ(sectors(Layout::arrays, 2, DType::fp32), 8);
  EXPECT_EQ(sectors(Layout::arrays, 32, DType::fp32), 32);
  EXPECT_EQ(sectors(Layout::records, 1, DType::fp32), 24);
  EXPECT_EQ(sectors(Layout::records, 1, DType::bf16), 12);
  EXPECT_EQ(sectors(Layout::arrays, 1, DType::fp16), 2);
  EXPECT_EQ(counted(plan_of(Knobs{}), Metric::sectors_per_request), std::nullopt);
}

}  // namespace
}  // namespace stepgate
