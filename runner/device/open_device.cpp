// SPDX-License-Identifier: MIT
#include "device/open_device.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "base/text/diagnostic.h"
#include "device/cuda/gpu_index.h"
#include "device/cuda/mig_slice.h"
#include "device/profile.h"
#include "device/reference/reference_device.h"
#include "device/simulated/simulated_device.h"
#ifdef STEPGATE_WITH_CUDA
#include <cuda_runtime_api.h>

#include "device/cuda/calibrate/measure_profile.h"
#include "device/cuda/cuda_device.h"
#endif

namespace stepgate {
namespace {

constexpr std::string_view default_profile = "nvidia-h200";
constexpr std::string_view simulated_prefix = "simulated:";

// The file of every profile that can be named; of two with one name, the one that is found first.
std::map<std::string, std::filesystem::path, std::less<>> profile_files(
    const Baselines& baselines) {
  std::map<std::string, std::filesystem::path, std::less<>> files;
  for (const std::filesystem::path& folder : baselines.profile_folders()) {
    if (!std::filesystem::is_directory(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::filesystem::path file = entry.path() / "device.toml";
      if (std::filesystem::exists(file)) files.emplace(entry.path().filename().string(), file);
    }
  }
  return files;
}

DeviceProfile profile_named(std::string_view name, const DeviceChoice& choice) {
  const auto files = profile_files(choice.baselines);
  if (const auto file = files.find(name); file != files.end()) return read_profile(file->second);
  std::vector<std::string> folders;
  for (const std::filesystem::path& folder : choice.baselines.profile_folders())
    folders.push_back(folder.string());
  std::vector<std::string> others;
  for (const auto& [other, file] : files) others.push_back(other);
  throw RequestError(
      fmt::format("there is no device profile '{}' in {}", name, fmt::join(folders, " or ")),
      others.empty() ? "an installed stepgate brings some; else name a folder that has them: "
                       "--baselines DIR, or STEPGATE_BASELINES"
                     : fmt::format("profiles there: {}", fmt::join(others, ", ")));
}

// Name of the profile in the spec of a simulated device; nullopt for another device.
std::optional<std::string_view> profile_in(std::string_view spec) {
  if (spec == "simulated") return default_profile;
  if (!spec.starts_with(simulated_prefix)) return std::nullopt;
  return spec.substr(simulated_prefix.size());
}

std::unique_ptr<Device> open_simulated(std::string_view name, const DeviceChoice& choice) {
  return make_simulated_device(profile_named(name, choice),
                               {.seed = choice.seed, .slowdowns = {}, .fails_at_step = {}});
}

constexpr const char* hides_gpus = "CUDA_VISIBLE_DEVICES";

struct NoCuda {
  std::string reason;     // in words
  bool is_fault = false;  // there should be a GPU: its driver fails, or it is hidden
  std::string way_out{"run where there is a GPU, or say --device simulated"};
};

// The reason why there is no GPU of that index to measure on; nullopt if there is one.
std::optional<NoCuda> reason_against_cuda([[maybe_unused]] int index = 0) {
  const char* visible = std::getenv(hides_gpus);
  const std::string unhide = fmt::format("unset {}, or say --device simulated", hides_gpus);
  if (visible != nullptr && std::string_view(visible).empty()) {
    return NoCuda{.reason = fmt::format("{} is empty, which hides every GPU", hides_gpus),
                  .is_fault = true,
                  .way_out = unhide};
  }
#ifdef STEPGATE_WITH_CUDA
  const auto none = reason_against_local_gpu(index);
  if (!none) return std::nullopt;
  // A driver that fails does so with every visible GPU.
  if (!none->way_out.empty()) {
    return NoCuda{.reason = none->reason,
                  .is_fault = none->is_fault,
                  .way_out = none->way_out + ", or say --device simulated"};
  }
  if (visible != nullptr) {
    return NoCuda{.reason = fmt::format("{}, with {}={}", none->reason, hides_gpus, visible),
                  .is_fault = true,
                  .way_out = unhide};
  }
  return NoCuda{.reason = none->reason, .is_fault = none->is_fault};
#else
  return NoCuda{.reason = "this build has no CUDA device",
                .way_out = "build with the preset 'cuda', or say --device simulated"};
#endif
}

DeviceError no_cuda(const NoCuda& none) {
  return DeviceError(none.reason + "; " + none.way_out);
}

// CI systems set CI to a true value; "false" and "0" mean no.
bool is_in_ci() {
  const char* set = std::getenv("CI");
  const std::string_view value = set == nullptr ? "" : set;
  return !value.empty() && value != "false" && value != "0";
}

// The reason for a simulated stand-in: no device was named and there is no GPU. Otherwise nullopt.
std::optional<NoCuda> reason_for_stand_in(const DeviceChoice& choice) {
  return choice.spec.empty() ? reason_against_cuda() : std::nullopt;
}

std::unique_ptr<Device> open_cuda([[maybe_unused]] const DeviceChoice& choice,
                                  [[maybe_unused]] int index = 0) {
#ifdef STEPGATE_WITH_CUDA
  return make_cuda_device(
      choice.tracing ? Recording::on : Recording::off, index,
      choice.opens_libraries ? KernelLibraries::opened : KernelLibraries::refused);
#else
  throw no_cuda(*reason_against_cuda());
#endif
}

// One row for each GPU, or one row that says why there is none.
std::vector<DeviceRow> list_gpus() {
  if (const auto none = reason_against_cuda()) return {{spec_of_gpu(0), none->reason, false}};
  std::vector<DeviceRow> rows;
#ifdef STEPGATE_WITH_CUDA
  for (int index = 0; index < visible_gpus(); ++index) {
    try {
      const std::string name = open_cuda({}, index)->identity().name;
      rows.push_back({spec_of_gpu(index), gpu_in_words(name), true});
    } catch (const DeviceError& error) {
      if (index == 0) throw;  // the default device
      rows.push_back({spec_of_gpu(index), error.what(), false});
    }
  }
#endif
  return rows;
}

}  // namespace

void check_device(const DeviceChoice& choice) {
  if (const auto index = gpu_index_in(choice.spec)) {
    if (const auto none = reason_against_cuda(*index)) throw no_cuda(*none);
  }
  const auto none = reason_for_stand_in(choice);
  if (!none) return;
  if (none->is_fault) throw no_cuda(*none);
  if (!is_in_ci()) return;
  throw NotGatedError(
      fmt::format("there is no GPU ({}), and where CI is set nothing is simulated unasked; {}",
                  none->reason, none->way_out));
}

void refuse_stand_in(const DeviceChoice& choice) {
  check_device(choice);
  const auto none = reason_for_stand_in(choice);
  if (!none) return;
  throw NotGatedError(
      fmt::format("there is no GPU ({}), and nothing simulated is stored unasked; {}", none->reason,
                  none->way_out));
}

OpenedDevice open_device(const DeviceChoice& choice) {
  if (choice.spec.empty()) {
    const auto none = reason_against_cuda();
    if (!none) return {.device = open_cuda(choice)};
    return {.device = open_simulated(default_profile, choice),
            .note = fmt::format("no GPU ({}): simulating {}, nothing is measured", none->reason,
                                default_profile),
            .stand_in = true};
  }
  if (const auto index = gpu_index_in(choice.spec)) return {.device = open_cuda(choice, *index)};
  if (choice.spec == "reference") return {.device = make_reference_device(choice.seed)};
  if (const auto profile = profile_in(choice.spec))
    return {.device = open_simulated(*profile, choice)};
  throw RequestError(fmt::format("there is no device '{}'", choice.spec),
                     "say cuda, cuda:<index>, simulated, simulated:<profile> or reference");
}

std::string resolved_spec(const DeviceChoice& choice) {
  if (!choice.spec.empty()) return choice.spec;
  return reason_against_cuda() ? "simulated" : "cuda";
}

int gpu_count() {
#ifdef STEPGATE_WITH_CUDA
  return visible_gpus();
#else
  return 0;
#endif
}

DeviceProfile measure_profile_of(const DeviceChoice& choice) {
  if (const auto profile = profile_in(choice.spec)) return profile_named(*profile, choice);
  if (!choice.spec.empty() && choice.spec != "cuda")
    throw RequestError(fmt::format("nothing measures the profile of '{}'", choice.spec),
                       "say cuda or simulated:<profile>");
#ifdef STEPGATE_WITH_CUDA
  return measure_profile();
#else
  throw no_cuda(*reason_against_cuda());
#endif
}

std::vector<std::string> simulated_specs(const Baselines& baselines) {
  std::vector<std::string> specs;
  for (const auto& [name, file] : profile_files(baselines))
    specs.push_back(std::string(simulated_prefix) + name);
  return specs;
}

std::vector<DeviceRow> list_devices(const Baselines& baselines) {
  std::vector<DeviceRow> rows = list_gpus();
  for (const auto& [name, file] : profile_files(baselines)) {
    const DeviceProfile profile = read_profile(file);
    rows.push_back({fmt::format("{}{}", simulated_prefix, name),
                    fmt::format("{}, as measured {} with driver {}, from {}", profile.name,
                                profile.measured, profile.driver, file.string()),
                    true});
  }
  rows.push_back(
      {"reference", "host reference kernels in a random permitted order; numbers, no times", true});
  return rows;
}

}  // namespace stepgate
