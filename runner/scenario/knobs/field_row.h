// SPDX-License-Identifier: MIT
// How a row of the field table is written: the member that it reaches and the values that it may
// hold. Only fields.cpp includes this.
#pragma once

#include <array>
#include <type_traits>

#include "base/text/enumerators.h"
#include "base/text/units.h"
#include "scenario/knobs/choice_meanings.h"
#include "scenario/knobs/fields.h"

namespace stepgate::field_row {

template <class AnySettings, class Part>
auto& part_of(AnySettings& settings, Part Knobs::*part) {
  return settings.knobs.*part;
}
template <class AnySettings, class Part>
auto& part_of(AnySettings& settings, Part Settings::*part) {
  return settings.*part;
}
template <class Part>
constexpr FieldScope scope_of(Part Knobs::*) {
  return FieldScope::variant;
}
template <class Part>
constexpr FieldScope scope_of(Part Settings::*) {
  return FieldScope::scenario;
}

template <class T>
FieldValue value_of(const T& member) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::int64_t>(member);
  } else {
    return member;
  }
}
template <class T>
FieldValue value_of(const std::optional<T>& member) {
  return member ? FieldValue(*member) : FieldValue();
}

inline FieldValue value_of(const MemoryCap& member) {
  return member.of == CapOf::nothing ? FieldValue() : FieldValue(member);
}
inline FieldValue value_of(const std::vector<std::int64_t>& member) {
  return member.empty() ? FieldValue() : FieldValue(member);
}

inline FieldValue value_of(const std::string& member) {
  return member.empty() ? FieldValue() : FieldValue(member);
}
inline FieldValue value_of(const ProgramWords& member) {
  return member.empty() ? FieldValue() : FieldValue(member);
}
inline FieldValue value_of(const ProgramVariables& member) {
  return member.empty() ? FieldValue() : FieldValue(member);
}

inline FieldValue value_of(const ReplacedKernels& member) {
  return member.empty() ? FieldValue() : FieldValue(member);
}

template <class T>
void assign(T& member, const FieldValue& value) {
  if constexpr (std::is_enum_v<T>) {
    member = static_cast<T>(std::get<std::int64_t>(value));
  } else {
    member = std::get<T>(value);
  }
}
template <class T>
void assign(std::optional<T>& member, const FieldValue& value) {
  if (std::holds_alternative<std::monostate>(value)) {
    member.reset();
  } else {
    member = std::get<T>(value);
  }
}

inline void assign(MemoryCap& member, const FieldValue& value) {
  const auto* cap = std::get_if<MemoryCap>(&value);
  member = cap ? *cap : MemoryCap();
}
inline void assign(std::vector<std::int64_t>& member, const FieldValue& value) {
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  member = list ? *list : std::vector<std::int64_t>();
}

inline void assign(std::string& member, const FieldValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  member = text ? *text : std::string();
}
inline void assign(ProgramWords& member, const FieldValue& value) {
  const auto* words = std::get_if<ProgramWords>(&value);
  member = words ? *words : ProgramWords();
}
// ProgramVariables are added to those that are there, as a variant's are to those of the base.
inline void assign(ProgramVariables& member, const FieldValue& value) {
  const auto* added = std::get_if<ProgramVariables>(&value);
  if (added == nullptr) return member.clear();
  for (const auto& [name, text] : *added) member.insert_or_assign(name, text);
}

// Replaced kernels are added too; one without a library is the catalogue's again. A text is the
// library that all of them come from.
inline void assign(ReplacedKernels& member, const FieldValue& value) {
  if (const auto* library = std::get_if<std::string>(&value)) {
    for (auto& [name, replacement] : member) replacement.library = *library;
    return;
  }
  const auto* added = std::get_if<ReplacedKernels>(&value);
  if (added == nullptr) return member.clear();
  for (const auto& [name, replacement] : *added) {
    if (replacement.library.empty()) {
      member.erase(name);
    } else {
      member.insert_or_assign(name, replacement);
    }
  }
}

// `members` are pointers to members, followed from `part` one after the other to the field.
template <auto part, auto... members>
constexpr Field field(std::string_view name, const FieldValues& values, std::string_view meaning,
                      const KnobCondition* condition = nullptr) {
  return {.name = name,
          .values = values,
          .meaning = meaning,
          .scope = scope_of(part),
          .condition = condition,
          .get = [](const Settings& from) { return value_of((part_of(from, part).*....*members)); },
          .set = [](Settings& to,
                    const FieldValue& value) { assign((part_of(to, part).*....*members), value); }};
}

constexpr Field unscored(Field field) {
  field.unscored = true;
  return field;
}

constexpr Field once_in_a_process(Field field) {
  field.once_in_a_process = true;
  return field;
}

// Makes a field that variants may override, in a group that otherwise holds for the whole scenario.
constexpr Field of_variants(Field field) {
  field.scope = FieldScope::variant;
  return field;
}

constexpr Field not_built(std::string_view name) {
  return {.name = name};
}

inline constexpr std::int64_t tebibyte = 1024 * gibibyte;

constexpr FieldValues whole(double least, double most) {
  return {.kind = FieldKind::integer, .least = least, .most = most};
}
// A capacity: bytes, a multiple of what a step needs, or a share of a device's memory.
constexpr FieldValues capacity(double least, double most) {
  return {.kind = FieldKind::capacity, .least = least, .most = most};
}
// A percentage, which files write as "5%" for 0.05.
constexpr FieldValues percent(double least, double most) {
  return {.kind = FieldKind::percent, .least = least, .most = most};
}
// A list of such numbers, with fewest_in_list to most_in_list elements.
constexpr FieldValues list_of(FieldValues whole) {
  whole.kind = FieldKind::integers;
  return whole;
}
constexpr FieldValues a_text() {
  return {.kind = FieldKind::text};
}
constexpr FieldValues words() {
  return {.kind = FieldKind::words};
}
constexpr FieldValues variables() {
  return {.kind = FieldKind::variables};
}
constexpr FieldValues kernels() {
  return {.kind = FieldKind::kernels};
}
constexpr FieldValues number(double least, double most) {
  return {.kind = FieldKind::number, .least = least, .most = most};
}
constexpr FieldValues bytes(double least, double most) {
  return {.kind = FieldKind::bytes, .least = least, .most = most};
}
constexpr FieldValues version(double least, double most) {
  return {.kind = FieldKind::version, .least = least, .most = most};
}
constexpr FieldValues yes_or_no() {
  return {.kind = FieldKind::boolean};
}
constexpr FieldValues one_of(std::span<const Choice> choices) {
  return {.kind = FieldKind::choice, .choices = choices};
}
constexpr FieldValues multiple_of(std::int64_t factor, FieldValues values) {
  values.multiple_of = factor;
  return values;
}
constexpr FieldValues or_word(std::string_view word, FieldValues values) {
  values.word = word;
  return values;
}

template <class Enum>
constexpr Choice choice(std::string_view name, Enum value) {
  const auto number = static_cast<std::int64_t>(value);
  return {name, number, meanings<Enum>[static_cast<std::size_t>(number)]};
}
constexpr Choice choice(std::string_view name) {
  return {name, std::nullopt};
}

// A choice for each value of the enum, in its order and under its name.
template <class Enum>
inline constexpr auto choices = [] {
  std::array<Choice, enumerators<Enum>.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = choice(enumerators<Enum>[i], static_cast<Enum>(i));
  return all;
}();

}  // namespace stepgate::field_row
