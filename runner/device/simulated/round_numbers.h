// SPDX-License-Identifier: MIT
// For tests only: a simulated machine whose costs are round numbers, and the time that a step takes
// on it.
#pragma once

#include <utility>
#include <vector>

#include "device/simulated/simulated_device.h"
#include "plan/compose/build_step_plan.h"

namespace stepgate {

// Round numbers and no noise, so that times can be checked by hand.
inline DeviceProfile round_profile() {
  DeviceProfile profile;
  profile.name = "round numbers";
  profile.multiprocessors = 100;
  profile.memory_bytes = std::int64_t{1} << 34;
  profile.host = {.launch_nanoseconds = 1000,
                  .gemm_nanoseconds = 2000,
                  .graph_launch_nanoseconds = 2000,
                  .copy_call_nanoseconds = 500,
                  .event_nanoseconds = 0,
                  .wake_up_nanoseconds = 5000,
                  .malloc_nanoseconds = 20000,
                  .free_nanoseconds = 10000,
                  .malloc_async_nanoseconds = 300,
                  .pool_grow_nanoseconds = 100000,
                  .register_nanoseconds_per_mib = 50000,
                  .unregister_nanoseconds_per_mib = 20000};
  profile.compute = {.launch_latency_nanoseconds = 4000,
                     .kernel_floor_nanoseconds = 1000,
                     .graph_node_floor_nanoseconds = 500,
                     .memory_bytes_per_second = 1e12,
                     .fp32_flops_per_second = 1e13,
                     .tf32_flops_per_second = 1e14,
                     .bf16_flops_per_second = 2e14,
                     .memory_latency_nanoseconds = 0};
  profile.pinned = {.bytes = {1 << 12, 1 << 20}, .nanoseconds = {2000, 20000}};
  profile.pageable = {.bytes = {1 << 12, 1 << 20}, .nanoseconds = {4000, 60000}};
  profile.staging_bytes = 1 << 12;
  return profile;
}

// A step of kernels alone, without a copy: the batch is on the device already.
inline Knobs spinning(std::int64_t kernels, std::int64_t kernel_us) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::spin;
  knobs.model.kernels = kernels;
  knobs.model.kernel_us = kernel_us;
  knobs.batch.size = 8;
  return knobs;
}

inline std::vector<StepPlan> plans_of(const Knobs& knobs) {
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({"only", knobs, {}});
  return build_step_plans(scenario, 1);
}

inline std::chrono::nanoseconds step_time(const Knobs& knobs, const DeviceProfile& profile,
                                          SimulatedSettings settings = {}) {
  const std::vector<StepPlan> plans = plans_of(knobs);
  const auto device = make_simulated_device(profile, std::move(settings));
  const auto step = device->load(plans.front());
  return *step->run({.wash_out_steps = 20, .steps = 100}).elapsed / 100;
}

}  // namespace stepgate
