// SPDX-License-Identifier: MIT
#include "device/cuda/calibrate/measure_profile.h"

#include <memory>

#include "device/cuda/calibrate/measure_costs.h"
#include "device/cuda/check.h"
#include "device/cuda/cuda_device.h"

namespace stepgate {

DeviceProfile measure_profile() {
  const std::unique_ptr<Device> device = make_cuda_device();
  const DeviceIdentity identity = device->identity();
  DeviceProfile profile;
  profile.name = identity.name;
  profile.driver = identity.driver;
  profile.runtime = identity.runtime;
  profile.compute_capability = identity.compute_capability;
  profile.copy_engines = identity.copy_engines;
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
        "count the multiprocessors");
  profile.multiprocessors = multiprocessors;
  profile.memory_bytes = identity.memory_bytes;
  const CostBench bench;
  profile.host = measure_host_costs(bench);
  const DeviceCosts costs = measure_device_costs(bench, profile.host);
  profile.compute = costs.compute;
  profile.host.wake_up_nanoseconds = costs.wake_up_nanoseconds;
  profile.pinned = measure_copy_costs(bench, MemoryKind::pinned, profile.host);
  profile.pageable = measure_copy_costs(bench, MemoryKind::pageable, profile.host);
  profile.staging_bytes = measure_staging_bytes(bench);
  // This run does not measure the noise. The values between loads and slots are differences of two
  // loads of one step on an H200; the others are guesses of the order that steps show there.
  profile.noise = {.within_rounds = 0.01,
                   .between_rounds = 0.001,
                   .between_loads = 0.002,
                   .between_slots = 0.005,
                   .between_processes = 0.0005,
                   .drift_per_second = 0,
                   .spike_probability = 0.002,
                   .spike_nanoseconds = 30000};
  return profile;
}

}  // namespace stepgate
