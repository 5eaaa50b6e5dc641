// SPDX-License-Identifier: MIT
// Tests that a device prints one error and runs no step where its memory, or the part allowed by a
// cap, is too small. Linked into the programs of the device contract.
#include <gtest/gtest.h>

#include "base/text/units.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

class AllocationLimits : public testing::TestWithParam<DeviceCase> {
 protected:
  // Whether the device has limited memory; the reference device uses host memory.
  bool has_memory() const { return device_->identity().memory_bytes > 0; }

  std::string end_of(const StepPlan& plan, std::int64_t steps) const {
    try {
      (void)device_->load(plan)->run({0, steps});
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "";
  }

  const std::unique_ptr<Device> device_ = GetParam().make();
};

Knobs leaking_pool() {
  Knobs knobs = model_knobs("fp32_sgd");
  knobs.alloc.with = Allocator::cuda_async;
  knobs.alloc.when = AllocWhen::step;
  knobs.alloc.leak_bytes = 64 * mebibyte;
  return knobs;
}

TEST_P(AllocationLimits, EndAStepWhosePoolMayTakeNoMore) {
  Knobs knobs = leaking_pool();
  knobs.alloc.cap = {CapOf::bytes, 300.0 * mebibyte};
  const std::string end = end_of(plan_of(knobs), 20);
  if (!has_memory()) {
    EXPECT_EQ(end, "");
    return;
  }
  for (const char* part : {"variant 'only'", "cannot allocate 64 MiB for 'leak'", " are live of ",
                           "in the pool, which may take ", "raise 'alloc.cap'"}) {
    EXPECT_NE(end.find(part), std::string::npos) << part << " is not in: " << end;
  }
}

TEST_P(AllocationLimits, AreNotMetByAPoolThatHasRoom) {
  Knobs knobs = leaking_pool();
  knobs.alloc.cap = {CapOf::bytes, 2048.0 * mebibyte};
  EXPECT_EQ(end_of(plan_of(knobs), 10), "");
}

TEST_P(AllocationLimits, AreTheSameForGraphsThatShareAPool) {
  Knobs knobs = model_knobs("fp32_sgd");
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 3};
  knobs.alloc.with = Allocator::caching;
  knobs.alloc.when = AllocWhen::op;
  knobs.alloc.empty_cache_every = 2;
  knobs.launch.via = LaunchVia::graph;
  const StepPlan plan = plan_of(knobs);
  knobs.alloc.cap = {CapOf::bytes,
                     static_cast<double>(plan.allocator_simulation->peak_reserved_bytes)};
  EXPECT_EQ(end_of(plan_of(knobs), 12), "") << "three graphs, one for each slot of the batch";
}

INSTANTIATE_TEST_SUITE_P(Every, AllocationLimits, testing::ValuesIn(device_cases()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace stepgate
