// SPDX-License-Identifier: MIT
// Applies the conditions of the field table and the rules of knobs_that_clash.cpp, and places what
// is broken.
#include "scenario/knobs/check_knobs.h"

#include <fmt/format.h>

#include <regex>

#include "scenario/knobs/fields.h"
#include "scenario/knobs/knob_rules.h"

namespace stepgate {
namespace {

// The message that a knob has no effect: "'alloc.round' is only for caching and expandable".
std::string no_effect(const Field& field, const KnobCondition& condition) {
  if (!condition.message.empty()) return fmt::format(fmt::runtime(condition.message), field.name);
  std::string all(condition.only_for);
  if (const auto comma = all.rfind(", "); comma != all.npos) all.replace(comma, 2, " and ");
  return fmt::format("'{}' is only for {}", field.name, all);
}

// Knobs of a composed step say nothing about a program.
void refuse_knobs_of_steps(const SettingPlaces& places, std::vector<Diagnostic>& diagnostics) {
  for (const auto& [name, place] : places) {
    const Field& field = *field_named(name);
    const std::string_view group = group_of(field);
    if (field.scope == FieldScope::scenario || group == "program" || group == "gate") continue;
    diagnostics.push_back(
        {place,
         fmt::format("'{}' is about a step that stepgate composes, and 'program' names yours",
                     name),
         "remove it, or hand it to the program in program.arguments"});
  }
}

// ProgramVariables with which stepgate loads its library, and tells it what to do.
void refuse_own_variables(const Knobs& knobs, const SettingPlaces& places,
                          std::vector<Diagnostic>& diagnostics) {
  for (const auto& [name, text] : knobs.program.env) {
    if (!name.starts_with("STEPGATE_") && !name.ends_with("_INJECTION64_PATH")) continue;
    diagnostics.push_back(
        {places.at("program.env"),
         fmt::format("'{}' is a variable by which stepgate loads its library", name), "remove it"});
  }
}

void refuse_no_expression(const Knobs& knobs, const SettingPlaces& places,
                          std::vector<Diagnostic>& diagnostics) {
  try {
    (void)std::regex(knobs.program.step_kernel);
  } catch (const std::regex_error&) {
    diagnostics.push_back({places.at("program.step_kernel"),
                           fmt::format("'{}' is no regular expression", knobs.program.step_kernel),
                           "write part of the kernel's name, with \\ before signs"});
  }
}

}  // namespace

void check_knobs(const Knobs& knobs, const SettingPlaces& places, const Place& variant,
                 std::vector<Diagnostic>& diagnostics) {
  for (const Field& field : field_table()) {
    if (field.condition == nullptr || field.condition->holds(knobs)) continue;
    const auto place = places.find(field.name);
    if (place == places.end()) continue;
    diagnostics.push_back(
        {place->second, no_effect(field, *field.condition), std::string(field.condition->hint)});
  }
  if (!knobs.program.command.empty()) {
    refuse_knobs_of_steps(places, diagnostics);
    refuse_own_variables(knobs, places, diagnostics);
    refuse_no_expression(knobs, places, diagnostics);
    return;
  }
  for (const KnobRule& rule : knobs_that_clash()) {
    if (!rule.broken(knobs)) continue;
    const auto place = places.find(rule.field);
    diagnostics.push_back({place != places.end() ? place->second : variant,
                           std::string(rule.message), std::string(rule.hint)});
  }
}

}  // namespace stepgate
