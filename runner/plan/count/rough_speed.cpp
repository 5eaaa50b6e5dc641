// SPDX-License-Identifier: MIT
#include "plan/count/rough_speed.h"

#include <algorithm>

#include "kernels/catalogue.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

constexpr double call = 5e-6;           // a driver call, and the shortest kernel
constexpr double driver_memory = 1e-4;  // cudaMalloc, cudaFree
constexpr double wait = 1e-4;           // including the delay of later host work
constexpr double load = 1e-7;           // a dependent load, from any cache
constexpr double register_bytes_per_second = 5e9;
constexpr double wire_bytes_per_second = 1e11;
constexpr double pinned_bytes_per_second = 5e10;
constexpr double pageable_bytes_per_second = 1e10;

struct RoughCost {
  const StepPlan& plan;

  double operator()(const LaunchKernel& launch) const {
    const RoughKernelTime time = rough_time_of(launch);
    return call + std::max({time.math, time.memory, time.latency});
  }
  double operator()(const CopyBytes& copy) const {
    const bool pageable = is_pageable(plan, copy);
    return (copy.host_waits || pageable ? wait : call) +
           bytes(copy.to) / (pageable ? pageable_bytes_per_second : pinned_bytes_per_second);
  }
  double operator()(const FillZero& fill) const {
    return call + bytes(fill.what) / rough_bytes_per_second;
  }
  double operator()(const HostCopies& copy) const {
    return bytes(copy.to) / pageable_bytes_per_second;
  }
  double operator()(const Prefetch& prefetch) const {
    return wait + bytes(prefetch.what) / pageable_bytes_per_second;
  }
  double operator()(const Allocate& allocate) const {
    return of_buffer(allocate.buffer) + driver_memory * allocate.driver.allocations;
  }
  double operator()(const Release& release) const { return of_buffer(release.buffer); }
  double operator()(const EmptyCache& empty) const {
    return wait + driver_memory * empty.driver.frees;
  }
  double operator()(const RegisterHost& lock) const {
    return driver_memory +
           static_cast<double>(plan.buffers[static_cast<std::size_t>(lock.buffer)].bytes) /
               register_bytes_per_second;
  }
  double operator()(const UnregisterHost&) const { return driver_memory + wait; }
  double operator()(const RecordEvent&) const { return call; }
  double operator()(const StreamWaitsEvent&) const { return call; }
  double operator()(const HostWaits&) const { return wait; }
  double operator()(const TakeBatch&) const { return plan.loader.wait_us * 1e-6; }
  double operator()(const HostWork& work) const {
    return static_cast<double>(work.nanoseconds) * 1e-9;
  }
  double operator()(const Collective& collective) const {
    return call + 2 * static_cast<double>(payload_bytes(collective)) / wire_bytes_per_second;
  }

  static double bytes(const BufferUse& use) { return static_cast<double>(use.bytes); }
  double of_buffer(int buffer) const {
    return plan.buffers[static_cast<std::size_t>(buffer)].allocated_by == AllocatedBy::cuda
               ? driver_memory
               : call;
  }
};

}  // namespace

double rough_flops_per_second(DType dtype) {
  if (is_16_bit(dtype)) return 800e12;
  return dtype == DType::fp32 ? 50e12 : 400e12;
}

RoughKernelTime rough_time_of(const LaunchKernel& launch) {
  const KernelWork work = work_of(launch);
  const auto loads_of = kernel(launch.kernel).cost.dependent_loads;
  const std::int64_t loads =
      loads_of ? loads_of(launch.shape, launch.dtype, launch.attributes).count : 0;
  return {
      .math = static_cast<double>(work.flops) / rough_flops_per_second(launch.dtype),
      .memory = static_cast<double>(work.bytes_read + work.bytes_written) / rough_bytes_per_second,
      .latency = static_cast<double>(loads) * load};
}

KernelLimit limit_of(const LaunchKernel& launch) {
  if (kernel(launch.kernel).cost.delay_microseconds) return KernelLimit::math;
  const RoughKernelTime time = rough_time_of(launch);
  if (time.latency > std::max(time.math, time.memory)) return KernelLimit::latency;
  return time.math > time.memory ? KernelLimit::math : KernelLimit::memory;
}

double rough_cost_of(const StepPlan& plan, const Operation& operation) {
  return visit_action(RoughCost{plan}, operation.action);
}

}  // namespace stepgate
