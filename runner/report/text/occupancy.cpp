// SPDX-License-Identifier: MIT
#include "report/text/occupancy.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text/units.h"

namespace stepgate {
namespace {

constexpr std::int64_t warp_threads = 32;
constexpr std::int64_t registers_of_a_multiprocessor = 65536;
constexpr std::int64_t register_unit = 256;            // registers are handed out in these, a warp
constexpr std::int64_t reserved_shared_memory = 1024;  // a block, by the driver, since 8.0

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
struct Limits {
  double compute_capability;
  std::int64_t threads;
  std::int64_t blocks;
  std::int64_t shared_memory;
};
constexpr std::array limits_table{
    Limits{8.0, 2048, 32, 164 * kibibyte},  Limits{8.6, 1536, 16, 100 * kibibyte},
    Limits{8.9, 1536, 24, 100 * kibibyte},  Limits{9.0, 2048, 32, 228 * kibibyte},
    Limits{10.0, 2048, 32, 228 * kibibyte}, Limits{12.0, 1536, 24, 100 * kibibyte}};

std::int64_t product(const std::array<int, 3>& sides) {
  return std::int64_t{sides[0]} * sides[1] * sides[2];
}

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// That one multiprocessor can pass at once.
std::int64_t most_blocks(const Limits& limits, const DeviceWork& kernel, std::int64_t warps) {
  std::int64_t most = std::min(limits.blocks, limits.threads / (warps * warp_threads));
  if (kernel.registers_per_thread > 0) {
    const std::int64_t a_warp =
        rounded_up(kernel.registers_per_thread * warp_threads, register_unit);
    most = std::min(most, registers_of_a_multiprocessor / a_warp / warps);
  }
  return std::min(most,
                  limits.shared_memory / (kernel.shared_memory_bytes + reserved_shared_memory));
}

}  // namespace

std::optional<Occupancy> estimated_occupancy(const DeviceIdentity& device,
                                             const DeviceWork& kernel) {
  const std::int64_t threads = product(kernel.block);
  const std::int64_t blocks = product(kernel.grid);
  const auto limits =
      std::find_if(limits_table.begin(), limits_table.end(), [&](const Limits& row) {
        return std::abs(row.compute_capability - device.compute_capability) < 0.05;
      });
  if (device.multiprocessors == 0 || threads == 0 || blocks == 0 || limits == limits_table.end()) {
    return std::nullopt;
  }
  const std::int64_t warps = (threads + warp_threads - 1) / warp_threads;
  Occupancy occupancy;
  occupancy.blocks_per_multiprocessor =
      static_cast<double>(blocks) / static_cast<double>(device.multiprocessors);
  occupancy.warps_per_multiprocessor =
      occupancy.blocks_per_multiprocessor * static_cast<double>(warps);
  const double held = std::min(static_cast<double>(most_blocks(*limits, kernel, warps)),
                               occupancy.blocks_per_multiprocessor);
  occupancy.percent =
      static_cast<int>(std::lround(100 * held * static_cast<double>(warps * warp_threads) /
                                   static_cast<double>(limits->threads)));
  return occupancy;
}

}  // namespace stepgate
