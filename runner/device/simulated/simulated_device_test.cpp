// SPDX-License-Identifier: MIT
// The simulated machine against arithmetic done by hand, and its noise against its settings.
#include "device/simulated/simulated_device.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "plan/build_step_plan.h"
#include "plan/counted_metrics.h"

namespace stepgate {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Round numbers and no noise, so that times can be checked by hand.
DeviceProfile round_profile() {
  DeviceProfile profile;
  profile.name = "round numbers";
  profile.multiprocessors = 100;
  profile.memory_bytes = std::int64_t{1} << 34;
  profile.host = {.launch_nanoseconds = 1000,
                  .product_nanoseconds = 2000,
                  .graph_launch_nanoseconds = 2000,
                  .copy_call_nanoseconds = 500,
                  .event_nanoseconds = 0,
                  .wake_up_nanoseconds = 5000,
                  .malloc_nanoseconds = 20000,
                  .free_nanoseconds = 10000,
                  .malloc_async_nanoseconds = 300,
                  .pool_grow_nanoseconds = 100000,
                  .page_lock_nanoseconds_per_mib = 50000,
                  .page_unlock_nanoseconds_per_mib = 20000};
  profile.compute = {.launch_latency_nanoseconds = 4000,
                     .kernel_floor_nanoseconds = 1000,
                     .graph_node_floor_nanoseconds = 500,
                     .memory_bytes_per_second = 1e12,
                     .fp32_flops_per_second = 1e13,
                     .tf32_flops_per_second = 1e14,
                     .bf16_flops_per_second = 2e14};
  profile.pinned = {.bytes = {1 << 12, 1 << 20}, .nanoseconds = {2000, 20000}};
  profile.pageable = {.bytes = {1 << 12, 1 << 20}, .nanoseconds = {4000, 60000}};
  profile.staging_bytes = 1 << 12;
  return profile;
}

Knobs spinning(std::int64_t kernels, std::int64_t kernel_us) {
  Knobs knobs;
  knobs.model.kind = ModelKind::spin;
  knobs.model.kernels = kernels;
  knobs.model.kernel_us = kernel_us;
  knobs.batch.size = 8;
  return knobs;
}

std::vector<StepPlan> plans_of(const Knobs& knobs) {
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({"only", knobs, {}});
  return build_step_plans(scenario, 1);
}

nanoseconds step_time(const Knobs& knobs, const DeviceProfile& profile,
                      SimulatedSettings settings = {}) {
  const std::vector<StepPlan> plans = plans_of(knobs);
  const auto device = make_simulated_device(profile, std::move(settings));
  const auto step = device->load(plans.front());
  return *step->run({.wash_out_steps = 20, .steps = 100}).elapsed / 100;
}

Knobs elementwise(std::int64_t samples) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::elementwise, .hidden = 4096, .kernels = 1};
  knobs.batch.size = samples;
  return knobs;
}

TEST(SimulatedDevice, MovesWholeSectorsWhereItsCacheHoldsNone) {
  const auto lost = [](std::int64_t samples, auto change) {
    Knobs changed = elementwise(samples);
    change(changed.model);
    const nanoseconds as_fast = step_time(elementwise(samples), round_profile());
    return static_cast<double>((step_time(changed, round_profile()) - as_fast).count());
  };
  const auto strided = [](ModelKnobs& model) { model.stride = 32; };
  const auto in_records = [](ModelKnobs& model) { model.layout = Layout::records; };
  constexpr double array_time = 0x1p26 / 1e12 * 1e9;  // of 4096 x 4096 numbers, in one direction
  EXPECT_NEAR(lost(4096, strided), 7 * 2 * array_time, 10);
  // One kernel there and back, one into records and one out of them.
  EXPECT_NEAR(lost(4096, in_records), 5 * 4 * array_time, 10);
  EXPECT_EQ(lost(64, strided), 0);
  EXPECT_EQ(lost(64, in_records), 0);
}

// ingest and report take the floor of 1 us each
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
  // host work, launch of ingest, latency, ingest 1, spin 50, report 1, wake-up 5
  EXPECT_EQ(step_time(knobs, round_profile()), microseconds(30 + 1 + 4 + 1 + 50 + 1 + 5));
  knobs.sync.where = SyncWhere::none;
  EXPECT_EQ(step_time(knobs, round_profile()), microseconds(52));
}

TEST(SimulatedDevice, HidesACopyOnASideStreamOnly) {
  Knobs knobs = spinning(10, 20);
  knobs.batch.sample_bytes = 1 << 17;  // 1 MiB a batch: 20 us pinned
  knobs.h2d.host = HostMemory::pinned;
  const nanoseconds in_line = step_time(knobs, round_profile());
  knobs.h2d.stream = CopyStream::side;
  knobs.h2d.buffers = 2;
  const nanoseconds hidden = step_time(knobs, round_profile());
  EXPECT_EQ(in_line - hidden, microseconds(20));
}

TEST(SimulatedDevice, ChargesPageableCopiesAndDirectAllocationsToTheStep) {
  Knobs knobs = spinning(10, 20);
  knobs.h2d.host = HostMemory::pinned;
  knobs.batch.sample_bytes = 1 << 17;
  const nanoseconds pinned = step_time(knobs, round_profile());
  knobs.h2d.host = HostMemory::pageable;
  EXPECT_GT(step_time(knobs, round_profile()), pinned + microseconds(40));
  knobs.h2d.host = HostMemory::resident;
  const nanoseconds fixed = step_time(knobs, round_profile());
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = std::nullopt};
  EXPECT_GT(step_time(knobs, round_profile()), fixed + microseconds(60));
  knobs.alloc.with = Allocator::cuda_async;
  EXPECT_EQ(step_time(knobs, round_profile()), fixed);
}

TEST(SimulatedDevice, StagesAPageableCopyAheadAsFarAsTheDriverDoes) {
  Knobs knobs = spinning(1, 200);
  knobs.h2d.host = HostMemory::pageable;
  knobs.batch.sample_bytes = 1 << 17;  // 1 MiB a batch: 60 us pageable, 20 us pinned
  const nanoseconds blocking = step_time(knobs, round_profile());
  DeviceProfile staging = round_profile();
  staging.staging_bytes = 1 << 20;
  const nanoseconds staged = step_time(knobs, staging);
  // All but the first 4 KiB, 4 us, used to wait for the kernel; now only the transfer follows it.
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
  EXPECT_GT(step_time(knobs, round_profile()), keeping + microseconds(150));
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
  knobs.h2d.host = HostMemory::pinned;
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

TEST(SimulatedDevice, GivesTheSameTimesForTheSameSeedOnly) {
  DeviceProfile noisy = round_profile();
  noisy.noise = {.within_rounds = 0.02,
                 .between_rounds = 0.01,
                 .spike_probability = 0.01,
                 .spike_nanoseconds = 50000};
  const nanoseconds first = step_time(spinning(10, 50), noisy, {.seed = 7});
  EXPECT_EQ(first, step_time(spinning(10, 50), noisy, {.seed = 7}));
  EXPECT_NE(first, step_time(spinning(10, 50), noisy, {.seed = 8}));
}

TEST(SimulatedDevice, KeepsWhatASlotCostsAndDrawsWhatALoadCosts) {
  const std::vector<StepPlan> plans = plans_of(spinning(10, 50));
  const auto times = [&](const NoiseCosts& noise) {
    DeviceProfile profile = round_profile();
    profile.noise = noise;
    const auto device = make_simulated_device(profile, {.seed = 3});
    std::vector<nanoseconds> elapsed;
    for (const int slot : {0, 1, 0, 1}) {
      elapsed.push_back(*device->load_into(slot, plans.front())->run({.steps = 20}).elapsed);
    }
    return elapsed;
  };
  const auto by_slot = times({.between_slots = 0.05});
  EXPECT_EQ(by_slot[0], by_slot[2]);
  EXPECT_EQ(by_slot[1], by_slot[3]);
  EXPECT_NE(by_slot[0], by_slot[1]);
  const auto by_load = times({.between_loads = 0.05});
  EXPECT_NE(by_load[0], by_load[2]);
  EXPECT_NE(by_load[1], by_load[3]);
}

TEST(SimulatedDevice, ShowsAPlantedSlowdownInItsVariantOnly) {
  const SimulatedSettings planted{.seed = 0, .slowdowns = {{.variant = "only", .factor = 1.05}}};
  const SimulatedSettings elsewhere{.seed = 0, .slowdowns = {{.variant = "other", .factor = 1.05}}};
  const auto plain = static_cast<double>(step_time(spinning(10, 50), round_profile()).count());
  EXPECT_NEAR(
      static_cast<double>(step_time(spinning(10, 50), round_profile(), planted).count()) / plain,
      1.05, 0.001);
  EXPECT_EQ(static_cast<double>(step_time(spinning(10, 50), round_profile(), elsewhere).count()),
            plain);
}

TEST(SimulatedDevice, ReportsAPlantedClockInItsVariantOnlyAndKeepsItsTimes) {
  const std::vector<StepPlan> plans = plans_of(spinning(3, 10));
  const auto result_with = [&](SimulatedSettings settings) {
    const auto device = make_simulated_device(round_profile(), std::move(settings));
    return device->load(plans.front())->run({.wash_out_steps = 2, .steps = 10});
  };
  const StepResult plain = result_with({.seed = 1});
  EXPECT_FALSE(plain.sm_clock_hertz);
  EXPECT_FALSE(result_with({.seed = 1, .clocks = {{"other", 1.5e9}}}).sm_clock_hertz);
  const StepResult clocked = result_with({.seed = 1, .clocks = {{"only", 1.5e9}}});
  EXPECT_EQ(clocked.sm_clock_hertz, 1.5e9);
  EXPECT_EQ(clocked.elapsed, plain.elapsed);
}

TEST(SimulatedDevice, ReadsThePlantedEnvironmentFromItsReadingOn) {
  EnvironmentReading cool;
  cool.temperature_celsius = 40;
  EnvironmentReading hot;
  hot.temperature_celsius = 90;
  const auto device =
      make_simulated_device(round_profile(), {.environment = {{1, cool}, {3, hot}}});
  EXPECT_FALSE(device->read_environment());
  for (const double celsius : {40.0, 40.0, 90.0, 90.0}) {
    EXPECT_EQ(device->read_environment().value().temperature_celsius, celsius);
  }
}

TEST(SimulatedDevice, ReportsStepTimesThatAddUpAndHostTimeWithoutWaits) {
  const std::vector<StepPlan> plans = plans_of(spinning(10, 50));
  const auto device = make_simulated_device(round_profile());
  const auto step = device->load(plans.front());
  const StepResult result = step->run({.wash_out_steps = 10, .steps = 50});
  ASSERT_EQ(result.step_times.size(), 49u);
  for (const nanoseconds time : result.step_times) EXPECT_EQ(time, microseconds(502));
  EXPECT_EQ(*result.host_busy, microseconds(50 * 12));
  EXPECT_EQ(result.first_step, 0);
  EXPECT_EQ(step->run({.wash_out_steps = 0, .steps = 1}).first_step, 60);
  EXPECT_TRUE(result.losses.empty());
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
  for (int turn = 0; turn < 2; ++turn) {  // what a slot held serves whoever is next there
    (void)device->load_into(0, plans.front());
    (void)device->load_into(1, plans.front());
  }
  const std::string refusal = refusal_of([&] { (void)device->load_into(2, plans.front()); });
  EXPECT_NE(refusal.find("but only 0 of"), std::string::npos) << refusal;
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
