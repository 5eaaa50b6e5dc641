// SPDX-License-Identifier: MIT
#include "verbs/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/toml/toml.h"
#include "base/toml/toml_keys.h"
#include "device/baselines.h"
#include "device/cuda/gpu_index.h"
#include "report/exit_code.h"
#include "verbs/compare/gate_request.h"

namespace stepgate {
namespace {

using Path = std::filesystem::path;

constexpr std::string_view way_out = "docs/ci.md has an example";

Path folder_of(const Path& place) {
  std::error_code missing;
  const Path whole = std::filesystem::weakly_canonical(std::filesystem::absolute(place), missing);
  return std::filesystem::is_directory(whole, missing) ? whole : whole.parent_path();
}

bool is_there(const Path& place) {
  std::error_code missing;
  return std::filesystem::exists(std::filesystem::symlink_status(place, missing));
}

// The root of the repository; the folder itself where there is none.
Path root_of(const Path& folder) {
  for (Path at = folder; at != at.parent_path(); at = at.parent_path()) {
    if (is_there(at / ".git")) return at;
  }
  return folder;
}

std::optional<Path> file_for(const Path& begin) {
  const char* named = std::getenv(settings_variable);
  if (named != nullptr && *named != 0)
    return std::string_view(named) == "none" ? std::nullopt : std::optional<Path>(named);
  const Path first = folder_of(begin);
  const Path root = root_of(first);
  for (Path at = first;; at = at.parent_path()) {
    if (is_there(at / settings_file)) return at / settings_file;
    if (at == root) return std::nullopt;
  }
}

// A link would show, in complaints about its text, a file outside of the repository.
void refuse_link(const Path& file, const std::string& name) {
  std::error_code missing;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(file, missing))) return;
  throw RequestError(
      {{name, 0, 0}, "is a link, and settings are a file", "put the file itself there"});
}

std::optional<RepositorySetting> setting(TomlKeys& keys, std::string_view key) {
  const TomlEntry* entry = keys.optional(key);
  if (entry == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string>(&entry->value.content);
  if (text != nullptr) return RepositorySetting{*text, entry->value.place};
  keys.wrong_type(*entry, "a string");
  return std::nullopt;
}

void check_margin(const RepositorySetting& margin, TomlKeys::Faults& faults) {
  if (fraction_of_margin(margin.value)) return;
  faults.push_back({margin.place,
                    fmt::format("'margin' must be from 0.01% to 100%, but is '{}'", margin.value),
                    hint_for_margin(margin.value)});
}

// A change must not turn a measurement into a simulation, which passes everywhere.
void check_device(const RepositorySetting& device, TomlKeys::Faults& faults) {
  if (gpu_index_in(device.value)) return;
  faults.push_back(
      {device.place,
       fmt::format("'device' must be a GPU, \"cuda\" or \"cuda:1\", but is '{}'", device.value),
       "ask for any other with --device"});
}

void check_undecided(const RepositorySetting& undecided, TomlKeys::Faults& faults) {
  const auto policies = undecided_policies();
  if (policies.contains(undecided.value)) return;
  faults.push_back(
      {undecided.place,
       fmt::format("'undecided' must be skip, fail or pass, but is '{}'", undecided.value),
       "write one of these"});
}

// Stored runs are written there as well: not into a folder that a commit names on the machine.
void check_baselines(RepositorySetting& baselines, const Path& file, TomlKeys::Faults& faults) {
  const Path folder = Path(baselines.value).lexically_normal();
  if (folder.empty() || folder.is_absolute() || *folder.begin() == "..") {
    faults.push_back(
        {baselines.place,
         fmt::format("'baselines' must be a folder below that of the file, but is '{}'",
                     baselines.value),
         "name any other with --baselines"});
    return;
  }
  baselines.value = (file.parent_path() / folder).string();
}

RepositorySettings read_settings(const Path& file) {
  const Path shown =
      file.is_absolute() ? file.lexically_proximate(std::filesystem::current_path()) : file;
  refuse_link(file, shown.string());
  const TomlTable table = read_toml(shown, "a file of settings");
  TomlKeys::Faults faults;
  TomlKeys keys(table, {shown.string(), 0, 0}, "a file of settings", faults, way_out);
  RepositorySettings settings{.margin = setting(keys, "margin"),
                              .device = setting(keys, "device"),
                              .baselines = setting(keys, "baselines"),
                              .undecided = setting(keys, "undecided")};
  keys.refuse_the_rest();
  if (settings.margin) check_margin(*settings.margin, faults);
  if (settings.device) check_device(*settings.device, faults);
  if (settings.undecided) check_undecided(*settings.undecided, faults);
  if (settings.baselines) check_baselines(*settings.baselines, shown, faults);
  if (!faults.empty()) throw RequestError(std::move(faults));
  return settings;
}

RepositorySettings settings_from(const Path& begin) {
  const auto file = file_for(begin);
  return file ? read_settings(*file) : RepositorySettings{};
}

bool names_baselines(const CLI::App& app) {
  const char* variable = std::getenv(baselines_variable);
  return app.get_option("--baselines")->count() > 0 || (variable != nullptr && *variable != 0);
}

// Where the search begins.
Path side_that_judges(const std::string& verb, const CLI::App& app, const Arguments& arguments) {
  const GateArguments& gate = arguments.gate;
  if (verb != "gate") return ".";
  if (gate.of_program()) return gate.base.empty() ? "." : gate.base;
  if (gate.stored && names_baselines(app)) return arguments.device.baselines.users;
  return arguments.files.empty() ? Path(default_scenarios) : arguments.files.front();
}

}  // namespace

RepositorySettings settings_here() {
  return settings_from(".");
}

void apply_settings(const CLI::App& app, Arguments& arguments) {
  const CLI::App& verb = *app.get_subcommands().front();
  const std::string& name = verb.get_name();
  // These are told everything by who starts them.
  for (const char* other : {"serve", "worker", "describe"}) {
    if (name == other) return;
  }
  if (arguments.gate.of_commands()) return;
  const RepositorySettings settings = settings_from(side_that_judges(name, app, arguments));
  const auto is_open = [&](const char* option) {
    const CLI::Option* found = verb.get_option_no_throw(option);
    return found != nullptr && !found->get_group().empty() && found->count() == 0;
  };
  if (settings.baselines && !names_baselines(app))
    arguments.device.baselines.users = settings.baselines->value;
  if (settings.device && is_open("--device") && !arguments.gate.of_program())
    arguments.device.spec = settings.device->value;
  if (settings.undecided && is_open("--undecided"))
    arguments.undecided = undecided_policies().at(settings.undecided->value);
  if (settings.margin && is_open("--margin")) {
    arguments.gate.margin = settings.margin->value;
    arguments.gate.margin_source = source_in_words(*settings.margin);
  }
}

std::string source_in_words(const RepositorySetting& setting) {
  return fmt::format("{}:{}", setting.place.file, setting.place.line);
}

}  // namespace stepgate
