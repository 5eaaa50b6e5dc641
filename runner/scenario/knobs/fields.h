// SPDX-License-Identifier: MIT
// The one table of everything that a scenario file may set: its name, its values, its default, its
// member, and beside which others it has an effect. Reading, documentation, editor schema and
// fingerprint all follow from a row; adding a knob is a member of scenario.h and a row here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scenario/scenario.h"

namespace stepgate {

// The hint where a key is not known.
inline constexpr std::string_view see_fields = "'stepgate fields' lists the keys";

// Everything that fields write to, at its defaults.
struct Settings {
  Knobs knobs;
  MeasureKnobs measure;
  Requirements requirements;
  GateKnobs gate;
};

// `version` and `percent` are numbers that files write as text: "8.0", "5%".
enum class FieldKind {
  integer,
  number,
  boolean,
  choice,
  bytes,
  version,
  percent,
  integers,
  capacity
};

// Whether variants may override it.
enum class FieldScope { variant, scenario };

// A choice without a value is in the format, but not built yet.
struct Choice {
  std::string_view name;
  std::optional<std::int64_t> value;  // of the enum
};

// The value of a field: nothing (an absent optional, an empty list), a whole number, bytes or the
// value of an enum, a number, true and false, a list of whole numbers, or a cap.
using FieldValue =
    std::variant<std::monostate, std::int64_t, double, bool, std::vector<std::int64_t>, MemoryCap>;

// The values that a file may write.
struct FieldValues {
  FieldKind kind = FieldKind::integer;
  double least = 0;
  double most = 0;
  std::int64_t multiple_of = 1;
  std::string_view word = {};  // that stands for an absent value: "auto"; empty where none does
  std::span<const Choice> choices = {};
};

// Beside which other knobs a knob has an effect: it is refused where it is written beside others,
// never ignored.
struct KnobCondition {
  bool (*holds)(const Knobs&);
  std::string_view only_for = {};  // "caching, expandable"; empty: `message` says it
  std::string_view hint = {};
  std::string_view message = {};  // "{}" is the knob's name
};

struct Field {
  std::string_view name;  // "transfer.host"
  FieldValues values = {};
  std::string_view meaning = {};
  FieldScope scope = FieldScope::variant;
  // Null where it has an effect whatever the others are.
  const KnobCondition* condition = nullptr;
  // The field is about what is not scored: when measuring ends, what is printed, what the machine
  // must have. It is not in the fingerprint, so changing it keeps runs comparable.
  bool unscored = false;
  // Decided once for a process, which carries out all variants of all scenarios of a run: the same
  // wherever it has an effect.
  bool once_in_a_process = false;
  // Null where the field is in the format, but not built yet.
  FieldValue (*get)(const Settings&) = nullptr;
  void (*set)(Settings&, const FieldValue&) = nullptr;
};

struct FieldGroup {
  std::string_view name;  // "transfer"
  std::string_view meaning;
};

// In the order of the documentation; the fields of a group stand together.
std::span<const FieldGroup> field_groups();
std::span<const Field> field_table();

// Null when there is no such field.
const Field* field_named(std::string_view name);

// "transfer" of "transfer.host".
std::string_view group_of(const Field&);

// Whether a group has that name.
bool is_group(std::string_view name);

constexpr bool is_built(const Field& field) {
  return field.get != nullptr;
}

// "transformer: tokens of a sample": the meaning, with what the knob is only for.
std::string meaning_of(const Field&);

FieldValue default_of(const Field&);

// The first field that is decided once for a process, has an effect beside the knobs of both, and
// differs; null where one process can carry out both.
const Field* apart_in_a_process(const Knobs&, const Knobs&);

}  // namespace stepgate
