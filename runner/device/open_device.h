// SPDX-License-Identifier: MIT
// The devices that `--device` may name. Only main opens them; all other code uses a Device.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/baselines.h"
#include "device/device.h"
#include "device/profile.h"

namespace stepgate {

struct DeviceChoice {
  std::string spec;  // "cuda", "cuda:<index>", "simulated", "simulated:<profile>", "reference";
                     // empty: the best there is
  Baselines baselines;
  std::uint64_t seed = 0;  // of simulated noise and of the reference device's order
  // The steps of the device will be traced. A GPU must know this before CUDA starts, and is slower
  // from then on.
  bool tracing = false;
  // Steps may launch kernels of libraries. Only a process that may crash opens one.
  bool opens_libraries = false;
};

struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::string note{};  // why this one was chosen by default; else empty
  // A simulated device was chosen because there is no GPU: it shows what stepgate does, and gates
  // nothing.
  bool stand_in = false;
};

// Nothing can be gated here: exit 4. The message says what is missing and the way out.
class NotGatedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Called by a verb before it spends time on measuring. Throws DeviceError if the requested GPU is
// missing. Without --device, it throws DeviceError for a GPU that fails or is hidden: such a
// machine must not pass for one without a GPU. If there is no GPU and CI is set, it throws
// NotGatedError, since in CI a simulation would be taken for a measurement.
void check_device(const DeviceChoice&);

// Called by a verb whose result is stored, so that it never comes from a simulated stand-in. Throws
// as check_device does, and throws NotGatedError also outside CI.
void refuse_stand_in(const DeviceChoice&);

// Throws RequestError for a spec or profile that does not exist, DeviceError when a GPU was
// requested and fails.
OpenedDevice open_device(const DeviceChoice&);

// The spec; for an empty spec, "cuda" where a GPU can be used and "simulated" otherwise.
std::string resolved_spec(const DeviceChoice&);

// The number of GPUs for processes that take one each.
int gpu_count();

struct DeviceRow {
  std::string spec;
  std::string description;  // its name, or why it is not available
  bool available = false;
};

// The specs of all available simulated devices, "simulated:<profile>" each, in order.
std::vector<std::string> simulated_specs(const Baselines&);

// Every device that could be opened here, the local GPUs first.
std::vector<DeviceRow> list_devices(const Baselines&);

// Measures the profile of the first local GPU, except for costs of several GPUs together. For a
// simulated device returns its own profile. Throws RequestError for a device without a profile,
// DeviceError when there is no GPU.
DeviceProfile measure_profile_of(const DeviceChoice&);

}  // namespace stepgate
