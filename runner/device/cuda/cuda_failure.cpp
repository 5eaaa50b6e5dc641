// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "base/text/units.h"

namespace stepgate {
namespace {

using namespace cuda_codes;

constexpr std::string_view look_for_kernel =
    "a kernel did something that it must not, and not always the one at which it shows: run this "
    "scenario alone under `compute-sanitizer --target-processes application-only`, and look for an "
    "Xid in the log of the machine";
constexpr std::string_view look_at_hardware =
    "its hardware reports a fault that it could not mend: look at `nvidia-smi -q` and for an Xid "
    "in the log of the machine, and reset the GPU";
constexpr std::string_view look_for_gpu =
    "the GPU or its driver is gone: look at `nvidia-smi` and for an Xid in the log of the machine, "
    "and restart the machine if it stays away";
constexpr std::string_view look_at_mps = "the MPS server of this machine ended: start it again";

struct WayOut {
  int code;
  std::string_view words;
};
// Hints by error code. For other codes there is nothing to add to CUDA's text.
constexpr std::array ways_out{
    WayOut{memory_allocation, "let the other processes on the GPU end, `nvidia-smi` lists them"},
    WayOut{devices_unavailable,
           "another process has the GPU for itself, or its compute mode forbids this one: look at "
           "`nvidia-smi -q -d COMPUTE`"},
    WayOut{no_device, look_for_gpu},
    WayOut{ecc_uncorrectable, look_at_hardware},
    WayOut{nvlink_uncorrectable, look_at_hardware},
    WayOut{illegal_address, look_for_kernel},
    WayOut{launch_timeout,
           "a kernel took longer than the watchdog of the machine allows: take a GPU that draws no "
           "screen"},
    WayOut{assertion, look_for_kernel},
    WayOut{hardware_stack, look_for_kernel},
    WayOut{illegal_instruction, look_for_kernel},
    WayOut{misaligned_address, look_for_kernel},
    WayOut{invalid_address_space, look_for_kernel},
    WayOut{invalid_pc, look_for_kernel},
    WayOut{launch_failure, look_for_kernel},
    WayOut{system_not_ready,
           "a service that the GPU needs, such as the fabric manager, does not run: start it"},
    WayOut{mps_connection_failed, look_at_mps},
    WayOut{mps_client_terminated, look_at_mps},
    WayOut{unknown, look_for_gpu}};

// Smaller amounts may be memory that CUDA itself uses on every GPU.
constexpr std::int64_t least_told_bytes = gibibyte;
constexpr std::size_t most_processes_named = 3;

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / mebibyte);
}

std::string named(const ComputeProcess& process) {
  return fmt::format("process {} has {}", process.pid, mebibytes(*process.memory_bytes));
}

// Returns the holders of memory, the largest first. A list without this process comes from another
// PID namespace and is not used. Processes that hide their memory are left out.
std::vector<ComputeProcess> told_holders(const std::optional<ComputeProcesses>& processes) {
  if (!processes || !processes->self_is_listed) return {};
  std::vector<ComputeProcess> told = processes->others;
  std::erase_if(told, [](const ComputeProcess& process) { return !process.memory_bytes; });
  std::ranges::sort(told, std::greater<>(),
                    [](const ComputeProcess& process) { return *process.memory_bytes; });
  return told;
}

std::string module_in_words(const std::string& version) {
  return version.empty() ? "the NVIDIA driver" : "the NVIDIA driver " + version;
}

}  // namespace

std::string_view way_out_of(int code) {
  const auto found = std::ranges::find(ways_out, code, &WayOut::code);
  return found == ways_out.end() ? std::string_view() : found->words;
}

std::string lost_in_words(const std::string& noticed, const CudaFailure& failure) {
  std::string words = noticed;
  if (words.find(failure.name) == std::string::npos)
    words += fmt::format("; {}: {}", failure.name, failure.text);
  words += "; the device answers every call of this process with that error from now on";
  const std::string_view way_out = way_out_of(failure.code);
  return way_out.empty() ? words : fmt::format("{}; {}", words, way_out);
}

std::string cuda_version_in_words(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

NoGpu reason_of(const DriverFacts& facts) {
  const std::string driver = module_in_words(facts.kernel_module);
  const std::string supported = cuda_version_in_words(facts.driver_version);
  const std::string needed = cuda_version_in_words(facts.runtime_version);
  switch (facts.failure.code) {
    case insufficient_driver:
      if (facts.driver_version == 0) return {.reason = "there is no NVIDIA driver"};
      return {.reason = fmt::format("{} supports CUDA up to {}, and this build is of CUDA {}",
                                    driver, supported, needed),
              .is_fault = true,
              .way_out = fmt::format("update the driver, or build with the toolkit of CUDA {}",
                                     supported)};
    case system_driver_mismatch:
      return {.reason = fmt::format("{} in the kernel is not of the same version as its library, "
                                    "which supports CUDA {}; this build is of CUDA {}",
                                    driver, supported, needed),
              .is_fault = true,
              .way_out = "restart the machine, or this container, after the driver's update"};
    case compat_not_supported:
      return {.reason = fmt::format("this GPU does not take the library for forward compatibility "
                                    "(CUDA {}) beside {}; this build is of CUDA {}",
                                    supported, driver, needed),
              .is_fault = true,
              .way_out = "take its folder out of LD_LIBRARY_PATH, or update the driver"};
    case no_device:
    case stub_library:
      return {.reason = facts.failure.text};
    default:
      return {.reason = fmt::format("{}: {}", facts.failure.name, facts.failure.text),
              .is_fault = true,
              .way_out = std::string(way_out_of(facts.failure.code))};
  }
}

std::string held_by_others_in_words(const MemoryHolders& memory) {
  const std::vector<ComputeProcess> told = told_holders(memory.processes);
  std::int64_t bytes = 0;
  for (const ComputeProcess& process : told) bytes += *process.memory_bytes;
  if (bytes >= least_told_bytes) {
    std::string names;
    for (std::size_t index = 0; index < std::min(told.size(), most_processes_named); ++index)
      names += (index == 0 ? ": " : ", ") + named(told[index]);
    return fmt::format("; of {} other processes hold {}{}", mebibytes(memory.total_bytes),
                       mebibytes(bytes), names);
  }
  const std::int64_t rest = memory.total_bytes - memory.free_bytes - memory.own_bytes;
  if (rest < least_told_bytes) return "";
  return fmt::format(
      "; of {} this process keeps {} for its steps, and {} are in use besides, by "
      "other processes or the driver",
      mebibytes(memory.total_bytes), mebibytes(memory.own_bytes), mebibytes(rest));
}

}  // namespace stepgate
