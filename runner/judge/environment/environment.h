// SPDX-License-Identifier: MIT
// Under which circumstances a run was measured: the keys that decide whether two runs may be
// compared. stored_sentence.h decides which runs are compared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "device/device.h"

namespace stepgate {

// All in words, as they are stored; empty where nobody knew.
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

struct EnvironmentKey {
  std::string_view name;   // in files
  std::string_view words;  // in sentences: "driver branch"
  std::string Environment::*value;
  // The part of the value that must be the same: all of it, or the branch "580" of "580.159.04". A
  // device is one of many of its model: see matching_runs.
  enum class Compare { whole, branch, device } compare;
  // Files of before it was asked for do not have it; it is written where somebody knew it.
  bool is_optional = false;
  // An upgrade changes it, and both versions can be had on one machine or one after the other.
  bool is_of_software = false;
};

std::span<const EnvironmentKey> environment_keys();

Environment environment_of(const DeviceIdentity&);

// The first key that forbids comparing, with both values. A value that is not known on one side
// forbids nothing, and neither does another device of the same model.
struct EnvironmentMismatch {
  std::string_view key;  // in words
  std::string stored;
  std::string now;
};
std::optional<EnvironmentMismatch> match_environment(const Environment& stored,
                                                     const Environment& now);

// "driver 580.65.06 -> 580.95.05": the software that differs, though it may forbid nothing. Empty
// where none does.
std::string upgrades_in_words(const Environment& stored, const Environment& now);

// "cuDNN 9.14.0", "cuDNN none": what a step depends on besides the device, as it is stored; empty
// where there is nothing.
std::string libraries_in_words(std::span<const DeviceKey>);

// "nvidia-h200" for an NVIDIA H200, "simulated/nvidia-h200" for a simulated one: the folder of its
// baselines.
std::string folder_of_baselines(const DeviceIdentity&);

}  // namespace stepgate
