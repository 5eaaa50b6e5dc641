// SPDX-License-Identifier: MIT
// To add a run, locks the file, reads it again and writes it whole.
#include "ledger/baseline/baseline_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "base/files/folder_lock.h"
#include "base/files/read_file.h"
#include "base/files/write_file.h"
#include "base/text/diagnostic.h"
#include "base/toml/toml_text.h"
#include "ledger/baseline/baseline_record.h"

namespace stepgate {
namespace {

// Digest of the measured values, without their provenance. A simulated device repeats them exactly
// with the same seed.
std::uint64_t measured_in(StoredRun run) {
  run.provenance = {};
  return digest_of(run);
}

std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> folders = read_folder(folder);
  std::error_code unreadable;
  std::erase_if(folders, [&](const std::filesystem::path& path) {
    return !std::filesystem::is_directory(path, unreadable);
  });
  return folders;
}

[[noreturn]] void refuse(const std::filesystem::path& path, std::string fact, std::string way_out) {
  throw RequestError(
      Diagnostic{Place{path.generic_string(), 0, 0}, std::move(fact), std::move(way_out)});
}

}  // namespace

std::filesystem::path baseline_path(const std::filesystem::path& baselines,
                                    const DeviceIdentity& device, const std::string& scenario) {
  return baselines / folder_of_baselines(device) / (scenario + ".toml");
}

std::vector<std::filesystem::path> folders_of_devices(const std::filesystem::path& baselines) {
  std::vector<std::filesystem::path> folders = folders_in(baselines);
  std::error_code unreadable;
  if (std::filesystem::is_directory(baselines / "simulated", unreadable))
    std::ranges::move(folders_in(baselines / "simulated"), std::back_inserter(folders));
  return folders;
}

std::optional<Baseline> read_baseline_if_any(const std::filesystem::path& path,
                                             const std::string& scenario, std::string_view kind) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  return read_baseline(path, scenario, kind);
}

Baseline append_run(const std::filesystem::path& path, const std::string& scenario,
                    const StoredRun& run) {
  const FolderLock lock(path.parent_path());
  Baseline baseline =
      read_baseline_if_any(path, scenario).value_or(Baseline{path.generic_string(), scenario, {}});
  const bool twice =
      std::any_of(baseline.runs.begin(), baseline.runs.end(),
                  [&](const StoredRun& stored) { return measured_in(stored) == measured_in(run); });
  if (twice) {
    refuse(path,
           fmt::format("this very run, of seed {}, is stored already",
                       hexadecimal(run.provenance.seed)),
           "leave out --seed: only independent runs tell how runs differ");
  }
  baseline.runs.push_back(run);
  const std::string text = baseline_text(baseline);
  if (text.size() > largest_text_file_bytes) {
    refuse(path, fmt::format("would grow beyond 1 MiB with its {} runs", baseline.runs.size()),
           "take the oldest [[run]]s out");
  }
  write_file(path, text);
  return baseline;
}

}  // namespace stepgate
