// SPDX-License-Identifier: MIT
// Tests alternating batch sizes on every device under the contract: the numbers do not depend on
// allocation, copies and waits, and equal those of a step of one size. Linked into the programs of
// the device contract.
#include <gtest/gtest.h>

#include "tests/contract/device_contract.h"
#include "tests/contract/expect_run.h"

namespace stepgate {
namespace {

Knobs turning() {
  Knobs knobs = model_knobs("fp32_sgd");
  knobs.batch.sizes = {4, 2, 6};
  return knobs;
}

std::vector<Knobs> ways_to_take_turns() {
  std::vector<Knobs> ways{turning()};
  for (const Allocator with : {Allocator::cuda, Allocator::cuda_async}) {
    for (const AllocWhen when : {AllocWhen::step, AllocWhen::op}) {
      Knobs knobs = turning();
      knobs.alloc = {.with = with, .when = when, .keep_bytes = {}};
      ways.push_back(knobs);
    }
  }
  for (const HostMemory host : {HostMemory::pinned, HostMemory::pageable, HostMemory::managed,
                                HostMemory::managed_prefetch}) {
    Knobs knobs = turning();
    const bool side = host == HostMemory::pinned || host == HostMemory::managed_prefetch;
    knobs.transfer = {
        .host = host, .stream = side ? CopyStream::side : CopyStream::compute, .buffers = 2};
    knobs.sync = {.where = SyncWhere::phase, .how = SyncHow::event, .every = 1};
    knobs.log = {.every = 2, .via = LogVia::mean_on_device};
    ways.push_back(knobs);
    knobs.eval = {.every = 1, .batches = 2, .store = EvalStore::host};
    knobs.model.inplace = false;
    ways.push_back(knobs);
  }
  for (const Allocator with : {Allocator::arena, Allocator::caching}) {
    Knobs knobs = turning();
    knobs.alloc.with = with;
    knobs.alloc.when = with == Allocator::arena ? AllocWhen::never : AllocWhen::op;
    knobs.eval = {.every = 1, .batches = 2, .store = EvalStore::device, .save_for_backward = true};
    ways.push_back(knobs);
  }
  return ways;
}

class BatchTurns : public testing::TestWithParam<DeviceCase> {
 protected:
  std::vector<std::uint32_t> losses_of(const Knobs& knobs, std::int64_t steps) const {
    return bits_of(device_->load(plan_of(knobs))->run({0, steps}).losses);
  }

  const std::unique_ptr<Device> device_ = GetParam().make();
};

TEST_P(BatchTurns, TrainTheSameInEveryWay) {
  const auto expected = losses_of(turning(), 10);
  for (const Knobs& knobs : ways_to_take_turns()) {
    EXPECT_EQ(losses_of(knobs, 10), expected) << describe(knobs);
  }
}

TEST_P(BatchTurns, TrainTheSameWhenMemoryIsMadeAnewAtAChangeOfSize) {
  Knobs knobs = turning();
  knobs.batch.sizes = {4, 4, 2, 6, 6, 6, 2};
  const auto expected = losses_of(knobs, 20);
  for (const Knobs& way : ways_to_resize(knobs))
    EXPECT_EQ(losses_of(way, 20), expected) << describe(way);
}

TEST_P(BatchTurns, BeginWithTheStepOfTheFirstSizeAlone) {
  for (const bool largest_first : {false, true}) {
    Knobs turns = turning();
    turns.batch.largest_first = largest_first;
    Knobs alone = model_knobs("fp32_sgd");
    alone.batch.size = largest_first ? 6 : 4;
    EXPECT_EQ(losses_of(turns, 1), losses_of(alone, 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, BatchTurns, testing::ValuesIn(device_cases()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace stepgate
