// SPDX-License-Identifier: MIT
// [sweep]: one knob with several values, each of which makes a scenario of the file's variants. An
// assertion may hold for some of the values: "fix.step_ms_mean <= 2 ms when batch.size <= 8".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/read/scenario_draft.h"

namespace stepgate {

// Reads the table's one knob and its values. Adds a diagnostic and returns nullopt where they
// cannot be swept.
std::optional<SweepDraft> read_sweep(const TomlTable&, const Place&,
                                     std::vector<Diagnostic>& diagnostics);

// The value as a number, in base units; nullopt for knobs that cannot be swept.
std::optional<double> number_in(const FieldValue&);

// An assertion without its condition, and whether the condition is true of the point.
struct Conditioned {
  std::string_view assertion;
  bool applies = true;
};

// Takes the condition off an assertion. Adds a diagnostic and returns nullopt where it is none, and
// where there is a condition without a sweep (a null `sweep`). `point` is the knob's value.
std::optional<Conditioned> conditioned(const PlacedText&, const SweepDraft* sweep,
                                       const FieldValue& point,
                                       std::vector<Diagnostic>& diagnostics);

}  // namespace stepgate
