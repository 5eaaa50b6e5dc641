// SPDX-License-Identifier: MIT
// Forms of fields (fields.h, record_json.h) for what a program of somebody else says: JSON that is
// documented, numbers and texts within bounds, and nothing that a terminal would act on.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/record/record_json.h"

namespace stepgate {

// A whole number from `least` to `most`; nanoseconds are written as one.
struct Whole {
  std::int64_t least = 0;
  std::int64_t most = 0;

  static RecordJson write(std::int64_t value) { return value; }
  static RecordJson write(std::chrono::nanoseconds value) { return value.count(); }
  void read(const RecordJson& json, std::int64_t& value) const {
    const bool is_whole = json.is_number_integer() &&
                          (!json.is_number_unsigned() || json.get<std::uint64_t>() <= INT64_MAX);
    value = is_whole ? json.get<std::int64_t>() : least;
    if (!is_whole || value < least || value > most)
      throw WrongRecord(json, fmt::format("is not a whole number from {} to {}", least, most));
  }
  void read(const RecordJson& json, std::chrono::nanoseconds& value) const {
    std::int64_t count = 0;
    read(json, count);
    value = std::chrono::nanoseconds(count);
  }
};

// A finite number of at least 0, or a share, which is at most 1.
struct Amount {
  bool is_share = false;

  static RecordJson write(double value) { return value; }
  void read(const RecordJson& json, double& value) const {
    value = json.is_number() ? json.get<double>() : -1;
    if (!std::isfinite(value) || value < 0 || (is_share && value > 1))
      throw WrongRecord(json, is_share ? "is no share" : "is no number from 0 up");
  }
};

// Whether the text has control characters: those of ASCII, and U+0080 to U+009F, which UTF-8 writes
// as C2 80 to C2 9F.
inline bool has_controls(std::string_view text) {
  unsigned char before = 0;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < ' ' || code == 0x7F || (before == 0xC2 && code < 0xA0)) return true;
    before = code;
  }
  return false;
}

// A text of `least` to `most` bytes without control characters, since it is printed in reports.
// Without `most` any text is valid.
struct Text {
  std::size_t least = 0;
  std::size_t most = SIZE_MAX;

  static RecordJson write(const std::string& value) { return value; }
  void read(const RecordJson& json, std::string& value) const {
    if (!json.is_string()) throw WrongRecord(json, words());
    value = json.get<std::string>();
    if (most == SIZE_MAX) return;
    if (value.size() < least || value.size() > most || has_controls(value))
      throw WrongRecord(json, words());
  }

 private:
  std::string words() const {
    return most == SIZE_MAX
               ? "is no text"
               : fmt::format("is not a text of {} to {} printable characters", least, most);
  }
};

// The form that the type has by default (JsonForm).
struct OfType {
  static RecordJson write(const auto& value) { return record_json(value); }
  static void read(const RecordJson& json, auto& value) { read_record(json, value); }
};

// A list of at most `most` values of the form `element`; `is_of_different` refuses equal ones.
template <auto element>
struct ListOf {
  std::size_t most = 0;
  bool is_of_different = false;

  template <class Value>
  static RecordJson write(const std::vector<Value>& values) {
    RecordJson list = RecordJson::array();
    for (const Value& value : values) list.push_back(element.write(value));
    return list;
  }
  template <class Value>
  void read(const RecordJson& json, std::vector<Value>& values) const {
    if (!json.is_array() || json.size() > most)
      throw WrongRecord(json, fmt::format("is not a list of at most {}", most));
    values.clear();
    for (std::size_t index = 0; index < json.size(); ++index)
      read_within(index, json[index], values.emplace_back(), element);
    if constexpr (requires(const Value& value) { value < value; }) {
      std::set<Value> seen;
      for (std::size_t index = 0; is_of_different && index < values.size(); ++index) {
        if (!seen.insert(values[index]).second)
          throw WrongRecord(json[index], "is there twice").within(fmt::format("[{}]", index));
      }
    }
  }
};

// An object with at most `most` keys, each a text of the form `name`.
template <auto element>
struct ObjectOf {
  std::size_t most = 0;
  Text name{};

  template <class Value>
  static RecordJson write(const std::map<std::string, Value>& values) {
    typename RecordJson::object_t object;
    // Appends without looking up the key, which would take quadratic time.
    for (const auto& [key, value] : values) object.emplace_back(key, element.write(value));
    return object;
  }
  template <class Value>
  void read(const RecordJson& json, std::map<std::string, Value>& values) const {
    if (!json.is_object() || json.size() > most)
      throw WrongRecord(json, fmt::format("is not an object of at most {}", most));
    values.clear();
    for (const auto& [key, value] : json.items()) {
      std::string checked;
      name.read(key, checked);
      read_within(key, value, values[key], element);
    }
  }
};

}  // namespace stepgate
