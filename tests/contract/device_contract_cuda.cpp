// SPDX-License-Identifier: MIT
// Runs the device contract on the local GPU, and tests errors that only CUDA can have. Fails, never
// skips, where there is no GPU.
#include <gtest/gtest.h>

#include "base/text/units.h"
#include "device/cuda/cuda_device.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

// The plan pins the same pages twice in every n-th step. The driver refuses this while work is
// queued and memory is pinned.
StepPlan failing_every(std::int64_t steps, StepPlan plan) {
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    Operation again = plan.operations[index];
    if (!std::holds_alternative<RegisterHost>(again.action)) continue;
    again.every = steps;
    plan.operations.insert(plan.operations.begin() + static_cast<std::ptrdiff_t>(index) + 1, again);
    return plan;
  }
  ADD_FAILURE() << "nothing is pinned";
  return plan;
}

Knobs registering_knobs() {
  Knobs knobs = model_knobs("fp32_adamw");
  knobs.transfer = {.host = HostMemory::pin_each_step, .stream = CopyStream::side, .buffers = 2};
  knobs.alloc = {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = {}};
  knobs.loader = {.wait_us = 1, .depth = 2};
  return knobs;
}

TEST(CudaDeviceContract, RunsAStepAfterAnotherOneFailedHalfWay) {
  const StepPlan plan = plan_of(registering_knobs());
  const StepPlan bad = failing_every(3, plan);
  const auto device = make_cuda_device();
  const std::vector<float> expected = device->load(plan)->run({0, 12}).losses;
  auto failing = device->load(bad);
  const auto other = device->load(plan);
  std::vector<float> losses = other->run({0, 6}).losses;
  EXPECT_THROW((void)failing->run({0, 10}), DeviceError);
  for (const float loss : other->run({0, 6}).losses) losses.push_back(loss);
  EXPECT_EQ(losses, expected);
  // After the failed step has released its memory, its pages can be allocated and pinned again.
  failing.reset();
  EXPECT_EQ(device->load(plan)->run({0, 12}).losses, expected);
}

TEST(CudaDeviceContract, RefusesToGoOnWithAStepThatFailed) {
  const StepPlan bad = failing_every(3, plan_of(registering_knobs()));
  const auto device = make_cuda_device();
  const auto failing = device->load(bad);
  EXPECT_THROW((void)failing->run({0, 10}), DeviceError);
  try {
    (void)failing->run({0, 1});
    FAIL() << "went on";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("must be loaded again"), std::string::npos)
        << error.what();
  }
}

// A list of losses that is never released reuses its slots and still belongs to the step.
TEST(CudaDeviceContract, ReturnsAllMemoryThatItsStepsKept) {
  Knobs knobs = model_knobs("spin");
  knobs.model.kernels = 1;
  knobs.log = {.every = 1, .via = LogVia::keep_on_device};
  knobs.alloc.with = Allocator::cuda_async;
  const StepPlan plan = plan_of(knobs);
  std::int64_t slots = 0;
  for (const Buffer& buffer : plan.buffers) slots = std::max(slots, buffer.slots);
  ASSERT_EQ(slots, 1 << 16);
  const auto device = make_cuda_device();
  (void)device->load(plan)->run({0, 10});  // memory that CUDA itself keeps permanently
  const std::int64_t before = device->identity().free_memory_bytes;
  (void)device->load(plan)->run({0, 2 * slots + 10});
  // A slot takes 512 bytes. If overwritten slots were not freed, they would take 32 MiB.
  EXPECT_GE(device->identity().free_memory_bytes, before - 8 * mebibyte);
}

TEST(CudaDeviceContract, TakesNoMoreMemoryOnceEveryStepHasBeenInASlot) {
  constexpr std::int64_t mebibyte = 1024 * 1024;
  Knobs large = model_knobs("fp32_adamw");
  large.model.hidden = 512;
  large.transfer = {.host = HostMemory::registered, .stream = CopyStream::side, .buffers = 3};
  Knobs in_an_arena = large;
  in_an_arena.batch.size *= 1024;
  in_an_arena.alloc.with = Allocator::arena;
  const std::vector<StepPlan> plans = {plan_of(large), plan_of(in_an_arena),
                                       plan_of(registering_knobs())};
  const auto device = make_cuda_device();
  const auto load_all = [&] {
    for (const StepPlan& plan : plans) (void)device->load_into(0, plan)->run({0, 2});
  };
  load_all();
  const std::int64_t before = device->identity().free_memory_bytes;
  for (int round = 0; round < 5; ++round) load_all();
  EXPECT_GE(device->identity().free_memory_bytes, before - 2 * mebibyte);
}

// Batches of 4 MiB keep their content until another batch, or offloaded activations, overwrite
// them.
TEST(CudaDeviceContract, ComputesTheSameFromHostMemoryThatOthersHaveUsed) {
  const auto device = make_cuda_device();
  for (const HostMemory host : {HostMemory::pinned, HostMemory::pageable, HostMemory::registered}) {
    Knobs knobs = model_knobs("fp32_sgd");
    knobs.model.hidden = 64;
    knobs.batch.size = 16384;
    knobs.transfer.host = host;
    std::vector<StepPlan> plans{plan_of(knobs), plan_of(knobs)};
    ++plans.back().seed;
    knobs.memory.offload = Offload::activations;
    plans.push_back(plan_of(knobs));
    std::vector<std::vector<float>> expected;
    for (const StepPlan& plan : plans) expected.push_back(device->load(plan)->run({0, 6}).losses);
    EXPECT_NE(expected[0], expected[1]);
    for (const std::size_t turn : {0, 0, 1, 0, 2, 0, 2, 2, 1, 1})
      EXPECT_EQ(device->load_into(0, plans[turn])->run({0, 6}).losses, expected[turn]) << turn;
  }
}

// The step takes more than half of the free memory, so that two slots cannot keep it.
TEST(CudaDeviceContract, GivesUpWhatASlotKeepsForNobodyWhereMemoryIsShort) {
  StepPlan plan = plan_of(model_knobs("spin"));
  const auto device = make_cuda_device();
  plan.buffers.push_back({.name = "large", .bytes = device->identity().free_memory_bytes / 5 * 3});
  for (const int slot : {0, 1, 0}) {
    EXPECT_EQ(device->load_into(slot, plan)->run({0, 2}).losses.size(), 2U) << "slot " << slot;
  }
  EXPECT_EQ(device->load(plan)->run({0, 2}).losses.size(), 2U);
}

TEST(CudaDeviceContract, ReportsHostTimeWithoutItsWaits) {
  Knobs knobs = model_knobs("spin");
  knobs.model.kernel_us = 50;
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device, .every = 2};
  const StepPlan plan = plan_of(knobs);
  // A step spins for 100 us and is four launches of a few microseconds.
  const auto device = make_cuda_device();
  const StepResult result = device->load(plan)->run({10, 200});
  EXPECT_LT(*result.host_busy, *result.elapsed / 2);
}

}  // namespace

std::vector<DeviceCase> device_cases() {
  return {{"cuda", DeviceKind::cuda, [] { return make_cuda_device(); }}};
}

}  // namespace stepgate
