// SPDX-License-Identifier: MIT
#include "device/simulated/kernel_time.h"

#include <algorithm>
#include <map>

#include "base/require.h"
#include "base/seconds.h"
#include "kernels/catalogue.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

double flops_per_second(const ComputeCosts& costs, DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return costs.fp32_flops_per_second;
    case DType::tf32:
      return costs.tf32_flops_per_second;
    case DType::bf16:
    case DType::fp16:  // the same tensor cores at the same rate
      return costs.bf16_flops_per_second;
    case DType::fp64:
      break;
  }
  require(false, "no step runs in another dtype");
  return 0;
}

// The multiprocessors that a launch leaves free.
int spared_by(const LaunchKernel& launch) {
  const auto spared = kernel(launch.kernel).library.spare_multiprocessors;
  return spared ? spared(launch.attributes) : 0;
}

// Computes the share of the peak rate that a GEMM reaches. A GEMM is cut into tiles of its result,
// and a deep GEMM with few tiles also along its depth. A multiprocessor works on one piece at a
// time, and the last wave of pieces takes as long as a full one (NVIDIA: Matrix Multiplication
// Background User's Guide). `shortest_part` is a guess that gives 768 x 768 over 32768 its measured
// 61 us on an H200.
double share_of_full_waves(const DeviceProfile& profile, const LaunchKernel& launch) {
  const GemmSizes shape =
      kernel(launch.kernel).library.gemm(launch.shape, launch.dtype, launch.attributes);
  constexpr std::int64_t tile = 128;
  constexpr std::int64_t shortest_part = 1024;
  const std::int64_t tiles =
      shape.groups * ((shape.rows + tile - 1) / tile) * ((shape.columns + tile - 1) / tile);
  const std::int64_t there = std::max<std::int64_t>(1, profile.multiprocessors - spared_by(launch));
  const std::int64_t parts =
      std::max<std::int64_t>(1, std::min(there / tiles, shape.depth / shortest_part));
  const std::int64_t waves = (tiles * parts + there - 1) / there;
  const double useful = static_cast<double>(shape.groups * parts) *
                        static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  return useful / static_cast<double>(waves * profile.multiprocessors * tile * tile);
}

// The share of the dtype's peak rate that the kernel can reach; 1 for kernels that memory limits
// anyway.
double share_of_rate(const DeviceProfile& profile, const LaunchKernel& launch) {
  const Kernel& launched = kernel(launch.kernel);
  return launched.library.is_gemm() ? share_of_full_waves(profile, launch)
                                    : launched.cost.share_of_rate;
}

// The dtype of the kernel's arithmetic. Attention has no GEMMs in tf32, so it uses fp32 instead
// (kernels/attention/attention.h).
DType multiplied_as(const LaunchKernel& launch) {
  return kernel(launch.kernel).library.is_attention && launch.dtype == DType::tf32 ? DType::fp32
                                                                                   : launch.dtype;
}

// The L2 caches of data-centre GPUs are no larger than this (H100 and H200: 50 MB).
constexpr std::int64_t largest_cache_bytes = 60'000'000;

// The bytes of all operands. An operand that is written in place of one that is read counts once.
std::int64_t touched_bytes(const LaunchKernel& launch) {
  std::map<int, std::int64_t> bytes;  // by buffer
  for (const BufferUse& use : launch.operands)
    bytes[use.buffer] = std::max(bytes[use.buffer], use.bytes);
  std::int64_t sum = 0;
  for (const auto& [buffer, of_buffer] : bytes) sum += of_buffer;
  return sum;
}

// The bytes that memory transfers for the kernel. They are whole sectors where the operands are too
// large for a sector to stay in the cache until its other elements are read.
double moved_bytes(const LaunchKernel& launch) {
  const Kernel& launched = kernel(launch.kernel);
  const bool uncached = launched.cost.uncached_work && touched_bytes(launch) > largest_cache_bytes;
  const KernelWork work =
      uncached ? launched.cost.uncached_work(launch.shape, launch.dtype, launch.attributes)
               : work_of(launch);
  return static_cast<double>(work.bytes_read + work.bytes_written);
}

// Latency of the smallest level of memory that holds the whole footprint.
std::int64_t latency_of(const ComputeCosts& costs, std::int64_t footprint_bytes) {
  if (footprint_bytes <= costs.l1_bytes) return costs.l1_latency_nanoseconds;
  if (footprint_bytes <= costs.l2_bytes) return costs.l2_latency_nanoseconds;
  return costs.memory_latency_nanoseconds;
}

// The loads depend on each other, so their latencies add up.
double latency_seconds(const ComputeCosts& costs, const LaunchKernel& launch) {
  const auto loads_of = kernel(launch.kernel).cost.dependent_loads;
  if (!loads_of) return 0;
  const DependentLoads loads = loads_of(launch.shape, launch.dtype, launch.attributes);
  return static_cast<double>(loads.count) *
         static_cast<double>(latency_of(costs, loads.footprint_bytes)) / nanoseconds_per_second;
}

}  // namespace

// A kernel takes the time of the shortest kernel in addition to its work.
std::int64_t kernel_time(const DeviceProfile& profile, const LaunchKernel& launch,
                         std::int64_t floor) {
  if (const auto& replacement = kernel(launch.kernel).replacement)
    return std::max(floor, static_cast<std::int64_t>(replacement->microseconds.value_or(0) * 1000));
  if (const auto told = kernel(launch.kernel).cost.delay_microseconds)
    return std::max(floor, static_cast<std::int64_t>(told(launch.attributes) * 1000));
  const ComputeCosts& costs = profile.compute;
  const KernelWork work = work_of(launch);
  const double memory_seconds = moved_bytes(launch) / costs.memory_bytes_per_second;
  const double rate =
      flops_per_second(costs, multiplied_as(launch)) * share_of_rate(profile, launch);
  const double math_seconds = static_cast<double>(work.flops) / rate;
  const double seconds = std::max({memory_seconds, math_seconds, latency_seconds(costs, launch)});
  const double nanoseconds = seconds * nanoseconds_per_second;
  return floor + static_cast<std::int64_t>(
                     std::min(nanoseconds, static_cast<double>(longest_cost_nanoseconds)));
}

}  // namespace stepgate
