// SPDX-License-Identifier: MIT
#include "scenario/read/sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenario/assertions/assertion_text.h"
#include "scenario/knobs/field_value.h"

namespace stepgate {
namespace {

constexpr std::size_t most_values = 16;  // each is measured like a scenario of its own
constexpr std::string_view an_example = "write [sweep] and batch.size = [1, 8, 32] below it";
constexpr std::string_view word_of_condition = "when";

bool is_true(double value, Relation relation, double limit) {
  switch (relation) {
    case Relation::less:
      return value < limit;
    case Relation::at_most:
      return value <= limit;
    case Relation::equal:
      return value == limit;
    case Relation::at_least:
      return value >= limit;
    case Relation::greater:
      return value > limit;
    case Relation::about:
      break;
  }
  return false;
}

// Where "when" stands as a word of its own; npos where it does not.
std::size_t condition_in(std::string_view text) {
  const std::size_t at = text.find(fmt::format(" {} ", word_of_condition));
  return at == std::string_view::npos ? at : at + 1;
}

// Reads "batch.size <= 8" behind the word.
class ConditionReader {
 public:
  ConditionReader(const PlacedText& assertion, const SweepDraft& sweep)
      : text_(assertion.text, assertion.text_place), sweep_(sweep) {}

  std::optional<bool> read(double value, std::vector<Diagnostic>& diagnostics) {
    text_.skip(condition_in(text_.rest()) + word_of_condition.size());
    std::optional<bool> applies;
    if (knob() && relation()) applies = limit(value, diagnostics);
    if (text_.problem()) diagnostics.push_back(*text_.problem());
    return applies;
  }

 private:
  bool knob() {
    text_.skip_spaces();
    const std::size_t end = text_.rest().find_first_of(" <>=~!");
    const std::string_view name = text_.rest().substr(0, end);
    if (name != sweep_.field->name) {
      return text_.fail(
          text_.at(), fmt::format("'{}' is not what is swept", name),
          fmt::format("write {} {} and a limit", word_of_condition, sweep_.field->name));
    }
    text_.skip(name.size());
    text_.skip_spaces();
    return true;
  }

  bool relation() {
    const RelationSign* sign = text_.sign_here();
    if (sign == nullptr || !sign->relation || sign->relation == Relation::about) {
      return text_.fail(text_.at(), "a condition without a comparison",
                        "write < <= == >= or > there");
    }
    relation_ = *sign->relation;
    text_.skip(sign->sign.size());
    text_.skip_spaces();
    return true;
  }

  std::optional<bool> limit(double value, std::vector<Diagnostic>& diagnostics) {
    const TomlValue written =
        toml_of_argument(*sweep_.field, text_.rest(), text_.place_of(text_.at()));
    const auto read = read_field_value(*sweep_.field, written, diagnostics);
    if (!read) return std::nullopt;
    if (const auto limit = number_in(*read)) return is_true(value, relation_, *limit);
    text_.fail(text_.at(), "a condition without a number", "compare with a number or a size");
    return std::nullopt;
  }

  AssertionText text_;
  const SweepDraft& sweep_;
  Relation relation_ = Relation::equal;
};

}  // namespace

std::optional<double> number_in(const FieldValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

std::optional<SweepDraft> read_sweep(const TomlTable& table, const Place& place,
                                     std::vector<Diagnostic>& diagnostics) {
  const auto fail = [&](const Place& where, std::string message, std::string hint) {
    diagnostics.push_back({where, std::move(message), std::move(hint)});
    return std::nullopt;
  };
  const auto* group =
      table.size() == 1 ? std::get_if<TomlTable>(&table.front().value.content) : nullptr;
  if (group == nullptr || group->size() != 1)
    return fail(place, "[sweep] is not about one knob", std::string(an_example));
  const TomlEntry& line = group->front();
  const std::string name = fmt::format("{}.{}", table.front().key, line.key);
  const Field* field = field_named(name);
  if (field == nullptr) {
    return fail(line.place, fmt::format("unknown key '{}'", name), hint_for_unknown_field(name));
  }
  if (!is_a_size(*field)) {
    return fail(line.place, fmt::format("'{}' cannot be swept", name),
                "a knob of the step that is a number or a size can; others are for variants");
  }
  const auto* values = std::get_if<TomlArray>(&line.value.content);
  if (values == nullptr || values->size() < 2 || values->size() > most_values) {
    return fail(line.value.place,
                fmt::format("'sweep.{}' is no list of 2 to {} values", name, most_values),
                std::string(an_example));
  }
  SweepDraft sweep{field, line.place, {}};
  for (const TomlValue& value : *values) {
    auto read = read_field_value(*field, value, diagnostics);
    if (!read) return std::nullopt;
    const auto number = number_in(*read);
    if (!number || (!sweep.values.empty() && *number <= *number_in(sweep.values.back()))) {
      return fail(value.place, fmt::format("the values of 'sweep.{}' do not grow", name),
                  "write numbers or sizes, the smallest first, each once");
    }
    sweep.values.push_back(std::move(*read));
  }
  return sweep;
}

std::optional<Conditioned> conditioned(const PlacedText& assertion, const SweepDraft* sweep,
                                       const FieldValue& point,
                                       std::vector<Diagnostic>& diagnostics) {
  const std::string_view text = assertion.text;
  const std::size_t at = condition_in(text);
  if (at == std::string_view::npos) return Conditioned{text};
  if (sweep == nullptr) {
    diagnostics.push_back(
        {assertion.place, "'when' without a [sweep]", "leave the condition out, or sweep a knob"});
    return std::nullopt;
  }
  const auto value = number_in(point);
  if (!value) {
    diagnostics.push_back({assertion.place,
                           fmt::format("'when' of a '{}' that is no number", sweep->field->name),
                           "give the knob a number"});
    return std::nullopt;
  }
  const auto applies = ConditionReader(assertion, *sweep).read(*value, diagnostics);
  if (!applies) return std::nullopt;
  return Conditioned{text.substr(0, text.find_last_not_of(' ', at - 1) + 1), *applies};
}

}  // namespace stepgate
