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

// Upper limit of the time of a call, kernel or copy. Real ones are shorter, and sums of such times
// do not overflow.
inline constexpr std::int64_t longest_cost_nanoseconds = 3'600'000'000'000;

// Time of a copy by size: linear between the measured sizes, and at the rate `bytes_per_nanosecond`
// beyond the largest.
struct CopyCost {
  std::vector<std::int64_t> bytes;        // ascending, at least two
  std::vector<std::int64_t> nanoseconds;  // one for each size

  std::int64_t of(std::int64_t size) const;
  // Rate between the two largest sizes.
  double bytes_per_nanosecond() const;
};

// Time of a collective by the total bytes, from the arrival of its last rank; interpolated as for a
// copy. simulated/collective_time.h computes it for other numbers of ranks.
struct CollectiveCosts {
  std::int64_t ranks = 0;                            // the number of ranks it was measured on
  std::vector<std::int64_t> bytes;                   // ascending, at least two
  std::vector<std::int64_t> all_reduce_nanoseconds;  // one for each size
  std::vector<std::int64_t> reduce_scatter_nanoseconds;
  std::vector<std::int64_t> all_gather_nanoseconds;
  // Factor by which a kernel slows down while a collective runs. A file may leave it out. The
  // default is measured on 4 H200: 20 GEMMs of 8192^3 take 32.77 ms alone, 8 all-reduces of 256 MiB
  // take 10.03 ms, and both at once take 35.53 ms. So the GEMMs did 7.27 ms of their work during
  // the 10.03 ms of the collectives.
  double kernel_stretch = 1.38;
  // Factor by which a collective slows down while kernels run. A file may leave it out; the
  // experiment above does not determine it.
  double collective_stretch = 1;
};

struct HostCosts {
  // Processors that the threads of a process share. A file may leave it out.
  std::int64_t processors = 16;
  std::int64_t launch_nanoseconds = 0;
  std::int64_t gemm_nanoseconds = 0;  // launching a matrix product through cuBLASLt
  std::int64_t graph_launch_nanoseconds = 0;
  std::int64_t copy_call_nanoseconds = 0;  // issuing an asynchronous copy or memset
  std::int64_t event_nanoseconds = 0;      // recording an event, letting a stream wait for one
  std::int64_t wake_up_nanoseconds = 0;    // from the end of the work to the return of a host wait
  std::int64_t malloc_nanoseconds = 0;     // cudaMalloc
  std::int64_t free_nanoseconds = 0;       // cudaFree, without its wait
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
  // Latencies of dependent loads, and sizes of caches. A file may leave them out. Default latencies
  // are 30, 200 and 500 cycles ("CUDA Memory Management for Deep Learning", GPU Memory Hierarchy)
  // at 1.7 GHz. Default caches are as small as in any data-centre GPU since 2020 (A100: 192 KiB, 40
  // MB).
  std::int64_t l1_latency_nanoseconds = 18;
  std::int64_t l2_latency_nanoseconds = 118;
  std::int64_t memory_latency_nanoseconds = 294;
  std::int64_t l1_bytes = 192LL * 1024;
  std::int64_t l2_bytes = 40'000'000;
  // Clock of the multiprocessors. A file may leave it out.
  double sm_clock_hertz = 1.7e9;
};

// Relative standard deviations of step times, and disturbances that happen now and then.
struct NoiseCosts {
  double within_rounds = 0;            // from step to step
  double between_rounds = 0;           // of a whole run of steps
  double between_loads = 0;            // of a loaded step, constant while it is loaded
  double between_slots = 0;            // of a slot, whichever step is in it
  double between_processes = 0;        // of a variant, constant within a process
  double drift_per_second = 0;         // relative, of all times
  double spike_probability = 0;        // of a step
  std::int64_t spike_nanoseconds = 0;  // mean, exponential, on the host
  // A slowdown that begins after so many steps of a load, as when a clock falls or a list grows.
  // Every later step takes longer by the share `slower_by`, and by `slower_each_step` more for each
  // step after the first slow one.
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
  std::string link;  // between any two GPUs of a host (DeviceIdentity::link); empty: not known
  std::int64_t multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  HostCosts host;
  ComputeCosts compute;
  CopyCost pinned;
  CopyCost pageable;
  // The largest pageable host-to-device copy that does not wait for its stream, since the driver
  // stages this much ahead.
  std::int64_t staging_bytes = 0;
  std::vector<CollectiveCosts>
      collectives;  // one for each number of ranks; empty: none was measured
  NoiseCosts noise;
};

// Limits of the value of a key of the file; for a list, limits of each number in it.
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
// All fields, in the order of the file.
std::vector<ProfileField> profile_fields();

// Throws RequestError that names every key that is wrong, missing or beyond its limits.
DeviceProfile read_profile(const std::filesystem::path& file);

// Writes the text of a file that read_profile reads back to the same values.
std::string to_toml(const DeviceProfile&);

}  // namespace stepgate
