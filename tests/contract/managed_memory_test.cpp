// SPDX-License-Identifier: MIT
// Tests the traces of managed memory on every device that traces. Linked into the programs of the
// trace contract, for the same devices.
#include <gtest/gtest.h>

#include "measure/trace/trace_metrics.h"
#include "plan/count/facts_of.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

// The batch is so large that the runner's own pages do not matter.
constexpr std::int64_t batch_bytes = std::int64_t{16} << 20;

StepPlan plan_with(HostMemory host, CopyStream stream = CopyStream::compute,
                   std::int64_t buffers = 1) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::spin, .kernels = 2, .kernel_us = 20};
  knobs.batch = {.size = 16, .sample_bytes = batch_bytes / 16, .tensors = 1};
  knobs.transfer = {.host = host, .stream = stream, .buffers = buffers};
  return plan_of(knobs);
}

class ManagedMemory : public testing::TestWithParam<DeviceCase> {
 protected:
  bool traces() const { return device_->reason_against_tracing().empty(); }

  double a_step(Metric metric, HostMemory host, CopyStream stream = CopyStream::compute,
                std::int64_t buffers = 1) const {
    const StepPlan plan = plan_with(host, stream, buffers);
    const auto trace =
        device_->load(plan)->run({.wash_out_steps = 10, .steps = 20, .trace = true}).trace;
    const auto values = summary_of(trace.value(), with_facts(plan)).values;
    const auto found = values.find(metric);
    EXPECT_NE(found, values.end()) << row_of(metric).name << " is not known";
    return found == values.end() ? -1 : found->second;
  }

  const std::unique_ptr<Device> device_ = GetParam().make();
};

TEST_P(ManagedMemory, IsNotThereWhereTheBatchIsCopied) {
  if (!traces()) return;
  EXPECT_EQ(a_step(Metric::page_faults_per_step, HostMemory::pinned), 0);
  EXPECT_EQ(a_step(Metric::host_page_faults_per_step, HostMemory::pinned), 0);
  EXPECT_EQ(a_step(Metric::migrated_bytes_per_step, HostMemory::pinned), 0);
}

TEST_P(ManagedMemory, FaultsOnBothSidesWhenTheHostWritesWhatTheDeviceReads) {
  if (!traces()) return;
  EXPECT_GE(a_step(Metric::page_faults_per_step, HostMemory::managed), 1);
  EXPECT_GE(a_step(Metric::host_page_faults_per_step, HostMemory::managed), 1);
  // Pages of the batch move to the device, and back to the host for the next batch.
  const double moved = a_step(Metric::migrated_bytes_per_step, HostMemory::managed);
  EXPECT_GE(moved, 0.9 * batch_bytes);
  EXPECT_LE(moved, 2.2 * batch_bytes);
}

TEST_P(ManagedMemory, FaultsHardlyOnTheDeviceWhenItIsPrefetched) {
  if (!traces()) return;
  const double managed = a_step(Metric::page_faults_per_step, HostMemory::managed);
  for (const CopyStream stream : {CopyStream::compute, CopyStream::side}) {
    EXPECT_LE(a_step(Metric::page_faults_per_step, HostMemory::managed_prefetch, stream, 2),
              0.1 * managed);
    EXPECT_GE(a_step(Metric::migrated_bytes_per_step, HostMemory::managed_prefetch, stream, 2),
              0.9 * batch_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ManagedMemory, testing::ValuesIn(device_cases()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace stepgate
