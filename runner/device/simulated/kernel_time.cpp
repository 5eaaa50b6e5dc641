// SPDX-License-Identifier: MIT
#include "device/simulated/kernel_time.h"

#include <algorithm>
#include <map>

#include "kernels/catalogue.h"
#include "kernels/strided_scale/strided_scale.h"
#include "support/require.h"

namespace stepgate {
namespace {

constexpr double nanoseconds_per_second = 1e9;

double flops_per_second(const ComputeCosts& costs, DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return costs.fp32_flops_per_second;
    case DType::tf32:
      return costs.tf32_flops_per_second;
    case DType::bf16:
    case DType::fp16:  // the same tensor cores at the same rate
      return costs.bf16_flops_per_second;
  }
  require(false, "every dtype has a rate");
  return 0;
}

// A product is cut into tiles, one multiprocessor works on one tile at a time, and the last wave of
// tiles takes as long as a full one (NVIDIA: Matrix Multiplication Background User's Guide).
double share_of_full_waves(const DeviceProfile& profile, const KernelShape& shape) {
  constexpr std::int64_t tile = 128;
  const std::int64_t tiles = (shape.rows + tile - 1) / tile * ((shape.columns + tile - 1) / tile);
  const std::int64_t waves = (tiles + profile.multiprocessors - 1) / profile.multiprocessors;
  const double useful = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  return useful / static_cast<double>(waves * profile.multiprocessors * tile * tile);
}

// The second-level caches of data-centre GPUs are no larger (H100 and H200: 50 MB).
constexpr std::int64_t largest_cache_bytes = 60'000'000;

// An operand that is written where another one is read counts once.
std::int64_t touched_bytes(const LaunchKernel& launch) {
  std::map<int, std::int64_t> bytes;  // by buffer
  for (const BufferUse& use : launch.operands)
    bytes[use.buffer] = std::max(bytes[use.buffer], use.bytes);
  std::int64_t sum = 0;
  for (const auto& [buffer, of_buffer] : bytes) sum += of_buffer;
  return sum;
}

// What memory moves for the kernel: whole sectors, where its operands are too large for a sector to
// stay in the cache until its other elements are asked for.
double moved_bytes(const LaunchKernel& launch) {
  KernelWork work = kernel(launch.kernel).work(launch.shape, launch.dtype, launch.scalars);
  if (launch.kernel == "strided_scale" && touched_bytes(launch) > largest_cache_bytes) {
    work = strided_scale_traffic(launch.shape, launch.dtype, launch.scalars);
  }
  return static_cast<double>(work.bytes_read + work.bytes_written);
}

}  // namespace

// Beside its work, a kernel takes what the shortest one takes.
std::int64_t kernel_time(const DeviceProfile& profile, const LaunchKernel& launch,
                         std::int64_t floor) {
  if (launch.kernel == "spin") {
    return std::max(floor, static_cast<std::int64_t>(launch.scalars[0] * 1000));
  }
  const ComputeCosts& costs = profile.compute;
  const KernelWork work = kernel(launch.kernel).work(launch.shape, launch.dtype, launch.scalars);
  const double memory_seconds = moved_bytes(launch) / costs.memory_bytes_per_second;
  double math_seconds = static_cast<double>(work.flops) / flops_per_second(costs, launch.dtype);
  if (launch.kernel == "matmul") math_seconds /= share_of_full_waves(profile, launch.shape);
  return floor +
         static_cast<std::int64_t>(std::max(memory_seconds, math_seconds) * nanoseconds_per_second);
}

}  // namespace stepgate
