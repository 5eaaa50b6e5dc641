// SPDX-License-Identifier: MIT
// Messages that explain CUDA's errors to users, with hints. This code queries no GPU and needs no
// toolkit: its input is numbers and texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/environment.h"

namespace stepgate {

// Values of cudaError_t, which are the same since CUDA 10; check.cpp compares them with the
// toolkit's values.
namespace cuda_codes {
constexpr int memory_allocation = 2;
constexpr int stub_library = 34;
constexpr int insufficient_driver = 35;
constexpr int devices_unavailable = 46;
constexpr int no_device = 100;
constexpr int ecc_uncorrectable = 214;
constexpr int nvlink_uncorrectable = 220;
constexpr int illegal_address = 700;
constexpr int launch_timeout = 702;
constexpr int assertion = 710;
constexpr int hardware_stack = 714;
constexpr int illegal_instruction = 715;
constexpr int misaligned_address = 716;
constexpr int invalid_address_space = 717;
constexpr int invalid_pc = 718;
constexpr int launch_failure = 719;
constexpr int system_not_ready = 802;
constexpr int system_driver_mismatch = 803;
constexpr int compat_not_supported = 804;
constexpr int mps_connection_failed = 805;
constexpr int mps_client_terminated = 810;
constexpr int unknown = 999;
}  // namespace cuda_codes

// An error as CUDA reports it.
struct CudaFailure {
  int code = 0;
  std::string name;  // "cudaErrorLaunchFailure"
  std::string text;  // "unspecified launch failure"
};

// The hint for an error; empty if there is nothing to add to its text.
std::string_view way_out_of(int code);

// The message about a device with a permanent failure: where it was noticed, the failure unless it
// is named there, its consequence for the run, and a hint.
std::string lost_in_words(const std::string& noticed, const CudaFailure&);

// The reason why a GPU that should be available cannot be used.
struct NoGpu {
  std::string reason;     // in words
  bool is_fault = false;  // a GPU should be there: its driver fails, or it is hidden
  std::string way_out{};  // empty: the general hint applies
};

// Facts that driver and build report about themselves when CUDA does not start.
struct DriverFacts {
  CudaFailure failure;
  int driver_version = 0;   // of CUDA, 12040, that the driver supports; 0 where there is no driver
  int runtime_version = 0;  // of CUDA, 13000, in this build
  std::string kernel_module;  // "550.54.15"; empty where it does not tell
};
NoGpu reason_of(const DriverFacts&);

// Returns "13.0" for 13000.
std::string cuda_version_in_words(int version);

// The use of a device's memory, as far as one process can see it.
struct MemoryHolders {
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;
  std::int64_t own_bytes = 0;  // that this process keeps from step to step
  std::optional<ComputeProcesses> processes;
};

// Returns text like "; of 143771 MiB other processes hold 141000 MiB: process 4711 has 141000 MiB".
// Empty if other processes hold too little to matter.
std::string held_by_others_in_words(const MemoryHolders&);

}  // namespace stepgate
