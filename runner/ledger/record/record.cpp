// SPDX-License-Identifier: MIT
// Writes one line per key. Short lists are one line, so that a diff shows records as blocks.
#include "ledger/record/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/toml/toml_text.h"

namespace stepgate {
namespace {

// The least positive value with the written precision. A smaller one would be written as 0, which
// readers refuse.
constexpr double least_microseconds = 0.001;
// This is more than 11 days.
constexpr double most_microseconds = 1e12;

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

std::string series_text(const SeriesForm& form, const std::vector<double>& series) {
  if (form.layout == SeriesForm::Layout::millionths) {
    return fmt::format("[{:.6f}]", fmt::join(series, ", "));
  }
  constexpr std::size_t numbers_in_a_line = 8;
  std::string text = "[";
  for (std::size_t index = 0; index < series.size(); ++index) {
    text += index % numbers_in_a_line == 0 ? "\n  " : " ";
    text += fmt::format("{},", series[index]);
  }
  return text + "\n]";
}

}  // namespace

void RecordWriter::text(std::string_view key, const std::string& value) {
  text_ += fmt::format("{} = {}\n", key, toml_string(value));
}

void RecordWriter::hexadecimal(std::string_view key, std::uint64_t value) {
  text(key, stepgate::hexadecimal(value));
}

void RecordWriter::count(std::string_view key, std::int64_t value) {
  text_ += fmt::format("{} = {}\n", key, value);
}

void RecordWriter::number(std::string_view key, double value) {
  text_ += fmt::format("{} = {}\n", key, value);
}

void RecordWriter::microseconds(std::string_view key, double seconds) {
  text_ += fmt::format("{} = {:.3f}\n", key, 1e6 * seconds);
}

void RecordWriter::series(std::string_view key, const SeriesForm& form,
                          const std::vector<double>& values) {
  text_ += fmt::format("{} = {}\n", key, series_text(form, values));
}

void RecordWriter::named_series(std::string_view key, const SeriesForm& form,
                                const NamedSeries& all) {
  if (all.empty()) return;
  begin_table(within(key));
  for (const auto& [name, values] : all) series(toml_string(name), form, values);
}

std::string RecordWriter::within(std::string_view key) const {
  return joined(path_, key);
}

void RecordWriter::begin_table(const std::string& path) {
  begin(path, fmt::format("[{}]\n", path));
}

void RecordWriter::begin_tables(const std::string& path) {
  begin(path, fmt::format("[[{}]]\n", path));
}

void RecordWriter::begin(const std::string& path, std::string header) {
  const bool is_at_the_top = path.find('.') == std::string::npos;
  text_ += (is_at_the_top ? "\n" : "") + std::move(header);
}

RecordReader::RecordReader(const TomlTable& table, Place place, std::string what, std::string path,
                           TomlKeys::Faults& faults, std::string_view way_out)
    : table_(table),
      place_(std::move(place)),
      what_(std::move(what)),
      path_(std::move(path)),
      faults_(faults),
      way_out_(way_out),
      keys_(table, place_, what_, faults, way_out) {}

void RecordReader::number_if_any(std::string_view key, std::optional<double>& to) {
  keys_.number_if_any(key, 0, std::numeric_limits<double>::infinity(), to);
}

void RecordReader::microseconds(std::string_view key, double& to_seconds) {
  const TomlEntry* entry = keys_.required(key);
  if (entry == nullptr) return;
  const auto value = TomlKeys::number(entry->value);
  if (value && *value >= least_microseconds && *value < most_microseconds) {
    to_seconds = *value / 1e6;
  } else {
    keys_.wrong_type(*entry, "a number of microseconds, at least 0.001");
  }
}

bool RecordReader::series(std::string_view key, const SeriesForm& form, std::vector<double>& to) {
  const TomlEntry* entry = form.is_required ? keys_.required(key) : keys_.optional(key);
  if (entry != nullptr) read_series(*entry, form, to);
  return entry != nullptr;
}

void RecordReader::named_series(std::string_view key, const SeriesForm& form, NamedSeries& to) {
  const TomlEntry* entry = keys_.optional(key);
  const TomlTable* table = entry == nullptr ? nullptr : table_of(*entry);
  if (table == nullptr) return;
  for (const TomlEntry& one : *table) read_series(one, form, to[one.key]);
}

void RecordReader::read_series(const TomlEntry& entry, const SeriesForm& form,
                               std::vector<double>& to) {
  const auto* list = std::get_if<TomlArray>(&entry.value.content);
  if (form.length == 0 && (list == nullptr || list->empty())) {
    return keys_.wrong_type(entry, "a list of at least one number");
  }
  if (form.length != 0 && (list == nullptr || list->size() != form.length)) {
    const std::string found = list == nullptr ? "" : fmt::format(", not of {}", list->size());
    return keys_.wrong_type(entry, fmt::format("a list of {} numbers{}", form.length, found));
  }
  for (const TomlValue& value : *list) {
    const auto number = TomlKeys::number(value);
    if (!number || std::abs(*number) > form.most) {
      return keys_.fault(value.place,
                         fmt::format("'{}' holds what is not a number between {} and {}", entry.key,
                                     -form.most, form.most));
    }
    to.push_back(*number);
  }
}

const TomlTable* RecordReader::table_of(const TomlEntry& entry) {
  const auto* table = std::get_if<TomlTable>(&entry.value.content);
  if (table == nullptr) keys_.wrong_type(entry, "a table");
  return table;
}

std::string RecordReader::within(std::string_view key) const {
  return joined(path_, key);
}

std::string RecordReader::in_words(std::string_view key) {
  const bool is_vowel = std::string_view("aeiou").find(key.front()) != std::string_view::npos;
  return fmt::format("{} {}", is_vowel ? "an" : "a", key);
}

std::string RecordReader::named_in_words(std::string_view what, const std::string& name) {
  return fmt::format("{} '{}'", what, name);
}

void RecordReader::refuse_digest() {
  // Changes "an entry" to "the entry".
  const std::string bare = what_.substr(what_.find(' ') + 1);
  fault("digest",
        fmt::format("the {} was changed after it was written: its digest does not fit", bare));
}

void RecordReader::refuse_the_rest() {
  if (!std::exchange(rest_refused_, true)) keys_.refuse_the_rest();
}

void RecordReader::fault(std::string_view key, std::string message, std::string way_out) {
  if (way_out.empty()) way_out = way_out_;
  faults_.push_back({find(table_, key)->value.place, std::move(message), std::move(way_out)});
}

void RecordFile::throw_faults() {
  if (!faults_.empty()) throw RequestError(std::move(faults_));
}

}  // namespace stepgate
