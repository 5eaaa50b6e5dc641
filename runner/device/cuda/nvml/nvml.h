// SPDX-License-Identifier: MIT
// The driver's management library (NVML), opened while the program runs: what goes on around one
// GPU. Needs no CUDA toolkit to build and no GPU to link; where the library is missing, readings
// say so and nothing fails.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace stepgate {

// How CUDA names a GPU; NVML numbers them in another order.
struct GpuName {
  std::string uuid;     // "GPU-" and 32 digits
  std::string pci_bus;  // "0000:17:00.0"; tried when the uuid is unknown
};

class Nvml {
 public:
  // Opens the library of that name, or what STEPGATE_NVML names. Does not throw: what fails is what
  // every reading says.
  explicit Nvml(const GpuName&, const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Every call of the library takes between some microseconds and some milliseconds. What this GPU
  // or driver does not tell is absent.
  EnvironmentReading read() const;

  // VBIOS, power limit, ECC, MIG, PCIe link, highest clock: those that are known, in this order.
  std::vector<DeviceKey> keys() const;

  // How this GPU is linked to that one; empty: not known, or it is the same. Does not throw.
  std::string link_to(const std::string& uuid) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace stepgate
