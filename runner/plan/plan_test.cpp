// SPDX-License-Identifier: MIT
// The contents of plans, knob by knob, on scenarios made by hand. plan_refusals_test.cpp has what
// is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "plan/analyse/access.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"
#include "scenario/resnet_blocks.h"

namespace stepgate {
namespace {

// A visitor that takes whatever comes would count a new kind of action as nothing.
struct TakesAnything {
  template <class Any>
  int operator()(const Any&) const {
    return 0;
  }
};
struct TakesLaunches {
  int operator()(const LaunchKernel&) const { return 1; }
};
static_assert(!NamesItsActions<TakesAnything>);
static_assert(NamesItsActions<TakesLaunches>);

TEST(Plan, OfAnMlpLaunchesForwardLossBackwardAndOptimizer) {
  // ingest; 3 x (GEMM, bias); loss, report; 3 x (bias gradient, weight gradient), 2 x (input
  // gradient, relu); sgd
  EXPECT_EQ(value(small_mlp(), Metric::launches_per_step), 1 + 3 * 2 + 2 + 3 * 2 + 2 * 2 + 1);
}

TEST(Plan, OfEveryModelCopiesItsBatchFromPinnedMemoryUnlessToldOtherwise) {
  for (const ModelKind kind :
       {ModelKind::mlp, ModelKind::transformer, ModelKind::spin, ModelKind::elementwise,
        ModelKind::chase, ModelKind::recommender, ModelKind::resnet, ModelKind::unet}) {
    Knobs knobs;
    knobs.model.kind = kind;
    if (kind == ModelKind::transformer) knobs.optim.kind = OptimKind::adamw;
    if (kind == ModelKind::resnet) knobs.model.layers = usual_resnet_layers;
    const StepPlan plan = plan_of(knobs);
    EXPECT_EQ(value(plan, Metric::copies_per_step), 1);
    EXPECT_EQ(value(plan, Metric::pageable_copies_per_step), 0);
    EXPECT_EQ(value(plan, Metric::copy_bytes_per_step), static_cast<double>(plan.batch_bytes));
    EXPECT_EQ(value(plan, Metric::host_waits_per_step), 0);
  }
}

TEST(Plan, UpdatesEveryTensorByItselfWhenAsked) {
  Knobs knobs = small_mlp();
  const double fused = value(knobs, Metric::launches_per_step);
  knobs.optim.impl = OptimImpl::per_tensor;
  EXPECT_EQ(value(knobs, Metric::launches_per_step), fused - 1 + 2 * 3);
}

TEST(Plan, AveragesTheWeightsOfAnMlpByAsManyLaunchesAsItUpdatesThem) {
  for (const auto& [impl, launches] :
       {std::pair(OptimImpl::fused, 1), std::pair(OptimImpl::per_tensor, 2 * 3)}) {
    Knobs knobs = small_mlp();
    knobs.optim.impl = impl;
    const StepPlan without = plan_of(knobs);
    knobs.optim.average = 0.99;
    const StepPlan plan = plan_of(knobs);
    EXPECT_EQ(value(plan, Metric::launches_per_step),
              value(without, Metric::launches_per_step) + launches);
    EXPECT_EQ(value(plan, Metric::peak_live),
              value(without, Metric::peak_live) + static_cast<double>(plan.param_bytes));
  }
}

TEST(Plan, CountsOneLaunchForAGraph) {
  Knobs knobs = small_mlp();
  knobs.launch.via = LaunchVia::graph;
  EXPECT_EQ(value(knobs, Metric::launches_per_step), 1);
}

TEST(Plan, CountsTheFlopsOfTheGemmsOfAStep) {
  const double gemms =
      (3 * 2 + 2) * 2.0 * 8 * 16 * 16;  // forward and weight gradients, input gradients but one
  const double flops = value(small_mlp(), Metric::flops_per_step);
  EXPECT_GE(flops, gemms);
  EXPECT_LT(flops, 1.6 * gemms);  // the element-wise rest of so small a model
}

struct WaitCase {
  SyncHow how;
  double host_waits, device_syncs, polls, pageable_copies, copies;
};

class PlanWaits : public testing::TestWithParam<WaitCase> {};

TEST_P(PlanWaits, CountsWhatTheFormatSays) {
  Knobs knobs = small_mlp();
  knobs.sync = {.where = SyncWhere::step, .how = GetParam().how, .every = 1};
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), GetParam().host_waits);
  EXPECT_EQ(value(knobs, Metric::device_syncs_per_step), GetParam().device_syncs);
  EXPECT_EQ(value(knobs, Metric::polls_per_step), GetParam().polls);
  EXPECT_EQ(value(knobs, Metric::pageable_copies_per_step), GetParam().pageable_copies);
  EXPECT_EQ(value(knobs, Metric::copies_per_step), GetParam().copies);
}

INSTANTIATE_TEST_SUITE_P(EveryHow, PlanWaits,
                         testing::Values(WaitCase{SyncHow::device, 1, 1, 0, 0, 0},
                                         WaitCase{SyncHow::stream, 1, 0, 0, 0, 0},
                                         WaitCase{SyncHow::event, 1, 0, 0, 0, 0},
                                         WaitCase{SyncHow::item, 1, 0, 0, 0, 1},
                                         WaitCase{SyncHow::memcpy, 1, 0, 0, 1, 1},
                                         WaitCase{SyncHow::poll, 0, 0, 1, 0, 0}));

TEST(Plan, BringsAManagedBatchWithoutACopyButTheHostWaitsForItsSlot) {
  Knobs knobs = small_mlp();
  knobs.transfer = {.host = HostMemory::pinned};
  const double copied = value(knobs, Metric::peak_live);
  for (const HostMemory host : {HostMemory::managed, HostMemory::managed_prefetch}) {
    knobs.transfer.host = host;
    EXPECT_EQ(value(knobs, Metric::copies_per_step), 0);
    EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 1);
    EXPECT_EQ(value(knobs, Metric::peak_live), copied) << "it takes a device buffer's place";
    EXPECT_EQ(value(knobs, Metric::host_pinned), 0);
  }
}

TEST(Plan, WritesAndPrefetchesEveryTensorOfAManagedBatch) {
  Knobs knobs = small_mlp();
  knobs.transfer = {.host = HostMemory::managed_prefetch};
  knobs.batch.tensors = 3;
  const StepPlan plan = plan_of(knobs);
  std::int64_t written = 0;
  std::int64_t prefetched = 0;
  for (const Operation& operation : plan.operations) {
    if (const auto* copy = std::get_if<HostCopies>(&operation.action)) written += copy->to.bytes;
    if (const auto* prefetch = std::get_if<Prefetch>(&operation.action))
      prefetched += prefetch->what.bytes;
  }
  EXPECT_EQ(written, plan.batch_bytes);
  EXPECT_EQ(prefetched, plan.batch_bytes);
}

TEST(Plan, PrefetchesAManagedBatchAsManyStepsAheadAsThereAreBuffersLeft) {
  Knobs knobs = small_mlp();
  knobs.transfer = {.host = HostMemory::managed_prefetch, .stream = CopyStream::side, .buffers = 3};
  for (const Operation& operation : plan_of(knobs).operations) {
    const bool of_the_next = std::holds_alternative<TakeBatch>(operation.action) ||
                             std::holds_alternative<HostCopies>(operation.action) ||
                             std::holds_alternative<Prefetch>(operation.action);
    EXPECT_EQ(operation.ahead, of_the_next || operation.name == "wait until the slot is free" ||
                                       operation.name == "batch is filled"
                                   ? 2
                                   : 0)
        << operation.name;
  }
}

TEST(Plan, OfBatchesThatTakeTurnsCountsTheirMeanAndPassesTheLargest) {
  Knobs knobs = small_mlp();
  knobs.transfer = {.host = HostMemory::pinned};
  knobs.batch.sizes = {4, 8, 6};
  knobs.batch.size = 8;
  Knobs largest = knobs;
  largest.batch.sizes.clear();
  EXPECT_EQ(value(knobs, Metric::launches_per_step), value(largest, Metric::launches_per_step));
  EXPECT_EQ(value(knobs, Metric::copies_per_step), 1);
  EXPECT_DOUBLE_EQ(value(knobs, Metric::copy_bytes_per_step),
                   value(largest, Metric::copy_bytes_per_step) * 6 / 8);
  EXPECT_EQ(value(knobs, Metric::peak_live), value(largest, Metric::peak_live));
  EXPECT_EQ(value(knobs, Metric::host_pinned), value(largest, Metric::host_pinned));
  EXPECT_EQ(plan_of(knobs).batch_bytes, plan_of(largest).batch_bytes);
  EXPECT_EQ(mean_batch_size(plan_of(knobs)), 6);
}

TEST(Plan, AllocatesWhatEachOfTheTurnsNeeds) {
  Knobs knobs = small_mlp();
  knobs.batch.sizes = {4, 8};
  for (const AllocWhen when : {AllocWhen::op, AllocWhen::step}) {
    knobs.alloc = {.with = Allocator::cuda_async, .when = when, .keep_bytes = {}};
    const StepPlan plan = plan_of(knobs);
    std::map<std::int64_t, std::int64_t> bytes_of_turn;
    for (const Operation& operation : plan.operations) {
      const auto* allocate = std::get_if<Allocate>(&operation.action);
      if (!allocate) continue;
      EXPECT_EQ(operation.every, 2);
      bytes_of_turn[operation.turn] +=
          plan.buffers[static_cast<std::size_t>(allocate->buffer)].bytes;
    }
    ASSERT_EQ(bytes_of_turn.size(), 2U);
    EXPECT_EQ(2 * bytes_of_turn[1], bytes_of_turn[0]) << "step 0 is the first of 2";
  }
}

TEST(Plan, PassesNothingOfATurnLongerWhenItsSizeComesAgain) {
  Knobs knobs = small_mlp();
  knobs.alloc = {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = {}};
  knobs.batch.sizes = {4, 8, 6};
  const double once = value(knobs, Metric::peak_live);
  knobs.batch.sizes = {6, 4, 8, 6};
  EXPECT_EQ(value(knobs, Metric::peak_live), once);
}

TEST(Plan, CountsAWaitEveryFewStepsAsAFraction) {
  Knobs knobs = small_mlp();
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device, .every = 4};
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 0.25);
}

TEST(Plan, WaitsAfterEveryPieceOfWorkWhenAsked) {
  Knobs knobs = small_mlp();
  knobs.sync = {.where = SyncWhere::op, .how = SyncHow::device, .every = 1};
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step),
            value(small_mlp(), Metric::launches_per_step));
  knobs.sync.where = SyncWhere::phase;
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 3);  // forward, backward, optimizer
  knobs.sync.where = SyncWhere::micro;
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 1);
}

TEST(Plan, WaitsAfterOnePhaseWhenAsked) {
  const auto phases_around_the_wait = [](const Knobs& knobs) {
    const StepPlan plan = plan_of(knobs);
    const auto wait = std::ranges::find(plan.operations, Phase::sync, &Operation::phase);
    EXPECT_NE(wait, plan.operations.end());
    const bool is_last = wait + 1 == plan.operations.end();
    return std::pair(std::prev(wait)->phase, is_last ? Phase::sync : std::next(wait)->phase);
  };
  Knobs knobs = small_mlp();
  knobs.optim.kind = OptimKind::adamw;
  const std::pair after_update(Phase::optimizer, Phase::sync);
  knobs.sync.where = SyncWhere::forward;
  EXPECT_EQ(phases_around_the_wait(knobs), std::pair(Phase::forward, Phase::backward));
  knobs.sync.where = SyncWhere::backward;
  EXPECT_EQ(phases_around_the_wait(knobs), std::pair(Phase::backward, Phase::optimizer));
  knobs.sync.where = SyncWhere::update;
  EXPECT_EQ(phases_around_the_wait(knobs), after_update);
  knobs.save = {.every = 1, .via = SaveVia::beside};  // whose wait comes before the update
  for (const SyncWhere where : {SyncWhere::forward, SyncWhere::backward, SyncWhere::update}) {
    knobs.sync.where = where;
    EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 1);
  }
}

TEST(Plan, WaitsAfterThePassesOfEachPartOfABatch) {
  Knobs resnet;
  resnet.model = {.kind = ModelKind::resnet, .layers = 14};
  resnet.model.width = 8;
  resnet.model.image = 32;
  resnet.batch.size = 4;
  resnet.optim.kind = OptimKind::momentum;
  for (Knobs knobs : {small_transformer(), resnet}) {
    for (const std::int64_t parts : {1, 2}) {
      knobs.batch.accumulate = parts;
      const auto waits = [&](SyncWhere where) {
        knobs.sync = {.where = where, .how = SyncHow::device};
        return value(knobs, Metric::host_waits_per_step);
      };
      EXPECT_EQ(waits(SyncWhere::forward), parts);
      EXPECT_EQ(waits(SyncWhere::micro), parts);
      EXPECT_EQ(waits(SyncWhere::backward), 1);
    }
  }
}

TEST(Plan, WaitsAtEachParameterOfAnOptimizersLoop) {
  Knobs knobs = small_mlp();
  knobs.optim.kind = OptimKind::adamw;
  knobs.sync = {.where = SyncWhere::parameter, .how = SyncHow::item};
  const auto parameters = static_cast<double>(plan_of(knobs).parameters.size());
  EXPECT_GT(parameters, 1);
  for (const OptimImpl impl : {OptimImpl::per_tensor, OptimImpl::operations}) {
    knobs.optim.impl = impl;
    EXPECT_EQ(value(knobs, Metric::host_waits_per_step), parameters);
    Knobs free = knobs;
    free.sync.where = SyncWhere::none;
    EXPECT_EQ(value(knobs, Metric::copies_per_step),
              parameters + value(free, Metric::copies_per_step));
    EXPECT_EQ(value(knobs, Metric::launches_per_step), value(free, Metric::launches_per_step));
  }
  knobs.optim.impl = OptimImpl::fused;
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 1) << "no loop";
}

struct InputCase {
  TransferKnobs transfer;
  double host_waits, pageable_copies, pinned_allocs;
};

class PlanInput : public testing::TestWithParam<InputCase> {};

TEST_P(PlanInput, CountsWaitsAndKindsOfCopies) {
  Knobs knobs = small_mlp();
  knobs.transfer = GetParam().transfer;
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), GetParam().host_waits);
  EXPECT_EQ(value(knobs, Metric::pageable_copies_per_step), GetParam().pageable_copies);
  EXPECT_EQ(value(knobs, Metric::pinned_allocs_per_step), GetParam().pinned_allocs);
  EXPECT_EQ(value(knobs, Metric::copies_per_step), 1);
  EXPECT_EQ(value(knobs, Metric::copy_bytes_per_step), 8 * (16 + 1) * 4);
}

INSTANTIATE_TEST_SUITE_P(
    EveryWay, PlanInput,
    testing::Values(
        InputCase{{.host = HostMemory::pageable}, 1, 1, 0},
        InputCase{{.host = HostMemory::pinned}, 0, 0, 0},
        InputCase{{.host = HostMemory::registered}, 0, 0, 0},
        InputCase{{.host = HostMemory::pin_each_step}, 2, 0, 1},
        InputCase{{.host = HostMemory::pinned, .blocking = true}, 1, 0, 0},
        InputCase{
            {.host = HostMemory::pinned, .stream = CopyStream::legacy, .blocking = true}, 1, 0, 0},
        InputCase{{.host = HostMemory::pageable, .stream = CopyStream::legacy, .blocking = true},
                  1,
                  1,
                  0},
        InputCase{{.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2}, 0, 0, 0},
        InputCase{
            {.host = HostMemory::pageable, .stream = CopyStream::side, .buffers = 3}, 1, 1, 0}));

TEST(Plan, SplitsABatchIntoTensorsThatCoverIt) {
  Knobs knobs = small_mlp();
  knobs.transfer.host = HostMemory::pinned;
  knobs.batch.tensors = 7;
  const StepPlan plan = plan_of(knobs);
  std::int64_t next = 0;
  for (const Operation& operation : plan.operations) {
    const auto* copy = std::get_if<CopyBytes>(&operation.action);
    if (!copy) continue;
    EXPECT_EQ(copy->to.offset_bytes, next);
    EXPECT_EQ(copy->from.offset_bytes, next);
    EXPECT_GT(copy->to.bytes, 0);
    next += copy->to.bytes;
  }
  EXPECT_EQ(next, plan.batch_bytes);
  EXPECT_EQ(counted(plan, Metric::copies_per_step), 7);
}

std::size_t index_of_operation(const StepPlan& plan, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(plan.operations, name, &Operation::name) -
                                  plan.operations.begin());
}

TEST(Plan, CopiesAQuarterOfABatchOfBytesAndDecodesItFirst) {
  Knobs knobs = small_mlp();
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  const StepPlan words = plan_of(knobs);
  knobs.batch.format = BatchFormat::uint8;
  const StepPlan bytes = plan_of(knobs);
  EXPECT_EQ(4 * bytes.batch_bytes, words.batch_bytes);
  EXPECT_EQ(4 * value(bytes, Metric::copy_bytes_per_step),
            value(words, Metric::copy_bytes_per_step));
  EXPECT_EQ(4 * value(bytes, Metric::host_pinned), value(words, Metric::host_pinned));
  EXPECT_EQ(value(bytes, Metric::copies_per_step), value(words, Metric::copies_per_step));
  EXPECT_EQ(value(bytes, Metric::launches_per_step), value(words, Metric::launches_per_step) + 1);
  // Two slots less of three quarters each, and the words that they are decoded to.
  const auto decoded =
      std::ranges::find(bytes.buffers, std::string("decoded batch"), &Buffer::name);
  ASSERT_NE(decoded, bytes.buffers.end());
  EXPECT_EQ(decoded->bytes, words.batch_bytes);
  EXPECT_EQ(decoded->slots, 1);
  const std::size_t decode = index_of_operation(bytes, "decode the batch");
  ASSERT_LT(decode, bytes.operations.size());
  EXPECT_EQ(bytes.operations[decode].phase, Phase::forward);
  EXPECT_NE(bytes.operations[decode - 1].phase, Phase::forward);
  EXPECT_EQ(index_of_operation(bytes, "batch is consumed"), decode + 1)
      << "the words stay, so that the next batch may come";
  EXPECT_EQ(index_of_operation(bytes, "ingest the batch"), decode + 2);
}

TEST(Plan, SplitsABatchOfBytesIntoTensorsThatCoverIt) {
  Knobs knobs = small_mlp();
  knobs.batch = {.size = 3, .tensors = 7, .format = BatchFormat::uint8};
  for (const HostMemory host : {HostMemory::pinned, HostMemory::managed}) {
    knobs.transfer.host = host;
    const StepPlan plan = plan_of(knobs);
    EXPECT_EQ(plan.batch_bytes, 3 * 17);
    std::int64_t next = 0;
    for (const Operation& operation : plan.operations) {
      BufferUse to;
      if (const auto* copy = std::get_if<CopyBytes>(&operation.action)) to = copy->to;
      if (const auto* copy = std::get_if<HostCopies>(&operation.action)) to = copy->to;
      if (to.bytes == 0) continue;
      EXPECT_EQ(to.offset_bytes, next);
      next += to.bytes;
    }
    EXPECT_EQ(next, plan.batch_bytes);
  }
  knobs.batch.tensors = 52;
  EXPECT_NE(refusal_of(knobs).find("a batch of 51 bytes cannot be split into 52 tensors"),
            std::string::npos);
}

TEST(Plan, AllocatesActivationsOnceAStepOrAroundTheirUse) {
  Knobs knobs = small_mlp();
  EXPECT_EQ(value(knobs, Metric::device_allocs_per_step), 0);
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = std::nullopt};
  const double tensors = 4 + 2 + 1 + 1;  // activations, their gradients, labels, row losses
  EXPECT_EQ(value(knobs, Metric::device_allocs_per_step), tensors);
  EXPECT_EQ(value(knobs, Metric::device_frees_per_step), tensors);
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), tensors);
  const double peak_per_step = value(knobs, Metric::peak_live);
  knobs.alloc.when = AllocWhen::op;
  EXPECT_EQ(value(knobs, Metric::device_allocs_per_step), tensors);
  EXPECT_LT(value(knobs, Metric::peak_live), peak_per_step);
  knobs.alloc.with = Allocator::cuda_async;
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 0);
  EXPECT_EQ(counted(plan_of(knobs), Metric::peak_reserved), std::nullopt);
}

TEST(Plan, ZeroesAllGradientsAndAddsToThemWhenAsked) {
  Knobs knobs = small_mlp();
  EXPECT_EQ(value(knobs, Metric::memset_bytes_per_step), 0);
  knobs.memory.zero_grad = ZeroGrad::memset;
  EXPECT_EQ(value(knobs, Metric::memset_bytes_per_step),
            static_cast<double>(plan_of(knobs).param_bytes));
  EXPECT_EQ(plan_of(knobs).param_bytes, 3 * 16 * (16 + 1) * 4);
}

TEST(Plan, ReadsTheLossLateWithoutWaiting) {
  Knobs knobs = small_mlp();
  knobs.log = {.every = 1, .via = LogVia::late_pinned};
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 0);
  EXPECT_EQ(value(knobs, Metric::polls_per_step), 1);
  knobs.log = {.every = 10, .via = LogVia::mean_on_device};
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 0.1);
  knobs.log = {.every = 2, .via = LogVia::keep_on_device};
  EXPECT_EQ(value(knobs, Metric::device_allocs_per_step), 0.5);
  EXPECT_EQ(value(knobs, Metric::device_frees_per_step), 0);
}

// Every combination of the knobs that place copies, waits, allocations and launches is either
// refused with a reason or a plan whose operations stay inside their buffers.
TEST(Plan, IsSoundForEveryCombinationOfItsKnobs) {
  int accepted = 0;
  int refused = 0;
  for (const HostMemory host : {HostMemory::resident, HostMemory::pageable, HostMemory::pinned,
                                HostMemory::registered, HostMemory::pin_each_step})
    for (const CopyStream stream : {CopyStream::compute, CopyStream::side, CopyStream::legacy})
      for (const std::int64_t buffers : {1, 2, 3})
        for (const DeviceBuffer device_buffer : {DeviceBuffer::resident, DeviceBuffer::per_step})
          for (const SyncWhere where :
               {SyncWhere::none, SyncWhere::step, SyncWhere::phase, SyncWhere::op})
            for (const Allocator with : {Allocator::fixed, Allocator::cuda, Allocator::cuda_async})
              for (const LaunchVia via : {LaunchVia::stream, LaunchVia::graph}) {
                Knobs knobs = small_mlp();
                knobs.transfer = {.host = host,
                                  .stream = stream,
                                  .buffers = buffers,
                                  .device_buffer = device_buffer};
                knobs.sync = {.where = where, .how = SyncHow::item, .every = 1};
                knobs.alloc = {.with = with,
                               .when = with == Allocator::fixed ? AllocWhen::never : AllocWhen::op,
                               .keep_bytes = std::nullopt};
                knobs.launch.via = via;
                try {
                  const StepPlan plan = plan_of(knobs);
                  ++accepted;
                  for (const Operation& operation : plan.operations) {
                    for (const BufferAccess& access : accesses_of(plan, operation)) {
                      const Buffer& buffer =
                          plan.buffers[static_cast<std::size_t>(access.use.buffer)];
                      ASSERT_GE(access.use.offset_bytes, 0) << operation.name;
                      ASSERT_GT(access.use.bytes, 0) << operation.name;
                      ASSERT_LE(access.use.offset_bytes + access.use.bytes, buffer.bytes)
                          << operation.name;
                    }
                  }
                } catch (const RequestError& error) {
                  ++refused;
                  ASSERT_FALSE(error.diagnostics().front().hint.empty()) << error.what();
                }
              }
  EXPECT_GT(accepted, 600);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace stepgate
