// SPDX-License-Identifier: MIT
// The table of environment keys.
#include "judge/environment/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <regex>
#include <set>
#include <utility>
#include <vector>

namespace stepgate {
namespace {

// The part of the value that must be equal: all of it, or the branch "580" of "580.159.04". Values
// of `device` may differ: matching_runs decides about devices of one model.
enum class Compare { whole, branch, device };

struct EnvironmentKey {
  std::string_view words;  // in assertions: "driver branch"
  std::string Environment::*value;
  Compare compare;
  // Software can be upgraded, and one machine can have several versions at the same time.
  bool is_of_software = false;
};

constexpr std::array keys{
    EnvironmentKey{"device kind", &Environment::kind, Compare::whole},
    EnvironmentKey{"GPU", &Environment::gpu, Compare::whole},
    EnvironmentKey{"GPU's UUID", &Environment::uuid, Compare::device},
    EnvironmentKey{"driver branch", &Environment::driver, Compare::branch, true},
    EnvironmentKey{"CUDA runtime", &Environment::cuda_runtime, Compare::whole, true},
    EnvironmentKey{"compute capability", &Environment::compute_capability, Compare::whole},
    EnvironmentKey{"device memory in MiB", &Environment::memory_mib, Compare::whole},
    EnvironmentKey{"power limit", &Environment::power_limit, Compare::whole},
    EnvironmentKey{"PCIe link", &Environment::pcie, Compare::whole},
    EnvironmentKey{"CPU", &Environment::cpu, Compare::whole},
    EnvironmentKey{"ECC", &Environment::ecc, Compare::whole},
    EnvironmentKey{"MIG mode", &Environment::mig, Compare::whole},
    EnvironmentKey{"VBIOS", &Environment::vbios, Compare::whole},
    EnvironmentKey{"cuBLAS", &Environment::cublas, Compare::whole, true},
    EnvironmentKey{"highest SM clock", &Environment::highest_sm_clock, Compare::whole},
    EnvironmentKey{"link between GPUs", &Environment::link, Compare::whole}};

std::string compared_part(const std::string& value, Compare compare) {
  return compare == Compare::branch ? value.substr(0, value.find('.')) : value;
}

// Replaces every character that is not printable ASCII with '?'.
std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

// Returns the value of a key; empty where the device lacks it.
std::string value_of(const DeviceIdentity& device, std::string_view name) {
  const auto found = std::ranges::find(device.keys, name, &DeviceKey::name);
  return found == device.keys.end() ? std::string() : printable(found->value);
}

// Describes the links between the GPUs; empty where one of them is unknown.
std::string links_in_words(const DeviceIdentity& device) {
  std::set<std::string> links;
  for (std::size_t rank = 0; rank < device.ranks.size(); ++rank) {
    for (std::size_t other = rank + 1; other < device.ranks.size(); ++other)
      links.insert(link_between(device, rank, other));
  }
  return links.contains("") ? "" : printable(fmt::format("{}", fmt::join(links, " and ")));
}

// Converts to lower case and replaces each run of other characters than letters and digits with one
// hyphen.
std::string as_folder(std::string_view name) {
  std::string folder;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      folder += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!folder.empty() && folder.back() != '-') {
      folder += '-';
    }
  }
  while (folder.ends_with('-')) folder.pop_back();
  return folder.empty() ? "unnamed" : folder;
}

}  // namespace

Environment environment_of(const DeviceIdentity& device) {
  constexpr std::int64_t mebibyte = 1024 * 1024;
  return {.kind = std::string(name_of(device.kind)),
          .gpu = printable(device.name),
          .uuid = device.uuid,
          .driver = device.driver,
          .cuda_runtime = device.runtime,
          .compute_capability = fmt::format("{:.1f}", device.compute_capability),
          .memory_mib = fmt::format("{}", device.memory_bytes / mebibyte),
          .power_limit = device.power_limit,
          .pcie = device.pcie,
          .cpu = printable(device.cpu),
          .ecc = value_of(device, "ecc"),
          .mig = value_of(device, "mig"),
          .vbios = value_of(device, "vbios"),
          .cublas = value_of(device, "cublas"),
          .highest_sm_clock = value_of(device, "highest sm clock"),
          .link = links_in_words(device)};
}

std::optional<EnvironmentMismatch> match_environment(const Environment& stored,
                                                     const Environment& now) {
  for (const EnvironmentKey& key : keys) {
    if (key.compare == Compare::device) continue;
    const std::string then = compared_part(stored.*key.value, key.compare);
    const std::string here = compared_part(now.*key.value, key.compare);
    if (then == here || then.empty() || here.empty()) continue;
    return EnvironmentMismatch{.key = key.words, .stored = then, .now = here};
  }
  return std::nullopt;
}

std::string upgrades_in_words(const Environment& stored, const Environment& now) {
  std::vector<std::string> words;
  for (const EnvironmentKey& key : keys) {
    const std::string& then = stored.*key.value;
    const std::string& here = now.*key.value;
    if (key.is_of_software && then != here && !then.empty() && !here.empty())
      words.push_back(fmt::format(
          "{} {} -> {}", key.compare == Compare::branch ? "driver" : key.words, then, here));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string libraries_in_words(std::span<const DeviceKey> libraries) {
  std::vector<std::string> words;
  for (const DeviceKey& library : libraries) {
    std::string one = fmt::format("{} {}", library.name, library.value);
    if (std::ranges::find(words, one) == words.end()) words.push_back(std::move(one));
  }
  return printable(fmt::format("{}", fmt::join(words, ", ")));
}

StoredLibraries stored_libraries(std::string_view in_words) {
  // A file's name may have a comma, so that a kernel ends behind its digest.
  static const std::regex kernel(
      fmt::format("(^|, ){}(.*? [0-9a-f]{{16}})(?=, |$)", key_of_kernel));
  constexpr int described = 2;
  const std::string text(in_words);
  StoredLibraries all;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), kernel);
       found != std::sregex_iterator(); ++found)
    all.kernels.push_back((*found)[described]);
  all.others = std::regex_replace(text, kernel, "");
  if (all.others.starts_with(", ")) all.others.erase(0, 2);
  return all;
}

std::string other_builds_in_words(std::string_view stored, std::string_view now) {
  std::vector<std::string> then = stored_libraries(stored).kernels;
  std::vector<std::string> here = stored_libraries(now).kernels;
  if (then.empty() || then == here) return "";
  const std::vector<std::string> all = then;
  std::erase_if(then, [&](const auto& one) { return std::ranges::find(here, one) != here.end(); });
  std::erase_if(here, [&](const auto& one) { return std::ranges::find(all, one) != all.end(); });
  std::vector<std::string> words;
  if (!then.empty()) words.push_back(fmt::format("{} then", fmt::join(then, ", ")));
  if (!here.empty()) words.push_back(fmt::format("{} now", fmt::join(here, ", ")));
  return fmt::format("{}", fmt::join(words, "; "));
}

std::string folder_of_baselines(const DeviceIdentity& device) {
  const std::string folder = as_folder(device.name);
  return device.kind == DeviceKind::cuda ? folder
                                         : fmt::format("{}/{}", name_of(device.kind), folder);
}

}  // namespace stepgate
