// SPDX-License-Identifier: MIT
#include "scenario/knobs/described_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/process/masked_words.h"

#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

// Fields that are described even at their defaults. Self-explanatory values are written without the
// name of the field.
struct SaidAlways {
  std::string_view field;
  bool named = true;
};
constexpr std::array said_always{SaidAlways{"model.kind", false},
                                 SaidAlways{"model.layers"},
                                 SaidAlways{"model.hidden"},
                                 SaidAlways{"model.kernels"},
                                 SaidAlways{"model.kernel_us"},
                                 SaidAlways{"model.dtype", false},
                                 SaidAlways{"model.footprint"},
                                 SaidAlways{"model.accesses"},
                                 SaidAlways{"model.seq"},
                                 SaidAlways{"model.vocab"},
                                 SaidAlways{"model.tables"},
                                 SaidAlways{"batch.size"},
                                 SaidAlways{"transfer.host", false},
                                 SaidAlways{"sync.where", false},
                                 SaidAlways{"alloc.with", false}};

void add(std::string& words, const std::string& more) {
  if (!words.empty()) words += ", ";
  words += more;
}

std::string_view without_group(const Field& field) {
  return field.name.substr(group_of(field).size() + 1);
}

// The command line, with secrets masked, and what else differs from the defaults.
DescribedStep described_program(const Variant& variant) {
  const ProgramKnobs& program = variant.knobs.program;
  Command command = program.command;
  command.insert(command.end(), program.arguments.begin(), program.arguments.end());
  std::string words;
  for (const auto& [name, text] : program.env)
    words += masked({fmt::format("--{}={}", name, text)}).front().substr(2) + ' ';
  DescribedStep step{
      .variant = variant.name, .words = {}, .other = words + to_text(masked(command))};
  const Settings settings{.knobs = variant.knobs, .measure = {}, .requirements = {}, .gate = {}};
  for (const Field& field : field_table()) {
    constexpr std::array in_the_command{"program.command", "program.arguments", "program.env"};
    if (group_of(field) != "program" ||
        std::ranges::find(in_the_command, field.name) != in_the_command.end())
      continue;
    const FieldValue value = field.get(settings);
    if (value == default_of(field)) continue;
    add(step.other, fmt::format("{} {}", without_group(field), field_value_text(field, value)));
  }
  return step;
}

DescribedStep described(const Variant& variant) {
  if (runs_a_program(variant)) return described_program(variant);
  DescribedStep step{.variant = variant.name, .words = {}, .other = {}};
  const Settings settings{.knobs = variant.knobs, .measure = {}, .requirements = {}, .gate = {}};
  for (const Field& field : field_table()) {
    if (!is_built(field) || field.scope != FieldScope::variant) continue;
    if (field.condition != nullptr && !field.condition->holds(variant.knobs)) continue;
    const auto thing = std::ranges::find(five_things, group_of(field));
    const auto always = std::ranges::find(said_always, field.name, &SaidAlways::field);
    const FieldValue value = field.get(settings);
    if (always == said_always.end() && value == default_of(field)) continue;
    const std::string text = field_value_text(field, value);
    if (thing == five_things.end()) {
      add(step.other, std::string(field.name) + ' ' + text);
      continue;
    }
    const bool named = always == said_always.end() || always->named;
    add(step.words[static_cast<std::size_t>(thing - five_things.begin())],
        named ? std::string(without_group(field)) + ' ' + text : text);
  }
  return step;
}

}  // namespace

std::vector<DescribedStep> described_steps(const std::vector<Variant>& variants) {
  std::vector<DescribedStep> steps;
  for (const Variant& variant : variants) steps.push_back(described(variant));
  return steps;
}

std::vector<ComparedThing> compared_things(const std::vector<DescribedStep>& steps) {
  const auto grouped = [&](std::string_view thing, auto words_of) {
    ComparedThing compared{.thing = thing, .groups = {}};
    for (const DescribedStep& step : steps) {
      const std::string& words = words_of(step);
      auto alike = std::ranges::find(compared.groups, words, &AlikeVariants::words);
      if (alike == compared.groups.end())
        alike = compared.groups.insert(alike, {.variants = {}, .words = words});
      alike->variants.push_back(step.variant);
    }
    return compared;
  };
  std::vector<ComparedThing> things;
  if (steps.empty()) return things;
  for (std::size_t at = 0; at < five_things.size(); ++at) {
    ComparedThing thing =
        grouped(five_things[at],
                [&](const DescribedStep& step) -> const std::string& { return step.words[at]; });
    // A program is described by its command line alone.
    if (thing.differs() || !thing.groups.front().words.empty()) things.push_back(std::move(thing));
  }
  ComparedThing other =
      grouped(things.empty() ? program_thing : other_things,
              [](const DescribedStep& step) -> const std::string& { return step.other; });
  if (other.differs() || !other.groups.front().words.empty()) things.push_back(std::move(other));
  return things;
}

}  // namespace stepgate
