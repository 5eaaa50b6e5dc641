// SPDX-License-Identifier: MIT
// The driver's management library (NVML), opened at run time: the environment of one GPU. The build
// needs no CUDA toolkit, and linking no GPU. Where the library is missing, readings say so and
// nothing fails.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace stepgate {

// Names of a GPU that both CUDA and NVML know; their indices differ.
struct GpuName {
  std::string uuid;     // "GPU-" and 32 digits
  std::string pci_bus;  // "0000:17:00.0"; tried when the uuid is unknown
};

class Nvml {
 public:
  // Loads that library, or the one that STEPGATE_NVML names. Does not throw: errors are part of
  // every reading.
  explicit Nvml(const GpuName&, const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Reads the environment; each call of the library takes some microseconds to some milliseconds.
  // Values that GPU or driver do not report are absent.
  EnvironmentReading read() const;

  // Known values, in this order: VBIOS, power limit, ECC, MIG, PCIe link, highest clock.
  std::vector<DeviceKey> keys() const;

  // The link between this GPU and that one; empty if unknown or if both are the same. Does not
  // throw.
  std::string link_to(const std::string& uuid) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace stepgate
