// SPDX-License-Identifier: MIT
// The contents of scenario files, before variants are resolved: settings with their places, file
// after file. Bases are read first, so later files win. Whether the settings fit together is for
// others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/toml/toml.h"
#include "scenario/knobs/fields.h"

namespace stepgate {

struct PlacedText {
  std::string text;
  Place place;       // of the value
  Place text_place;  // of the first character inside the quotes
};

struct Setting {
  const Field* field = nullptr;
  FieldValue value;
  Place place;  // of the key
};

// "batch.size"; "kernels.layer_norm" for one replaced kernel.
std::string name_of(const Setting&);
// The value as a file writes it; of one replaced kernel, what stands behind its name.
std::string value_text(const Setting&);

struct AssertionDraft {
  std::string name;
  PlacedText assertion;
};

struct CalibrationDraft {
  std::string name;              // name of the knob
  const Field* field = nullptr;  // nullptr: a fault that is already reported
  Place place;                   // of the key
  PlacedText assertion;
};

struct FigureDraft {
  std::string name;  // of the assertion
  Place place;
  std::string experiment;
  std::vector<double> says;  // one number, or the ends of a range
};

struct VariantDraft {
  std::string name;
  Place place;
  std::optional<PlacedText> like;
  std::vector<Setting> settings;
};

struct SweepDraft {
  const Field* field = nullptr;
  Place place;                     // of the knob
  std::vector<FieldValue> values;  // growing, at least two
};

// The most variants of a scenario. A round runs every variant, so a scenario with more would not
// end. The limit also bounds the work of reading a file.
inline constexpr std::size_t most_variants = 256;

struct ScenarioDraft {
  std::optional<PlacedText> claim;
  std::string source;
  std::vector<std::string> tags;
  std::vector<Setting> settings;  // settings of the base step and of the scenario
  std::vector<VariantDraft> variants;
  std::optional<SweepDraft> sweep;
  std::vector<CalibrationDraft> calibrate;
  std::vector<AssertionDraft> regime;
  std::vector<AssertionDraft> expect;
  std::vector<FigureDraft> article;
  std::vector<std::string> refused_keys;  // with errors in their values: not missing
};

// The hint where no field has that name: what a familiar word means, the field of that name in
// another group, or the nearest name.
std::string hint_for_unknown_field(std::string_view name);

// Whether a field is a number or a size of the step, which a search or a sweep can change.
bool is_a_size(const Field&);

// The file's `extends`; nullopt when there is none or it is no string (which read_into reports).
std::optional<PlacedText> extends_of(const TomlTable& file);

// Adds a file to the draft; its settings override earlier ones. Adds a diagnostic for every error.
void read_into(ScenarioDraft&, const TomlTable& file, std::vector<Diagnostic>& diagnostics);

}  // namespace stepgate
