// SPDX-License-Identifier: MIT
// The environment of a run: the keys that decide whether two runs may be compared.
// stored_assertion.h decides which runs are compared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/record/fields.h"
#include "device/device.h"

namespace stepgate {

// All values are text in their stored form; empty if unknown.
struct Environment {
  std::string kind;  // "cuda"; times of different kinds of devices are never compared
  std::string gpu;
  std::string uuid;
  std::string driver;
  std::string cuda_runtime;
  std::string compute_capability;
  std::string memory_mib;
  std::string power_limit;
  std::string pcie;
  std::string cpu;
  std::string ecc = {};  // "on"
  std::string mig = {};  // "off"
  std::string vbios = {};
  std::string cublas = {};            // "13.0.2"; every GEMM's
  std::string highest_sm_clock = {};  // "1980 MHz"
  std::string link = {};              // of each two ranks' GPUs: "NVLink", "NVLink and PCIe"
  bool operator==(const Environment&) const = default;
};

// Older files lack the last fields.
template <>
inline constexpr auto fields_of<Environment> =
    fields<&Environment::kind, &Environment::gpu, &Environment::uuid, &Environment::driver,
           &Environment::cuda_runtime, &Environment::compute_capability, &Environment::memory_mib,
           &Environment::power_limit, &Environment::pcie, &Environment::cpu,
           described<&Environment::ecc, only_if_any>, described<&Environment::mig, only_if_any>,
           described<&Environment::vbios, only_if_any>,
           described<&Environment::cublas, only_if_any>,
           described<&Environment::highest_sm_clock, only_if_any>,
           described<&Environment::link, only_if_any>>;

Environment environment_of(const DeviceIdentity&);

// The first key that forbids a comparison, with both values. A value that is unknown on one side
// forbids nothing, and neither does another device of the same model.
struct EnvironmentMismatch {
  std::string_view key;  // name of the key in words
  std::string stored;
  std::string now;
};
std::optional<EnvironmentMismatch> match_environment(const Environment& stored,
                                                     const Environment& now);

// "driver 580.65.06 -> 580.95.05": the software that differs, even where it forbids no comparison.
// Empty where none differs.
std::string upgrades_in_words(const Environment& stored, const Environment& now);

// "cuDNN 9.14.0", "cuDNN none": the libraries that steps depend on, each once, in their stored
// form; empty where there are none. Variants may have builds of their own of a kernel.
std::string libraries_in_words(std::span<const DeviceKey>);

// The keys of a stored form by what they mean for a comparison with stored runs: the user's kernels
// are its subject and may be other builds, and the other libraries must be the same.
struct StoredLibraries {
  std::vector<std::string> kernels;  // "layer_norm libmine.so 1f0a33c2e0d94b55"
  std::string others;                // "cuDNN 9.14.0"
};
StoredLibraries stored_libraries(std::string_view in_words);

// "layer_norm libmine.so 1f0a33c2e0d94b55 then; layer_norm libmine.so 2b7c9d0011aa22bb now": the
// kernels that are other builds. Empty where none is.
std::string other_builds_in_words(std::string_view stored, std::string_view now);

// The folder for a device's baselines: "nvidia-h200" for an NVIDIA H200, "simulated/nvidia-h200"
// for a simulated one.
std::string folder_of_baselines(const DeviceIdentity&);

}  // namespace stepgate
