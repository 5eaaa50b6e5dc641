// SPDX-License-Identifier: MIT
// Scenario files to Scenario: bases, variants, assertions, and every fault at once.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/files/read_file.h"
#include "scenario/knobs/fields.h"
#include "scenario/scenario.h"

namespace stepgate {

// The key of a variant by which it starts from another one, and no knob.
inline constexpr std::string_view like_key = "like";

// One changed knob of a variant, to test whether the assertions would notice it.
struct VariantChange {
  std::string variant;
  std::string knob;                 // or `like_key`, without a value
  std::optional<FieldValue> value;  // absent: what the files say is not said
};

// Gives the text of a file that `extends` names, already relative to where we are.
using BaseReader = std::function<TextOrProblem(const std::string& file)>;

// Throws RequestError where no scenario may have this path: it names baselines, tests and lines of
// logs.
void require_a_path_to_show(const std::string& file);

// There are no base files.
TextOrProblem no_base(const std::string& file);

// The scenario of a text. `file` is the name that places show and that `extends` is relative to.
// Later wins: the fields' defaults, the base files, the file itself, `like`, the variant, the
// overrides. `overrides` are "batch.size=128" each; they hold for every variant, even for one that
// sets the same knob, since they are what the user says now.
// A change is of the variant's own table.
// Throws RequestError with everything that is wrong.
Scenario parse_scenario(std::string_view text, const std::string& file,
                        const BaseReader& base = no_base,
                        std::span<const std::string> overrides = {},
                        const VariantChange* change = nullptr);

// The same for a file, which may extend files of its own repository alone (bases.h).
Scenario read_scenario(const std::filesystem::path&, std::span<const std::string> overrides = {},
                       const VariantChange* change = nullptr);

}  // namespace stepgate
