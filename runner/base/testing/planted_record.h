// SPDX-License-Identifier: MIT
// For tests only: a record in which every field has a different value, so that a format that loses,
// swaps or invents a field gives back another record.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/record/fields.h"

namespace stepgate {

template <class Value>
struct Planted {  // values of other types keep their default
  static void plant(Value& value, int& number) {
    if constexpr (std::is_same_v<Value, bool>) {
      value = true;
    } else if constexpr (std::is_arithmetic_v<Value>) {
      value = static_cast<Value>(++number);
    } else if constexpr (std::is_enum_v<Value>) {
      value = static_cast<Value>(1);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      value = "text " + std::to_string(++number);
    } else if constexpr (Record<Value>) {
      for_each_field(value, [&]<class Field>(std::string_view, Field& field) {
        Planted<Field>::plant(field, number);
      });
    }
  }
};
template <>
struct Planted<std::chrono::nanoseconds> {
  static void plant(std::chrono::nanoseconds& value, int& number) {
    value = std::chrono::nanoseconds(++number);
  }
};
template <class Value>
struct Planted<std::optional<Value>> {
  static void plant(std::optional<Value>& value, int& number) {
    Planted<Value>::plant(value.emplace(), number);
  }
};
template <class Value>
struct Planted<std::vector<Value>> {
  static void plant(std::vector<Value>& values, int& number) {
    for (int each = 0; each < 2; ++each) Planted<Value>::plant(values.emplace_back(), number);
  }
};
template <class Key, class Value>
struct Planted<std::map<Key, Value>> {
  static void plant(std::map<Key, Value>& values, int& number) {
    Key key{};
    Planted<Key>::plant(key, number);
    Planted<Value>::plant(values[key], number);
  }
};
template <class Value, std::size_t length>
struct Planted<std::array<Value, length>> {
  static void plant(std::array<Value, length>& values, int& number) {
    for (Value& value : values) Planted<Value>::plant(value, number);
  }
};

template <class Value>
Value planted_record() {
  Value value{};
  int number = 0;
  Planted<Value>::plant(value, number);
  return value;
}

}  // namespace stepgate
