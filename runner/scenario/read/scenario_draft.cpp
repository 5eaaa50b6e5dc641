// SPDX-License-Identifier: MIT
// Has one method for each table of the format; the top-level keys are in a table of names and
// methods.
#include "scenario/read/scenario_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/ascii.h"
#include "base/text/nearest.h"
#include "scenario/familiar_words.h"
#include "scenario/knobs/field_value.h"
#include "scenario/read/sweep.h"

namespace stepgate {
namespace {

// The functions below define which characters names in a scenario may have.

bool is_small(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c);
}

bool is_letter_or_digit(char c) {
  return is_small(c) || (c >= 'A' && c <= 'Z');
}

bool is_all_of(std::string_view text, bool (*allowed)(char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

// Letters, digits and _, not beginning with a digit, since assertions contain names of variants.
bool is_variant_name(std::string_view text) {
  return is_all_of(text, [](char c) { return is_letter_or_digit(c) || c == '_'; }) &&
         !is_digit(text[0]);
}

// Letters, digits, _ and -.
bool is_line_name(std::string_view text) {
  return is_all_of(text, [](char c) { return is_letter_or_digit(c) || c == '_' || c == '-'; });
}

// A tag has only the characters a to z, 0 to 9, _ and -.
bool is_tag(std::string_view text) {
  return is_all_of(text, [](char c) { return is_small(c) || c == '_' || c == '-'; });
}

constexpr std::int64_t newest_schema = 1;
// The element with that name; appends a new one when there is none.
template <class Named>
Named& named(std::vector<Named>& elements, const std::string& name) {
  const auto found = std::find_if(elements.begin(), elements.end(),
                                  [&](const Named& element) { return element.name == name; });
  if (found != elements.end()) return *found;
  elements.emplace_back().name = name;
  return elements.back();
}

constexpr std::string_view a_figure =
    "write [article], and below it faster = { experiment = \"a wait every step\", says = 1.29 }, "
    "or "
    "says = [1.05, 1.15]";

class DraftReader {
 public:
  DraftReader(ScenarioDraft& draft, std::vector<Diagnostic>& diagnostics)
      : draft_(draft), diagnostics_(diagnostics) {}

  void read(const TomlTable& file) {
    for (const TomlEntry& entry : file) {
      const std::size_t before = diagnostics_.size();
      const auto key = std::ranges::find(keys, entry.key, &TopLevelKey::name);
      if (key != keys.end()) {
        (this->*key->read)(entry);
      } else if (is_group(entry.key)) {
        group(entry, draft_.settings, FieldScope::scenario);
      } else {
        unknown(entry.place, entry.key, top_level_names());
      }
      if (diagnostics_.size() > before) draft_.refused_keys.push_back(entry.key);
    }
  }

 private:
  struct TopLevelKey {
    std::string_view name;
    void (DraftReader::*read)(const TomlEntry&);
    bool is_table = true;
  };
  static const std::array<TopLevelKey, 11> keys;

  void fail(const Place& place, std::string message, std::string hint) {
    diagnostics_.push_back({place, std::move(message), std::move(hint)});
  }

  void unknown(const Place& place, std::string_view key,
               const std::vector<std::string_view>& candidates) {
    const std::string familiar = familiar_hint(key, FamiliarPlace::knob);
    fail(place, fmt::format("unknown key '{}'", key),
         did_you_mean(key, candidates, familiar.empty() ? std::string(see_fields) : familiar));
  }

  static std::vector<std::string_view> top_level_names() {
    std::vector<std::string_view> names;
    for (const TopLevelKey& key : keys) names.push_back(key.name);
    for (const FieldGroup& group : field_groups()) names.push_back(group.name);
    return names;
  }

  const TomlTable* table_of(const TomlEntry& entry, std::string_view name, std::string hint) {
    const auto* table = std::get_if<TomlTable>(&entry.value.content);
    if (table == nullptr) {
      fail(entry.value.place,
           fmt::format("'{}' must be a table, but is {}", name, type_text(entry.value)),
           std::move(hint));
    }
    return table;
  }

  std::optional<PlacedText> text_of(const TomlEntry& entry, std::string_view name) {
    const auto* text = std::get_if<std::string>(&entry.value.content);
    if (text == nullptr) {
      fail(entry.value.place,
           fmt::format("'{}' must be a string, but is {}", name, type_text(entry.value)),
           fmt::format("write {} = \"...\"", name));
      return std::nullopt;
    }
    return PlacedText{*text, entry.value.place, entry.value.text_place};
  }

  void schema(const TomlEntry& entry) {
    const auto* number = std::get_if<std::int64_t>(&entry.value.content);
    if (number == nullptr || *number < 1) {
      fail(entry.value.place, "'schema' must be a whole number from 1", "write schema = 1");
    } else if (*number > newest_schema) {
      fail(entry.value.place,
           fmt::format("schema {} is newer than this stepgate, which reads schema {}", *number,
                       newest_schema),
           "update stepgate");
    }
  }

  void claim(const TomlEntry& entry) {
    auto text = text_of(entry, "claim");
    if (!text) return;
    if (text->text.find_first_not_of(" \t\r\n") == std::string::npos) {
      fail(text->place, "'claim' is empty", "say in one sentence what the scenario shows");
    } else if (text->text.find('\n') != std::string::npos) {
      fail(text->place, "'claim' has more than one line", "say it in one sentence");
    }
    draft_.claim = std::move(text);
  }

  void source(const TomlEntry& entry) {
    if (auto text = text_of(entry, "source")) draft_.source = std::move(text->text);
  }

  void tags(const TomlEntry& entry) {
    constexpr const char* hint = "write tags = [\"sync\", \"smoke\"]";
    const auto* list = std::get_if<TomlArray>(&entry.value.content);
    if (list == nullptr) {
      return fail(entry.value.place,
                  fmt::format("'tags' must be a list, but is {}", type_text(entry.value)), hint);
    }
    draft_.tags.clear();
    for (const TomlValue& value : *list) {
      const auto* tag = std::get_if<std::string>(&value.content);
      if (tag == nullptr) {
        fail(value.place, fmt::format("a tag must be a string, but is {}", type_text(value)), hint);
      } else if (!is_tag(*tag)) {
        fail(value.place, fmt::format("'{}' is no tag", *tag),
             "a tag is made of a to z, 0 to 9, _ and -");
      } else {
        draft_.tags.push_back(*tag);
      }
    }
  }

  void extends(const TomlEntry& entry) { (void)text_of(entry, "extends"); }

  void sweep(const TomlEntry& entry) {
    if (const auto* table = table_of(entry, entry.key, "write [sweep] and a knob below it"))
      draft_.sweep = read_sweep(*table, entry.place, diagnostics_);
  }

  // The keys of [calibrate] are knobs: batch.sample_bytes = "fix.h2d_share ~= 30% within 5%".
  void calibrate(const TomlEntry& entry) {
    const auto* groups = table_of(entry, entry.key, "write [calibrate] and a knob below it");
    if (groups == nullptr) return;
    for (const TomlEntry& group : *groups) {
      if (!is_group(group.key)) {
        unknown(group.place, group.key, {});
        continue;
      }
      const auto* table =
          table_of(group, group.key, fmt::format("write {}.<knob> = \"...\"", group.key));
      for (const TomlEntry& line : table ? *table : TomlTable()) calibrated_knob(group.key, line);
    }
  }

  void calibrated_knob(const std::string& group, const TomlEntry& line) {
    const std::string name = fmt::format("{}.{}", group, line.key);
    const Field* field = field_named(name);
    if (field == nullptr) return unknown_field(line, name);
    if (!is_a_size(*field)) {
      return fail(line.place, fmt::format("'{}' cannot be calibrated", name),
                  "a knob of the step that is a number or a size can");
    }
    auto text = text_of(line, name);
    if (!text) return;
    CalibrationDraft& draft = named(draft_.calibrate, name);
    draft.field = field;
    draft.place = line.place;
    draft.assertion = std::move(*text);
  }

  void regime(const TomlEntry& entry) { assertions(entry, draft_.regime); }
  void expect(const TomlEntry& entry) { assertions(entry, draft_.expect); }

  // A key of [article] is an assertion: faster = { experiment = "...", says = 1.29 }.
  void article(const TomlEntry& entry) {
    const auto* table = table_of(entry, entry.key, std::string(a_figure));
    for (const TomlEntry& line : table ? *table : TomlTable()) figure(line);
  }

  void figure(const TomlEntry& line) {
    const std::string name = "article." + line.key;
    const auto* table = table_of(line, name, std::string(a_figure));
    if (table == nullptr) return;
    FigureDraft& draft = named(draft_.article, line.key);
    draft.place = line.place;
    for (const TomlEntry& entry : *table) {
      if (entry.key == "experiment") {
        if (const auto text = text_of(entry, name + ".experiment")) draft.experiment = text->text;
      } else if (entry.key == "says") {
        draft.says = numbers_of(entry.value);
      } else {
        unknown(entry.place, entry.key, {"experiment", "says"});
      }
    }
    const auto is_not_positive = [](double number) { return !(number > 0); };
    if (draft.experiment.empty() || draft.says.empty() || draft.says.size() > 2 ||
        std::ranges::any_of(draft.says, is_not_positive) || draft.says.front() > draft.says.back())
      fail(line.place, fmt::format("'{}' has no experiment, or says no ratio above 0", name),
           std::string(a_figure));
  }

  // Empty where the value is neither a number nor a list of numbers.
  static std::vector<double> numbers_of(const TomlValue& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value.content))
      return {static_cast<double>(*whole)};
    if (const auto* number = std::get_if<double>(&value.content)) return {*number};
    std::vector<double> numbers;
    const auto* list = std::get_if<TomlArray>(&value.content);
    for (const TomlValue& one : list ? *list : TomlArray()) {
      const bool is_list = std::holds_alternative<TomlArray>(one.content);
      const std::vector<double> number = is_list ? std::vector<double>() : numbers_of(one);
      if (number.empty()) return {};
      numbers.push_back(number.front());
    }
    return numbers;
  }

  void assertions(const TomlEntry& entry, std::vector<AssertionDraft>& into) {
    const auto* table =
        table_of(entry, entry.key, fmt::format("write [{}] and assertions below it", entry.key));
    if (table == nullptr) return;
    for (const TomlEntry& line : *table) {
      const std::string name = fmt::format("{}.{}", entry.key, line.key);
      if (!is_line_name(line.key)) {
        fail(line.place, fmt::format("'{}' cannot name a line", line.key),
             "use letters, digits, _ and -");
      }
      if (auto text = text_of(line, name)) named(into, line.key).assertion = std::move(*text);
    }
  }

  void variants(const TomlEntry& entry) {
    constexpr const char* hint = "write [variant.fix]";
    const auto* table = table_of(entry, "variant", hint);
    if (table == nullptr) return;
    for (const TomlEntry& line : *table) {
      if (draft_.variants.size() == most_variants && !has_variant(line.key)) {
        return fail(line.place, fmt::format("more than {} variants", most_variants),
                    "make scenarios of some of them; every round measures all that a scenario has");
      }
      const std::string name = fmt::format("variant.{}", line.key);
      if (!is_variant_name(line.key) || line.key == "stored") {
        fail(line.place, fmt::format("'{}' cannot name a variant", line.key),
             line.key == "stored" ? "assertions use it for stored values"
                                  : "use letters, digits and _, and start with a letter");
      }
      VariantDraft& variant = named(draft_.variants, line.key);
      variant.place = line.place;
      if (const auto* content = table_of(line, name, hint)) read_variant(*content, variant);
    }
  }

  bool has_variant(std::string_view name) const {
    return std::ranges::find(draft_.variants, name, &VariantDraft::name) != draft_.variants.end();
  }

  void read_variant(const TomlTable& table, VariantDraft& variant) {
    for (const TomlEntry& entry : table) {
      if (entry.key == "like") {
        if (auto text = text_of(entry, "like")) variant.like = std::move(text);
      } else if (is_group(entry.key)) {
        group(entry, variant.settings, FieldScope::variant);
      } else {
        std::vector<std::string_view> names{"like"};
        for (const FieldGroup& group : field_groups()) names.push_back(group.name);
        unknown_in_variant(entry, names);
      }
    }
  }

  // In TOML a key below [variant.fix] is that variant's, also where it is meant for the file.
  void unknown_in_variant(const TomlEntry& entry, const std::vector<std::string_view>& names) {
    const auto key = std::ranges::find(keys, entry.key, &TopLevelKey::name);
    if (key == keys.end()) return unknown(entry.place, entry.key, names);
    fail(entry.place, fmt::format("'{}' stands in a variant", entry.key),
         key->is_table
             ? fmt::format("write [{}] on a line of its own, and its keys below", entry.key)
             : fmt::format("write {} = ... above the first table", entry.key));
  }

  void group(const TomlEntry& entry, std::vector<Setting>& into, FieldScope widest) {
    const auto* table = table_of(
        entry, entry.key, fmt::format("write [{}], or {} = {{ ... }}", entry.key, entry.key));
    if (table == nullptr) return;
    for (const TomlEntry& line : *table) {
      const std::string name = fmt::format("{}.{}", entry.key, line.key);
      const Field* field = field_named(name);
      if (field != nullptr && field->values.kind == FieldKind::kernels) {
        const TomlValue one{TomlTable{line}, line.value.place, line.value.text_place};
        if (auto value = read_field_value(*field, one, diagnostics_))
          into.push_back({field, std::move(*value), line.place});
      } else if (field == nullptr) {
        unknown_field(line, name);
      } else if (!is_built(*field)) {
        fail(line.place, fmt::format("'{}' is not built yet", name), std::string(see_fields));
      } else if (field->scope == FieldScope::scenario && widest == FieldScope::variant) {
        fail(line.place, fmt::format("'{}' holds for the whole scenario, not for a variant", name),
             fmt::format("move it to [{}]", entry.key));
      } else if (auto value = read_field_value(*field, line.value, diagnostics_)) {
        into.push_back({field, std::move(*value), line.place});
      }
    }
  }

  void unknown_field(const TomlEntry& line, const std::string& name) {
    fail(line.place, fmt::format("unknown key '{}'", name), hint_for_unknown_field(name));
  }

  ScenarioDraft& draft_;
  std::vector<Diagnostic>& diagnostics_;
};

const std::array<DraftReader::TopLevelKey, 11> DraftReader::keys{{
    {"schema", &DraftReader::schema, false},
    {"claim", &DraftReader::claim, false},
    {"source", &DraftReader::source, false},
    {"tags", &DraftReader::tags, false},
    {"extends", &DraftReader::extends, false},
    {"sweep", &DraftReader::sweep},
    {"calibrate", &DraftReader::calibrate},
    {"regime", &DraftReader::regime},
    {"variant", &DraftReader::variants},
    {"expect", &DraftReader::expect},
    {"article", &DraftReader::article},
}};

}  // namespace

std::string name_of(const Setting& setting) {
  const auto* kernels = std::get_if<ReplacedKernels>(&setting.value);
  if (kernels == nullptr || kernels->size() != 1) return std::string(setting.field->name);
  return fmt::format("{}.{}", setting.field->name, kernels->begin()->first);
}

std::string value_text(const Setting& setting) {
  const auto* kernels = std::get_if<ReplacedKernels>(&setting.value);
  if (kernels == nullptr || kernels->size() != 1)
    return field_value_text(*setting.field, setting.value);
  return replacement_text(kernels->begin()->second);
}

std::string hint_for_unknown_field(std::string_view name) {
  constexpr std::string_view table = "variant.";
  if (name.starts_with(table)) name.remove_prefix(table.size());
  const std::string_view key = name.substr(name.find('.') + 1);
  if (key != name && field_named(key) != nullptr)
    return fmt::format("that sets it in every variant; for one, write {} below [variant.{}]", key,
                       name.substr(0, name.find('.')));
  if (std::string familiar = familiar_hint(key, FamiliarPlace::knob); !familiar.empty())
    return familiar;
  std::vector<std::string_view> names;
  std::string elsewhere(see_fields);
  for (const Field& field : field_table()) {
    names.push_back(field.name);
    if (field.name.substr(field.name.find('.') + 1) == key && is_built(field))
      elsewhere = fmt::format("did you mean '{}'?", field.name);
  }
  return did_you_mean(name, names, elsewhere);
}

bool is_a_size(const Field& field) {
  const bool is_number = field.values.kind == FieldKind::integer ||
                         field.values.kind == FieldKind::number ||
                         field.values.kind == FieldKind::bytes;
  return is_built(field) && is_number && field.scope == FieldScope::variant;
}

std::optional<PlacedText> extends_of(const TomlTable& file) {
  const TomlEntry* entry = find(file, "extends");
  if (entry == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string>(&entry->value.content);
  if (text == nullptr) return std::nullopt;
  return PlacedText{*text, entry->value.place, entry->value.text_place};
}

void read_into(ScenarioDraft& draft, const TomlTable& file, std::vector<Diagnostic>& diagnostics) {
  DraftReader(draft, diagnostics).read(file);
}

}  // namespace stepgate
