// SPDX-License-Identifier: MIT
#include "device/open_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/profile.h"
#include "device/reference/reference_device.h"
#include "device/simulated/simulated_device.h"
#include "support/diagnostic.h"
#ifdef STEPGATE_WITH_CUDA
#include "device/cuda/cuda_device.h"
#include "device/cuda/measure_profile.h"
#endif

namespace stepgate {
namespace {

constexpr std::string_view default_profile = "nvidia-h200";
constexpr std::string_view simulated_prefix = "simulated:";

std::vector<std::string> profile_names(const std::filesystem::path& baselines) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(baselines, missing)) {
    if (std::filesystem::exists(entry.path() / "device.toml"))
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<Device> open_simulated(std::string_view name, const DeviceChoice& choice) {
  const std::filesystem::path file = choice.baselines / name / "device.toml";
  if (!std::filesystem::exists(file)) {
    throw RequestError(
        fmt::format("there is no device profile '{}' in {}", name, choice.baselines.string()),
        fmt::format("profiles there: {}", fmt::join(profile_names(choice.baselines), ", ")));
  }
  return make_simulated_device(read_profile(file),
                               {.seed = choice.seed, .slowdowns = {}, .fails_at_step = {}});
}

// Why there is no GPU to measure on; empty when there is one.
std::string reason_against_cuda() {
#ifdef STEPGATE_WITH_CUDA
  return reason_against_local_gpu();
#else
  return "this build has no CUDA device";
#endif
}

std::unique_ptr<Device> open_cuda([[maybe_unused]] const DeviceChoice& choice) {
#ifdef STEPGATE_WITH_CUDA
  return make_cuda_device(choice.tracing ? Recording::on : Recording::off);
#else
  throw RequestError("this build has no CUDA device", "build with the preset 'cuda'");
#endif
}

}  // namespace

OpenedDevice open_device(const DeviceChoice& choice) {
  if (choice.spec.empty()) {
    const std::string reason = reason_against_cuda();
    if (reason.empty()) return {open_cuda(choice), ""};
    return {
        open_simulated(default_profile, choice),
        fmt::format("no GPU ({}): simulating {}, nothing is measured", reason, default_profile)};
  }
  if (choice.spec == "cuda") return {open_cuda(choice), ""};
  if (choice.spec == "reference") return {make_reference_device(choice.seed), ""};
  if (choice.spec == "simulated") return {open_simulated(default_profile, choice), ""};
  if (choice.spec.starts_with(simulated_prefix)) {
    return {open_simulated(std::string_view(choice.spec).substr(simulated_prefix.size()), choice),
            ""};
  }
  throw RequestError(fmt::format("there is no device '{}'", choice.spec),
                     "say cuda, simulated, simulated:<profile> or reference");
}

std::string resolved_spec(const DeviceChoice& choice) {
  if (!choice.spec.empty()) return choice.spec;
  return reason_against_cuda().empty() ? "cuda" : "simulated";
}

DeviceProfile measure_local_profile() {
#ifdef STEPGATE_WITH_CUDA
  return measure_profile();
#else
  throw RequestError("this build has no CUDA device", "build with the preset 'cuda'");
#endif
}

std::vector<DeviceRow> list_devices(const std::filesystem::path& baselines) {
  std::vector<DeviceRow> rows;
  const std::string reason = reason_against_cuda();
  rows.push_back(
      {"cuda", reason.empty() ? open_cuda({})->identity().name : reason, reason.empty()});
  for (const std::string& name : profile_names(baselines)) {
    const DeviceProfile profile = read_profile(baselines / name / "device.toml");
    rows.push_back({fmt::format("simulated:{}", name),
                    fmt::format("{}, as measured {} with driver {}", profile.name, profile.measured,
                                profile.driver),
                    true});
  }
  rows.push_back(
      {"reference", "host reference kernels in a random permitted order; numbers, no times", true});
  return rows;
}

}  // namespace stepgate
