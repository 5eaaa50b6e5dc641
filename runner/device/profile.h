// SPDX-License-Identifier: MIT
// Costs of a step's operations on one kind of device: the numbers that the simulated device
// computes with. Measured ones lie in baselines/<device>/device.toml.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace stepgate {

// No call, kernel or copy may take longer. Nothing real does, and sums of such times do not
// overflow.
inline constexpr std::int64_t longest_cost_nanoseconds = 3'600'000'000'000;

// Time of a copy by size, linear in between, by the last rate beyond the largest.
struct CopyCost {
  std::vector<std::int64_t> bytes;        // ascending, at least two
  std::vector<std::int64_t> nanoseconds;  // as many

  std::int64_t of(std::int64_t size) const;
  // Rate of the last stretch.
  double bytes_per_nanosecond() const;
};

// Time of a collective by the bytes of the whole, from when the last of its ranks has come to it;
// by size as for a copy. simulated/collective_time.h works out other counts of ranks.
struct CollectiveCosts {
  std::int64_t ranks = 0;                            // that it was measured on
  std::vector<std::int64_t> bytes;                   // ascending, at least two
  std::vector<std::int64_t> all_reduce_nanoseconds;  // as many
  std::vector<std::int64_t> reduce_scatter_nanoseconds;
  std::vector<std::int64_t> all_gather_nanoseconds;
  // So many times as long runs a kernel under a collective. A file may leave it out: on 4 H200 20
  // GEMMs of 8192^3 take 32.77 ms alone, 8 all-reduces of 256 MiB 10.03 ms, and both at once 35.53
  // ms: the GEMMs made up for 7.27 ms of theirs in 10.03.
  double kernel_stretch = 1.38;
  // Likewise a collective beside kernels; that experiment does not tell it.
  double collective_stretch = 1;
};

struct HostCosts {
  std::int64_t launch_nanoseconds = 0;
  std::int64_t gemm_nanoseconds = 0;  // launching a matrix product through cuBLASLt
  std::int64_t graph_launch_nanoseconds = 0;
  std::int64_t copy_call_nanoseconds = 0;  // issuing an asynchronous copy or memset
  std::int64_t event_nanoseconds = 0;      // recording an event, letting a stream wait for one
  std::int64_t wake_up_nanoseconds = 0;  // from the end of the work to the return of a wait for it
  std::int64_t malloc_nanoseconds = 0;   // cudaMalloc
  std::int64_t free_nanoseconds = 0;     // cudaFree, beside its wait
  std::int64_t malloc_async_nanoseconds =
      0;  // cudaMallocAsync and cudaFreeAsync, each, from memory that is kept
  std::int64_t pool_grow_nanoseconds =
      0;  // cudaMallocAsync when the pool grows by a chunk (async_pool.h), and giving that back
  std::int64_t register_nanoseconds_per_mib = 0;  // cudaHostRegister
  std::int64_t unregister_nanoseconds_per_mib = 0;
};

struct ComputeCosts {
  std::int64_t launch_latency_nanoseconds = 0;  // from the call to the start on an idle device
  std::int64_t kernel_floor_nanoseconds = 0;  // the shortest kernel, start to start in a full queue
  std::int64_t graph_node_floor_nanoseconds = 0;
  double memory_bytes_per_second = 0;
  double fp32_flops_per_second = 0;
  double tf32_flops_per_second = 0;
  double bf16_flops_per_second = 0;
  // Latencies of loads that wait for each other, and sizes of caches. A file may leave them out;
  // then they are typical ones: 30, 200 and 500 cycles ("CUDA Memory Management for Deep Learning",
  // GPU Memory Hierarchy) at 1.7 GHz. Caches are then as small as GPUs of data centres have had
  // them since 2020 (A100: 192 KiB, 40 MB).
  std::int64_t l1_latency_nanoseconds = 18;
  std::int64_t l2_latency_nanoseconds = 118;
  std::int64_t memory_latency_nanoseconds = 294;
  std::int64_t l1_bytes = 192LL * 1024;
  std::int64_t l2_bytes = 40'000'000;
};

// Relative standard deviations of step times, and what now and then happens besides.
struct NoiseCosts {
  double within_rounds = 0;            // from step to step
  double between_rounds = 0;           // of a whole run of steps
  double between_loads = 0;            // of a loaded step, for as long as it is loaded
  double between_slots = 0;            // of whatever is loaded into a slot
  double between_processes = 0;        // of everything that one process loads once
  double drift_per_second = 0;         // relative, of everything
  double spike_probability = 0;        // of a step
  std::int64_t spike_nanoseconds = 0;  // mean, exponential, on the host
  // A slowdown begins late, after so many steps of a load, as when a clock falls or a list grows:
  // every later step takes so much longer, relative, and so much more for each step after that.
  std::int64_t slower_after_steps = 0;
  double slower_by = 0;
  double slower_each_step = 0;
};

struct DeviceProfile {
  std::string name;    // "NVIDIA H200"
  std::string driver;  // of the machine it was measured on
  std::string runtime;
  std::string measured;  // date
  double compute_capability = 0;
  std::int64_t copy_engines = 0;
  std::string link;  // of each two of one host: DeviceIdentity's; empty: not known
  std::int64_t multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  HostCosts host;
  ComputeCosts compute;
  CopyCost pinned;
  CopyCost pageable;
  // The largest pageable copy that does not wait for its stream: the driver stages this much ahead.
  std::int64_t staging_bytes = 0;
  std::vector<CollectiveCosts> collectives;  // a count of ranks each; empty: none was measured
  NoiseCosts noise;
};

// Limits of the values of a key of the file; of a `list`, those of its numbers.
struct ProfileLimits {
  double least = 0;
  double most = 0;
};
enum class ProfileKind { text, whole, number, list };
struct ProfileField {
  std::string name;  // "host.launch_ns"
  ProfileKind kind = ProfileKind::text;
  ProfileLimits limits;
};
// In the order of the file.
std::vector<ProfileField> profile_fields();

// Throws RequestError with every key that is wrong, missing or beyond its limits.
DeviceProfile read_profile(const std::filesystem::path& file);

// The file that read_profile reads back to the same values.
std::string to_toml(const DeviceProfile&);

}  // namespace stepgate
