// SPDX-License-Identifier: MIT
// The one table of all settings of a scenario file: name, values, default, member, and the other
// settings with which each has an effect. Reading, documentation, editor schema and fingerprint use
// it. A new knob needs a member in scenario.h and a row here.
#pragma once

#include <cstdint>
#include <map>
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

// All values that fields set, at their defaults.
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
  capacity,
  text,
  words,
  variables,
  kernels
};

// Whether variants may override a field.
enum class FieldScope { variant, scenario };

// A name for an enum value. A choice without a value is part of the format, but not implemented
// yet.
struct Choice {
  std::string_view name;
  std::optional<std::int64_t> value;  // of the enum
  std::string_view meaning = {};      // what it stands for; every choice with a value has one
};

using ProgramWords = std::vector<std::string>;
using ProgramVariables = std::map<std::string, std::string>;  // of an environment, by name

// The value of a field: nothing (an absent optional, an empty text, list or table), an integer
// (also bytes or an enum value), a number, a bool, a list of integers, a memory cap, a text, words,
// variables, or replaced kernels.
using FieldValue =
    std::variant<std::monostate, std::int64_t, double, bool, std::vector<std::int64_t>, MemoryCap,
                 std::string, ProgramWords, ProgramVariables, ReplacedKernels>;

// The values that a field accepts.
struct FieldValues {
  FieldKind kind = FieldKind::integer;
  double least = 0;
  double most = 0;
  std::int64_t multiple_of = 1;
  std::string_view word = {};  // word for an absent value: "auto"; empty if there is none
  std::span<const Choice> choices = {};
};

// The values of other knobs that a knob needs to have an effect. Without them, setting the knob is
// an error.
struct KnobCondition {
  bool (*holds)(const Knobs&);
  std::string_view only_for = {};  // "caching, expandable"; if empty, see `message`
  std::string_view hint = {};
  std::string_view message = {};  // "{}" is the knob's name
};

struct Field {
  std::string_view name;  // "transfer.host"
  FieldValues values = {};
  std::string_view meaning = {};
  FieldScope scope = FieldScope::variant;
  // nullptr if the knob always has an effect.
  const KnobCondition* condition = nullptr;
  // The field does not affect what is scored: when measuring ends, what is printed, what the
  // machine must have. It is left out of the fingerprint, so changing it keeps runs comparable.
  bool unscored = false;
  // The value holds for the whole process, which runs all variants of all scenarios. It must be the
  // same in all variants in which it has an effect.
  bool once_in_a_process = false;
  // nullptr where the field is part of the format, but not implemented yet.
  FieldValue (*get)(const Settings&) = nullptr;
  void (*set)(Settings&, const FieldValue&) = nullptr;
};

struct FieldGroup {
  std::string_view name;  // "transfer"
  std::string_view meaning;
};

// Both are in the order of the documentation; fields of a group are adjacent.
std::span<const FieldGroup> field_groups();
std::span<const Field> field_table();

// Returns nullptr when there is no such field. "kernels.layer_norm" is the field "kernels", whose
// value is a table of kernels by name.
const Field* field_named(std::string_view name);

// The part of the name before the dot: "transfer" of "transfer.host".
std::string_view group_of(const Field&);

// Whether a group has that name.
bool is_group(std::string_view name);

constexpr bool is_built(const Field& field) {
  return field.get != nullptr;
}

// The meaning, preceded by the models that the knob is for: "transformer: tokens of a sample".
std::string meaning_of(const Field&);

FieldValue default_of(const Field&);

// The first field with once_in_a_process that has an effect in both steps and differs. nullptr if
// one process can run both.
const Field* apart_in_a_process(const Knobs&, const Knobs&);

}  // namespace stepgate
