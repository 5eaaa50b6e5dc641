// SPDX-License-Identifier: MIT
// Tests the simulated machine against arithmetic done by hand. simulated_settings_test.cpp tests
// noise and planted faults.
#include "device/simulated/simulated_device.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "device/simulated/round_numbers.h"
#include "plan/testing/counted.h"
#include "scenario/unet_levels.h"

namespace stepgate {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

Knobs elementwise(std::int64_t samples) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::elementwise, .hidden = 4096, .kernels = 1};
  knobs.batch.size = samples;
  return knobs;
}

TEST(SimulatedDevice, MovesWholeSectorsWhereItsCachePassesNone) {
  const auto lost = [](std::int64_t samples, auto change) {
    Knobs changed = elementwise(samples);
    change(changed.model);
    const nanoseconds as_fast = step_time(elementwise(samples), round_profile());
    return static_cast<double>((step_time(changed, round_profile()) - as_fast).count());
  };
  const auto strided = [](ModelKnobs& model) { model.stride = 32; };
  const auto in_records = [](ModelKnobs& model) { model.layout = Layout::records; };
  constexpr double array_time =
      0x1p26 / 1e12 * 1e9;  // of 4096 x 4096 numbers, read or written once
  EXPECT_NEAR(lost(4096, strided), 7 * 2 * array_time, 10);
  // One kernel reads and writes the records, one only writes and one only reads them.
  EXPECT_NEAR(lost(4096, in_records), 5 * 4 * array_time, 10);
  EXPECT_EQ(lost(64, strided), 0);
  EXPECT_EQ(lost(64, in_records), 0);
}

TEST(SimulatedDevice, LimitsTheTimeThatAScenarioTakesOfThisMachine) {
  const std::vector<StepPlan> plans = plans_of(elementwise(64));
  const auto runs_on = [&](std::chrono::nanoseconds most, bool in_a_scenario) {
    const auto device = make_simulated_device(round_profile(), {.most_wall_time = most});
    if (in_a_scenario) device->begin_scenario();
    return device->load(plans.front())->run({.wash_out_steps = 1'000, .steps = 1}).steps;
  };
  EXPECT_EQ(runs_on(std::chrono::hours(1), true), 1);
  EXPECT_EQ(runs_on(std::chrono::nanoseconds(0), false), 1);
  try {
    runs_on(std::chrono::microseconds(1), true);
    FAIL() << "it never ends";
  } catch (const DeviceError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 43),
              "the simulation took more than 1 us of this ");
  }
}

// The steps in bf16 that an H200 took, as graphs on 2026-11-29 and by launches on the day before
// (cuDNN 9.14, CUDA 13.0, a ResNet's fp32 master weights with momentum). A limit of 8 % notices
// that one physical cause is missing: without the latency of memory they are 15 to 50 % too short.
TEST(SimulatedDevice, TakesAsLongAsAnH200ForStepsOfAResNetAndAUNet) {
  struct Cell {
    ModelKind kind;
    std::int64_t images;
    LaunchVia via;
    double measured_ms;
  };
  constexpr Cell cells[] = {{ModelKind::resnet, 256, LaunchVia::graph, 28.4},
                            {ModelKind::resnet, 64, LaunchVia::graph, 8.87},
                            {ModelKind::resnet, 16, LaunchVia::graph, 3.63},
                            {ModelKind::unet, 64, LaunchVia::graph, 26.9},
                            {ModelKind::unet, 16, LaunchVia::graph, 10.3},
                            {ModelKind::unet, 2, LaunchVia::graph, 5.2},
                            {ModelKind::resnet, 256, LaunchVia::stream, 29.79},
                            {ModelKind::resnet, 64, LaunchVia::stream, 9.47},
                            {ModelKind::resnet, 16, LaunchVia::stream, 4.22}};
  const DeviceProfile h200 = read_profile(STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/device.toml");
  for (const Cell& cell : cells) {
    Knobs knobs;
    if (cell.kind == ModelKind::resnet) {
      knobs.model = {.kind = cell.kind, .layers = 50, .image = 224};
      knobs.optim.kind = OptimKind::momentum;
    } else {
      knobs.model = {.kind = cell.kind, .layers = usual_unet_layers, .image = usual_unet_image};
      knobs.model.width = usual_unet_width;
      knobs.launch.fuse = Fuse::none;  // as it was then
      knobs.optim.kind = OptimKind::adamw;
    }
    knobs.optim.master = true;
    knobs.model.dtype = DType::bf16;
    knobs.batch.size = cell.images;
    knobs.transfer.host = HostMemory::resident;
    knobs.launch.via = cell.via;
    const double simulated = static_cast<double>(step_time(knobs, h200).count()) / 1e6;
    EXPECT_NEAR(simulated / cell.measured_ms, 1, 0.08)
        << cell.images << " images, " << simulated << " ms for " << cell.measured_ms;
  }
}

// In addition, the kernels ingest, chase and report take the floor of 1 us each, and wait for
// memory four times.
TEST(SimulatedDevice, TakesForLoadsThatWaitForEachOtherTheLatencyOfTheirLevel) {
  DeviceProfile profile = round_profile();
  profile.compute.memory_latency_nanoseconds = 300;
  const auto step_of = [&](std::int64_t footprint) {
    Knobs knobs;
    knobs.model = {.kind = ModelKind::chase, .footprint_bytes = footprint, .accesses = 10000};
    knobs.batch.size = 8;
    knobs.transfer.host = HostMemory::resident;
    return step_time(knobs, profile);
  };
  const ComputeCosts costs = profile.compute;
  const auto floors = nanoseconds(3 * (1000 + 4 * 300));
  EXPECT_EQ(step_of(16 << 10), floors + nanoseconds(10000 * costs.l1_latency_nanoseconds));
  EXPECT_EQ(step_of(128 << 10), step_of(16 << 10));
  EXPECT_EQ(step_of(2 << 20), floors + nanoseconds(10000 * costs.l2_latency_nanoseconds));
  EXPECT_EQ(step_of(512 << 20), floors + nanoseconds(10000 * costs.memory_latency_nanoseconds));
}

// The kernels ingest and report take the floor of 1 us each.
TEST(SimulatedDevice, RunsADeviceBoundStepAtTheSpeedOfItsKernels) {
  EXPECT_EQ(step_time(spinning(10, 50), round_profile()), microseconds(10 * 50 + 2));
}

TEST(SimulatedDevice, RunsALaunchBoundStepAtTheSpeedOfItsLaunches) {
  EXPECT_EQ(step_time(spinning(10, 0), round_profile()), microseconds(12));
}

TEST(SimulatedDevice, AddsWaitLatencyAndHostWorkToAStepThatWaits) {
  Knobs knobs = spinning(1, 50);
  knobs.host.step_us = 30;
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device, .every = 1};
  // The sum is host work 30, launch of ingest 1, latency 4, ingest 1, spin 50, report 1 and wake-up
  // 5.
  EXPECT_EQ(step_time(knobs, round_profile()), microseconds(30 + 1 + 4 + 1 + 50 + 1 + 5));
  knobs.sync.where = SyncWhere::none;
  EXPECT_EQ(step_time(knobs, round_profile()), microseconds(52));
}

TEST(SimulatedDevice, HidesACopyOnASideStreamOnly) {
  Knobs knobs = spinning(10, 20);
  knobs.batch.sample_bytes = 1 << 17;  // 1 MiB per batch: 20 us pinned
  knobs.transfer.host = HostMemory::pinned;
  const nanoseconds in_line = step_time(knobs, round_profile());
  knobs.transfer.stream = CopyStream::side;
  knobs.transfer.buffers = 2;
  const nanoseconds hidden = step_time(knobs, round_profile());
  EXPECT_EQ(in_line - hidden, microseconds(20));
}

// A copy takes 74 us. Two hide behind kernels of 206 us, whoever they are for, but not three.
TEST(SimulatedDevice, CopiesToTheDeviceOneAfterTheOther) {
  Knobs knobs = spinning(10, 20);
  knobs.batch.sample_bytes = 1 << 19;
  const nanoseconds kernels = step_time(knobs, round_profile());
  knobs.transfer.others = 2;
  EXPECT_EQ(step_time(knobs, round_profile()), kernels);
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  EXPECT_EQ(step_time(knobs, round_profile()), kernels);
  knobs.transfer.others = 2;
  EXPECT_EQ(step_time(knobs, round_profile()), nanoseconds(3 * round_profile().pinned.of(4 << 20)));
}

// Each way takes 146 us, and the kernels 210 us. A buffer is filled after its batch has left it,
// and two take turns.
TEST(SimulatedDevice, CopiesBothWaysAtOnceIfBuffersSuffice) {
  Knobs knobs = spinning(10, 20);
  knobs.batch.sample_bytes = 1 << 20;
  const nanoseconds kernels = step_time(knobs, round_profile());
  const nanoseconds both_ways(2 * round_profile().pinned.of(8 << 20));
  knobs.transfer = {.host = HostMemory::pinned, .back = CopyBack::compute};
  EXPECT_EQ(step_time(knobs, round_profile()), kernels + both_ways);
  knobs.transfer = {
      .host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2, .back = CopyBack::side};
  EXPECT_EQ(step_time(knobs, round_profile()), (kernels + both_ways) / 2);
  knobs.transfer.buffers = 3;
  EXPECT_EQ(step_time(knobs, round_profile()), kernels);
}

TEST(SimulatedDevice, ChargesPageableCopiesAndDirectAllocationsToTheStep) {
  Knobs knobs = spinning(10, 20);
  knobs.transfer.host = HostMemory::pinned;
  knobs.batch.sample_bytes = 1 << 17;
  const nanoseconds pinned = step_time(knobs, round_profile());
  knobs.transfer.host = HostMemory::pageable;
  EXPECT_GT(step_time(knobs, round_profile()), pinned + microseconds(40));
  knobs.transfer.host = HostMemory::resident;
  const nanoseconds fixed = step_time(knobs, round_profile());
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = std::nullopt};
  EXPECT_GT(step_time(knobs, round_profile()), fixed + microseconds(60));
  knobs.alloc.with = Allocator::cuda_async;
  EXPECT_EQ(step_time(knobs, round_profile()), fixed);
}

TEST(SimulatedDevice, StagesAPageableCopyAheadAsFarAsTheDriverDoes) {
  Knobs knobs = spinning(1, 200);
  knobs.transfer.host = HostMemory::pageable;
  knobs.batch.sample_bytes = 1 << 17;  // 1 MiB per batch: 60 us pageable, 20 us pinned
  const nanoseconds blocking = step_time(knobs, round_profile());
  DeviceProfile staging = round_profile();
  staging.staging_bytes = 1 << 20;
  const nanoseconds staged = step_time(knobs, staging);
  // With 4 KiB of staging, all but the first 4 us of the copy wait for the kernel; with 1 MiB, only
  // the transfer does.
  EXPECT_GT(blocking, microseconds(200 + 56));
  EXPECT_LT(staged, microseconds(200 + 30));
}

TEST(SimulatedDevice, RegrowsAPoolThatKeepsNothingAfterEveryWait) {
  Knobs knobs = spinning(10, 20);
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::stream, .every = 1};
  knobs.alloc = {
      .with = Allocator::cuda_async, .when = AllocWhen::step, .keep_bytes = std::nullopt};
  const nanoseconds keeping = step_time(knobs, round_profile());
  knobs.alloc.keep_bytes = 0;
  const nanoseconds trimmed = step_time(knobs, round_profile());
  EXPECT_GT(trimmed, keeping + microseconds(150));
  knobs.alloc.keep_bytes = std::int64_t{64} << 30;
  EXPECT_EQ(step_time(knobs, round_profile()), keeping) << "more than the step ever passes";
  knobs.alloc.keep_bytes = 0;
  knobs.sync.how = SyncHow::poll;
  const nanoseconds polled = step_time(knobs, round_profile());
  EXPECT_LT(polled, trimmed - microseconds(150)) << "the driver gives back when it is waited on";
}

TEST(SimulatedDevice, LaunchesAGraphInOneCall) {
  Knobs knobs = spinning(100, 0);
  const nanoseconds stream = step_time(knobs, round_profile());
  knobs.launch.via = LaunchVia::graph;
  EXPECT_EQ(stream, microseconds(102));
  EXPECT_EQ(step_time(knobs, round_profile()), microseconds(51));
}

TEST(SimulatedDevice, StarvesWithoutALoaderThatWorksAhead) {
  Knobs knobs = spinning(1, 100);
  knobs.transfer.host = HostMemory::pinned;
  knobs.loader.wait_us = 80;
  const nanoseconds queue_hides_it = step_time(knobs, round_profile());
  knobs.loader.wait_us = 300;
  const nanoseconds starved = step_time(knobs, round_profile());
  knobs.loader.depth = 4;
  knobs.loader.workers = 4;
  const nanoseconds fed = step_time(knobs, round_profile());
  EXPECT_LT(queue_hides_it, microseconds(110));
  EXPECT_GT(starved, microseconds(300));
  EXPECT_LT(fed, microseconds(110));
}

TEST(SimulatedDevice, ReportsStepTimesThatAddUpAndHostTimeWithoutWaits) {
  const std::vector<StepPlan> plans = plans_of(spinning(10, 50));
  const auto device = make_simulated_device(round_profile());
  const auto step = device->load(plans.front());
  const StepResult result = step->run({.wash_out_steps = 10, .steps = 50});
  ASSERT_EQ(result.step_times.size(), 50u);
  for (const nanoseconds time : result.step_times) EXPECT_EQ(time, microseconds(502));
  EXPECT_EQ(*result.host_busy, microseconds(50 * 12));
  EXPECT_EQ(*result.host_processor, microseconds(50 * 12)) << "held back by nobody but the runner";
  EXPECT_EQ(result.first_step, 0);
  EXPECT_EQ(step->run({.wash_out_steps = 0, .steps = 1}).first_step, 60);
  EXPECT_TRUE(result.losses.empty());
}

nanoseconds processor_time_of_a_step(const Knobs& knobs) {
  const std::vector<StepPlan> plans = plans_of(knobs);
  const auto device = make_simulated_device(round_profile());
  return *device->load(plans.front())->run({.wash_out_steps = 10, .steps = 50}).host_processor / 50;
}

// Each step takes 500 us, and the host waits for it.
TEST(SimulatedDevice, WaitsThatSpinTakeProcessorTimeAndThoseThatBlockDoNot) {
  Knobs knobs = spinning(10, 50);
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device, .every = 1};
  for (const SyncWait wait : {SyncWait::spin, SyncWait::yield}) {
    knobs.sync.wait = wait;
    EXPECT_GE(processor_time_of_a_step(knobs), microseconds(500));
  }
  knobs.sync.wait = SyncWait::block;
  EXPECT_LT(processor_time_of_a_step(knobs), microseconds(20));
  knobs.sync.how = SyncHow::poll;
  EXPECT_GE(processor_time_of_a_step(knobs), microseconds(500)) << "polls spin whatever waits do";
}

TEST(SimulatedDevice, ALoaderThatIsAwaitedSleepsAllButTheEnd) {
  Knobs knobs = spinning(1, 1);
  knobs.loader.wait_us = 1000;
  const nanoseconds inline_loader = processor_time_of_a_step(knobs);
  EXPECT_GE(inline_loader, microseconds(150));
  EXPECT_LT(inline_loader, microseconds(200));
  knobs.loader.busy = true;
  EXPECT_GE(processor_time_of_a_step(knobs), microseconds(1000))
      << "it computes, and sleeps nowhere";
  knobs.loader.depth = 2;
  EXPECT_LT(processor_time_of_a_step(knobs), microseconds(50));
}

// Eight workers make a batch of 4 ms every 500 us where each has a processor of its own; the first
// eight batches of a load are there sooner.
TEST(SimulatedDevice, SharesItsProcessorsAmongBusyWorkersAndTheStep) {
  Knobs knobs = spinning(1, 50);
  knobs.loader = {.wait_us = 4000, .depth = 8, .workers = 8};
  const auto on = [&](std::int64_t processors) {
    DeviceProfile profile = round_profile();
    profile.host.processors = processors;
    return step_time(knobs, profile);
  };
  const nanoseconds asleep = on(1);
  EXPECT_GT(asleep, microseconds(470));
  EXPECT_LE(asleep, microseconds(500));
  knobs.loader.busy = true;
  EXPECT_EQ(on(9), asleep);
  EXPECT_NEAR(static_cast<double>(on(3).count()), 3.0 * static_cast<double>(asleep.count()), 1e4);
  knobs.loader.workers = 16;
  EXPECT_EQ(on(9), asleep) << "eight places ahead keep eight of them";
}

std::string refusal_of(const std::function<void()>& load) {
  try {
    load();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "it fits";
}

TEST(SimulatedDevice, RefusesAStepThatDoesNotFitWithWhatItNeedsAndWhatIsThere) {
  DeviceProfile small = round_profile();
  small.memory_bytes = 3 << 20;
  Knobs knobs;  // 4 layers of 1024 x 1024 in fp32 and their gradients are 32 MiB
  knobs.model.workspace_bytes = 0;
  const std::vector<StepPlan> plans = plans_of(knobs);
  const auto needed = counted(plans.front(), Metric::peak_live).value() / (1 << 20);
  EXPECT_GT(needed, 32);
  const auto device = make_simulated_device(small);
  EXPECT_EQ(refusal_of([&] { (void)device->load(plans.front()); })
                .find(fmt::format("variant 'only' needs {:.0f} MiB of device memory, but only 3 of "
                                  "3 MiB are free; ",
                                  needed)),
            0u);
}

TEST(SimulatedDevice, CountsTheMemoryOfStepsThatAreLoadedTogether) {
  const std::vector<StepPlan> plans = plans_of(Knobs{});
  const auto needed = static_cast<std::int64_t>(counted(plans.front(), Metric::peak_live).value());
  DeviceProfile profile = round_profile();
  profile.memory_bytes = 2 * needed;
  const auto device = make_simulated_device(profile);
  (void)device->load_into(0, plans.front());
  {  // memory that a slot held serves the next step in it
    const auto one = device->load_into(0, plans.front());
    const auto other = device->load_into(1, plans.front());
    const std::string refusal = refusal_of([&] { (void)device->load_into(2, plans.front()); });
    EXPECT_NE(refusal.find("but only 0 of"), std::string::npos) << refusal;
  }
  const auto third =
      device->load_into(2, plans.front());  // takes memory of slots that are no longer in use
  EXPECT_NO_THROW((void)device->load(plans.front())) << "likewise, without a slot";
}

// A small step in a slot that held a larger step uses no more memory than it needs.
TEST(SimulatedDevice, TakesFromASlotInUseWhatALargerStepLeftThere) {
  Knobs large;
  large.batch.size = 8192;
  const StepPlan large_plan = plans_of(large).front();
  const StepPlan small_plan = plans_of(Knobs{}).front();
  DeviceProfile profile = round_profile();
  profile.memory_bytes = static_cast<std::int64_t>(counted(large_plan, Metric::peak_live).value());
  ASSERT_LE(2 * counted(small_plan, Metric::peak_live).value(),
            static_cast<double>(profile.memory_bytes));
  const auto device = make_simulated_device(profile);
  (void)device->load_into(0, large_plan);
  const auto one = device->load_into(0, small_plan);
  EXPECT_NO_THROW((void)device->load_into(1, small_plan));
}

TEST(SimulatedDevice, NamesAKnobThatMakesAStepFit) {
  DeviceProfile profile = round_profile();
  profile.memory_bytes = 1 << 20;
  const auto device = make_simulated_device(profile);
  const auto refused = [&](const Knobs& knobs) {
    const StepPlan plan = plans_of(knobs).front();
    return refusal_of([&] { (void)device->load(plan); });
  };
  Knobs knobs;
  EXPECT_NE(refused(knobs).find("'model.hidden' or 'model.layers'"), std::string::npos);
  knobs.model.kind = ModelKind::chase;
  knobs.model.footprint_bytes = 2 << 20;
  EXPECT_NE(refused(knobs).find("'batch.size' or 'model.footprint'"), std::string::npos);
}

TEST(CopyCost, IsLinearBetweenSizesAndGoesOnAtTheLastRate) {
  const CopyCost cost{.bytes = {100, 200, 400}, .nanoseconds = {10, 30, 130}};
  EXPECT_EQ(cost.of(1), 10);
  EXPECT_EQ(cost.of(150), 20);
  EXPECT_EQ(cost.of(300), 80);
  EXPECT_EQ(cost.of(600), 230);
}

}  // namespace
}  // namespace stepgate
