// SPDX-License-Identifier: MIT
// stepgate.toml: what holds in a repository where the command line leaves an option out.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "base/text/diagnostic.h"
#include "verbs/arguments.h"

namespace stepgate {

inline constexpr const char* settings_file = "stepgate.toml";
// The environment variable with the file that is read in the place of the one that is found; "none"
// is no file.
inline constexpr const char* settings_variable = "STEPGATE_SETTINGS";

// A value with the place where it stands.
struct RepositorySetting {
  std::string value;
  Place place;
};

struct RepositorySettings {
  std::optional<RepositorySetting> margin;
  std::optional<RepositorySetting> device;
  std::optional<RepositorySetting> baselines;  // a folder, as seen from the working folder
  std::optional<RepositorySetting> undecided;
};

// The settings of the working folder: its stepgate.toml, or that of the nearest folder above it, up
// to the root of its repository. Outside a repository only its own counts. Throws RequestError with
// all faults of the file.
RepositorySettings settings_here();

// Fills in what neither the command line nor the environment says of the parsed verb. A gate takes
// the settings from BASE's side, so that a change cannot loosen the gate that judges it: from the
// folder --base of a program, the --baselines of stored runs, the scenarios otherwise.
void apply_settings(const CLI::App&, Arguments&);

// "stepgate.toml:2", for people.
std::string source_in_words(const RepositorySetting&);

}  // namespace stepgate
