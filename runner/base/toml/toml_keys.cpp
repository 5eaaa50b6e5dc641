// SPDX-License-Identifier: MIT
#include "base/toml/toml_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text/nearest.h"

namespace stepgate {
namespace {

bool parse_hexadecimal(std::string_view text, std::uint64_t& to) {
  if (text.size() != 18 || !text.starts_with("0x")) return false;
  const char* end = text.data() + text.size();
  return std::from_chars(text.data() + 2, end, to, 16).ptr == end;
}

}  // namespace

TomlKeys::TomlKeys(const TomlTable& table, Place place, std::string what, Faults& faults,
                   std::string_view way_out)
    : table_(table),
      place_(std::move(place)),
      what_(std::move(what)),
      faults_(faults),
      way_out_(way_out) {}

const TomlEntry* TomlKeys::optional(std::string_view key) {
  known_.push_back(key);
  return find(table_, key);
}

const TomlEntry* TomlKeys::required(std::string_view key) {
  const TomlEntry* entry = optional(key);
  if (entry == nullptr) {
    fault(place_, fmt::format("'{}' is missing in {}", key, what_));
  }
  return entry;
}

void TomlKeys::text(std::string_view key, std::string& to) {
  if (const TomlEntry* entry = required(key)) text(*entry, to);
}

void TomlKeys::text_if_any(std::string_view key, std::string& to) {
  if (const TomlEntry* entry = optional(key)) text(*entry, to);
}

void TomlKeys::hexadecimal_number(std::string_view key, std::uint64_t& to) {
  const TomlEntry* entry = required(key);
  if (entry == nullptr) return;
  const auto* value = std::get_if<std::string>(&entry->value.content);
  if (value == nullptr || !parse_hexadecimal(*value, to)) {
    wrong_type(*entry, "a string of 0x and 16 hexadecimal digits");
  }
}

void TomlKeys::number(std::string_view key, double low, double high, double& to) {
  if (const TomlEntry* entry = required(key)) number(*entry, low, high, to);
}

void TomlKeys::number_if_any(std::string_view key, double low, double high,
                             std::optional<double>& to) {
  const TomlEntry* entry = optional(key);
  if (entry == nullptr) return;
  double value = low;
  number(*entry, low, high, value);
  to = value;
}

void TomlKeys::text(const TomlEntry& entry, std::string& to) {
  if (const auto* value = std::get_if<std::string>(&entry.value.content)) {
    to = *value;
  } else {
    wrong_type(entry, "a string");
  }
}

void TomlKeys::number(const TomlEntry& entry, double low, double high, double& to) {
  const auto value = number(entry.value);
  if (value && *value >= low && *value <= high) {
    to = *value;
  } else {
    wrong_type(entry, std::isinf(high) ? fmt::format("a number of at least {}", low)
                                       : fmt::format("a number from {} to {}", low, high));
  }
}

void TomlKeys::count(std::string_view key, std::int64_t& to) {
  const TomlEntry* entry = required(key);
  if (entry == nullptr) return;
  const auto* value = std::get_if<std::int64_t>(&entry->value.content);
  if (value != nullptr && *value >= 0) {
    to = *value;
  } else {
    wrong_type(*entry, "a whole number of at least 0");
  }
}

std::vector<TomlKeys::Table> TomlKeys::tables(const TomlEntry& entry) {
  const auto* list = std::get_if<TomlArray>(&entry.value.content);
  std::vector<Table> found;
  if (list != nullptr) {
    for (const TomlValue& value : *list) {
      if (const auto* table = std::get_if<TomlTable>(&value.content)) {
        found.push_back({table, value.place});
      }
    }
    if (found.size() == list->size()) return found;
  }
  wrong_type(entry, fmt::format("written as [[{}]]", entry.key));
  return {};
}

bool TomlKeys::is_format(std::int64_t newest, std::string_view file_kind,
                         std::string_view otherwise) {
  const TomlEntry* entry = required("format");
  if (entry == nullptr) return false;
  const auto* format = std::get_if<std::int64_t>(&entry->value.content);
  if (format == nullptr || *format < 1) {
    wrong_type(*entry, "a whole number of at least 1");
    return false;
  }
  if (*format == newest) return true;
  faults_.push_back(
      {entry->value.place,
       fmt::format("{} format {} is newer than {}, the newest that this stepgate knows", file_kind,
                   *format, newest),
       fmt::format("use a newer stepgate, or {}", otherwise)});
  return false;
}

void TomlKeys::wrong_type(const TomlEntry& entry, std::string_view wanted) {
  fault(entry.value.place, fmt::format("'{}' must be {}", entry.key, wanted));
}

void TomlKeys::fault(const Place& place, std::string message) {
  faults_.push_back({place, std::move(message), std::string(way_out_)});
}

void TomlKeys::refuse_the_rest() {
  for (const TomlEntry& entry : table_) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    faults_.push_back({entry.place, fmt::format("unknown key '{}' in {}", entry.key, what_),
                       did_you_mean(entry.key, known_, std::string(way_out_))});
  }
}

std::optional<double> TomlKeys::number(const TomlValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.content)) {
    return static_cast<double>(*whole);
  }
  const auto* real = std::get_if<double>(&value.content);
  return real && std::isfinite(*real) ? std::optional(*real) : std::nullopt;
}

}  // namespace stepgate
