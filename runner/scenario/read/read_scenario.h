// SPDX-License-Identifier: MIT
// Scenario files to Scenario: bases, variants, assertions, and every fault at once.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/read_file.h"
#include "scenario/knobs/fields.h"
#include "scenario/scenario.h"

namespace stepgate {

// The key by which a variant copies another one; it is no knob.
inline constexpr std::string_view like_key = "like";

// A changed knob of a variant, to test whether the assertions notice the change.
struct VariantChange {
  std::string variant;
  std::string knob;                 // a knob, or `like_key` without a value
  std::optional<FieldValue> value;  // nullopt: removes the setting
};

// Returns the text of a file that `extends` names. The path is already relative to the working
// directory.
using BaseReader = std::function<TextOrProblem(const std::string& file)>;

// Throws RequestError where a scenario may not have this path, which appears in names of baselines
// and tests and in log lines.
void require_a_path_to_show(const std::string& file);

// A BaseReader for scenarios without base files.
TextOrProblem no_base(const std::string& file);

// Parses a scenario. `file` is its name in places, and `extends` is relative to it. Later settings
// override earlier ones: defaults of fields, base files, the file itself, `like`, the variant,
// `overrides`. `overrides` are texts such as "batch.size=128", which override every variant, even
// one that sets the same knob. `change` is applied to the variant's own table. Throws RequestError
// with every error. A file with [sweep] gives the scenario of the value that `overrides` name for
// the knob, or else of the first one.
Scenario parse_scenario(std::string_view text, const std::string& file,
                        const BaseReader& base = no_base,
                        std::span<const std::string> overrides = {},
                        const VariantChange* change = nullptr);

// Like parse_scenario, for a file. It may extend only files of its own repository (bases.h).
Scenario read_scenario(const std::filesystem::path&, std::span<const std::string> overrides = {},
                       const VariantChange* change = nullptr);

// The scenarios of a text or a file: one for each value of its [sweep] that `overrides` do not
// decide, or one.
std::vector<Scenario> parse_scenarios(std::string_view text, const std::string& file,
                                      const BaseReader& base,
                                      std::span<const std::string> overrides = {});
std::vector<Scenario> read_scenarios(const std::filesystem::path&,
                                     std::span<const std::string> overrides = {});

// The overrides that read this scenario again: those given, and the point of a sweep.
std::vector<std::string> overrides_of(const Scenario&, std::span<const std::string> overrides);

}  // namespace stepgate
