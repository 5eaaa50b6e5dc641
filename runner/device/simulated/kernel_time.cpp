// SPDX-License-Identifier: MIT
#include "device/simulated/kernel_time.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "base/require.h"
#include "base/seconds.h"
#include "kernels/catalogue.h"
#include "kernels/convolution/convolution.h"
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

// The dtype of the kernel's arithmetic. Attention has no GEMMs in tf32, so it uses fp32 instead
// (kernels/attention/attention.h).
DType multiplied_as(const LaunchKernel& launch) {
  return kernel(launch.kernel).library.is_attention && launch.dtype == DType::tf32 ? DType::fp32
                                                                                   : launch.dtype;
}

// A launch waits for memory four times, once after the other, whatever it computes: for its
// instructions, for its arguments, for what it loads first, and until what it stores last has
// arrived. The shortest kernel, which is empty, does none of it.
double start_seconds(const ComputeCosts& costs) {
  constexpr std::int64_t round_trips = 4;
  return static_cast<double>(round_trips * costs.memory_latency_nanoseconds) /
         nanoseconds_per_second;
}

// A GEMM with few tiles is also cut along its depth, which adds a pass over sums of the parts. The
// convolutions and data gradients that cuDNN proposes first are not.
bool can_split_depth(const LaunchKernel& launch) {
  const std::string_view name = launch.kernel.name();
  return name != kernels::Convolution::name && name != kernels::ConvolutionDataGradient::name;
}

// How many times as fast as the dtype the factors are multiplied. Data sheets have twice the rate
// of bf16 for fp8; on an H200 GEMMs of blocks with d2048 were 2.1 times as fast, with d256 1.2
// times.
double speedup_of_factors(const LaunchKernel& launch) {
  return kernel(launch.kernel).operands.front().format == OperandFormat::byte ? 2 : 1;
}

// Computes the time of a GEMM's pieces at the measured rate of large GEMMs. A GEMM is cut into
// tiles of its result, and perhaps into parts of its depth. A multiprocessor works on one piece at
// a time, and the last wave of pieces takes as long as a full one (NVIDIA: Matrix Multiplication
// Background User's Guide). Each wave waits for its first operands and for the stores of its
// results. The library takes the quickest cut. `shortest_part` is a guess that gives 768 x 768 over
// 32768 its measured 61 us on an H200. It is another guess that tensor cores work at half their
// rate on small tiles, whose operands serve half as many multiplications.
double gemm_seconds(const DeviceProfile& profile, const LaunchKernel& launch) {
  constexpr std::int64_t shortest_part = 1024;
  constexpr std::int64_t most_parts = 64;
  constexpr int waits_a_wave = 2;
  constexpr int bytes_of_a_sum = 2 * 4;  // fp32, written and read
  const ComputeCosts& costs = profile.compute;
  const GemmSizes shape =
      kernel(launch.kernel).library.gemm(launch.shape, launch.dtype, launch.attributes);
  const DType dtype = multiplied_as(launch);
  const double rate = flops_per_second(costs, dtype) * speedup_of_factors(launch) /
                      static_cast<double>(profile.multiprocessors);
  const double wait =
      waits_a_wave * static_cast<double>(costs.memory_latency_nanoseconds) / nanoseconds_per_second;
  const double results = static_cast<double>(shape.groups) * static_cast<double>(shape.rows) *
                         static_cast<double>(shape.columns);
  const double sums_seconds = bytes_of_a_sum * results / costs.memory_bytes_per_second;
  const std::int64_t there = std::max<std::int64_t>(1, profile.multiprocessors - spared_by(launch));
  const std::int64_t parts_at_most =
      can_split_depth(launch) ? std::clamp<std::int64_t>(shape.depth / shortest_part, 1, most_parts)
                              : 1;
  double quickest = std::numeric_limits<double>::max();
  for (const std::int64_t tile : {128, 64}) {
    const int slower = tile == 64 && dtype != DType::fp32 ? 2 : 1;
    const std::int64_t tiles =
        shape.groups * ((shape.rows + tile - 1) / tile) * ((shape.columns + tile - 1) / tile);
    const double tile_seconds =
        slower * 2.0 * static_cast<double>(tile * tile) * static_cast<double>(shape.depth) / rate;
    for (std::int64_t parts = 1; parts <= parts_at_most; ++parts) {
      const auto waves = static_cast<double>((tiles * parts + there - 1) / there);
      const auto divided = static_cast<double>(parts);
      const double sums = parts > 1 ? start_seconds(costs) + divided * sums_seconds : 0;
      quickest = std::min(quickest, waves * (tile_seconds / divided + wait) + sums);
    }
  }
  // A bias adds flops to the GEMM's, and a convolution skips those of its padding and its stride.
  return quickest * static_cast<double>(work_of(launch).flops) /
         (2 * results * static_cast<double>(shape.depth));
}

// The L2 caches of data-centre GPUs are no larger than this (H100 and H200: 50 MB).
constexpr std::int64_t largest_cache_bytes = 60'000'000;

double share_of_rate(const LaunchKernel& launch) {
  const KernelCost& cost = kernel(launch.kernel).cost;
  return cost.share_by_attributes ? cost.share_by_attributes(launch.attributes)
                                  : cost.share_of_rate;
}

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

// A kernel takes the time of the shortest kernel in addition to its own. That time has the pause
// before the kernel in it: on an H200 the kernels of a ResNet-50's step began 1.5 to 2.0 us after
// the end of the one before, and 0.4 to 1.0 us in a graph.
std::int64_t kernel_time(const DeviceProfile& profile, const LaunchKernel& launch,
                         std::int64_t floor) {
  if (const auto& replacement = kernel(launch.kernel).replacement)
    return std::max(floor, static_cast<std::int64_t>(replacement->microseconds.value_or(0) * 1000));
  if (const auto told = kernel(launch.kernel).cost.delay_microseconds)
    return std::max(floor, static_cast<std::int64_t>(told(launch.attributes) * 1000));
  const ComputeCosts& costs = profile.compute;
  const KernelWork work = work_of(launch);
  const double memory_seconds = moved_bytes(launch) / costs.memory_bytes_per_second;
  const double math_seconds =
      kernel(launch.kernel).library.is_gemm()
          ? gemm_seconds(profile, launch)
          : static_cast<double>(work.flops) / flops_per_second(costs, multiplied_as(launch));
  const double seconds = start_seconds(costs) +
                         std::max({memory_seconds, math_seconds, latency_seconds(costs, launch)});
  const double nanoseconds = seconds * nanoseconds_per_second / share_of_rate(launch);
  return floor + static_cast<std::int64_t>(
                     std::min(nanoseconds, static_cast<double>(longest_cost_nanoseconds)));
}

// On an H200 (2026-11-28) it was the floor of 1.7 us, 1.6 to 2.0 us, and half of a graph's 0.9 us,
// 0.45 to 0.63 us, where kernels are short. The shortest kernels take at least as long as the pause
// before them. A duration that is told has no pause in it.
std::int64_t pause_before(const LaunchKernel& launch, std::int64_t floor, std::int64_t time,
                          bool captured) {
  const Kernel& launched = kernel(launch.kernel);
  if (launched.replacement || launched.cost.delay_microseconds) return 0;
  return std::min(captured ? floor / 2 : floor, time / 2);
}

}  // namespace stepgate
