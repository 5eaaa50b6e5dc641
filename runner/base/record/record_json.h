// SPDX-License-Identifier: MIT
// JSON of values whose fields are listed (fields.h), for what one process of stepgate hands to
// another: nothing is lost on the way, and everything that is wrong has a place and words.
//
// JSON has an object for a record, an array for a list or std::array, an array of pairs for a map,
// null for an absent optional, its name for an enum's value and nanoseconds for a duration.
// fields.h says how a list of rows or of entries differs. A number that is not finite is a text of
// its bits, and a text that is not UTF-8 an object of its bytes, both in hexadecimal.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/record/fields.h"
#include "base/text/enumerators.h"

namespace stepgate {

using RecordJson = nlohmann::ordered_json;

// JSON that its reader refuses. what() continues a sentence that begins with a name: "is not JSON",
// "has no 'device.name'", "has 'steps' twice", "has 'steps' 1.5, which is no whole number".
class WrongRecord : public std::runtime_error {
 public:
  // The error of this value; `fact` follows "which ".
  WrongRecord(const RecordJson& value, std::string_view fact);
  // The error of a missing field.
  static WrongRecord missing(std::string_view field);
  // The error of a key that an object has twice.
  static WrongRecord repeated(std::string_view key);
  // The error of a text as a whole; `fact` is all that what() says.
  static WrongRecord of_text(std::string_view fact);
  // The same error seen from an enclosing value; `place` is put before the path: ".name" or "[3]".
  WrongRecord within(std::string_view place) const;

 private:
  WrongRecord(std::string path, std::string value, std::string fact);

  std::string path_;
  std::string value_;  // empty: the field is missing or there twice, or the text is wrong
  std::string fact_;
};

// The JSON of a text that another process wrote, its keys in the order of the text. Takes time in
// proportion to the text, whatever is in it. Throws WrongRecord for what is not JSON, not an object
// or nests deeper than deepest_json (json_nesting.h), and for a key that an object has twice, which
// readers would understand differently.
RecordJson parsed_object(std::string_view text);

// Makes texts of bytes that are not UTF-8, for readers of reports: json_line writes them with
// replacement characters.
RecordJson with_plain_texts(RecordJson);

RecordJson json_of_text(const std::string&);
std::string text_from(const RecordJson&);
RecordJson json_of_number(double);
double number_from(const RecordJson&);
// Accept a JSON number only, not a text that stands for one (json_of_number).
std::int64_t whole_number_from(const RecordJson&, std::int64_t least, std::int64_t most);
std::uint64_t natural_number_from(const RecordJson&, std::uint64_t most);

// How values of a type are written and read. A type specialises JsonForm with static functions
// `write` and `read` of these signatures. `read` throws WrongRecord.
template <class Value>
struct JsonForm;

template <class Value>
RecordJson record_json(const Value& value) {
  return JsonForm<Value>::write(value);
}
template <class Value>
void read_record(const RecordJson& json, Value& value) {
  JsonForm<Value>::read(json, value);
}
template <class Value>
Value record_from(const RecordJson& json) {
  Value value{};
  read_record(json, value);
  return value;
}

// A form that a field names (fields.h): a value whose functions replace those of JsonForm.
template <class Form, class Value>
concept FormOf = requires(const Form& form, const RecordJson& json, Value& value) {
  { form.write(value) } -> std::same_as<RecordJson>;
  form.read(json, value);
};
template <class Value>
constexpr JsonForm<Value> form_among(Said<>) {
  return {};
}
template <class Value, auto first, auto... rest>
constexpr auto form_among(Said<first, rest...>) {
  if constexpr (FormOf<decltype(first), Value>) {
    return first;
  } else {
    return form_among<Value>(Said<rest...>{});
  }
}

// Reads the value at `place`, a field or the index of an element, so that errors name the place.
template <class Value, class Form = JsonForm<Value>>
void read_within(std::string_view place, const RecordJson& json, Value& value,
                 const Form& form = {}) {
  try {
    form.read(json, value);
  } catch (const WrongRecord& wrong) {
    throw wrong.within(place);
  }
}
template <class Value, class Form = JsonForm<Value>>
void read_within(std::size_t index, const RecordJson& json, Value& value, const Form& form = {}) {
  read_within('[' + std::to_string(index) + ']', json, value, form);
}

template <>
struct JsonForm<bool> {
  static RecordJson write(bool value) { return value; }
  static void read(const RecordJson& json, bool& value) {
    if (!json.is_boolean()) throw WrongRecord(json, "is neither true nor false");
    value = json.get<bool>();
  }
};

template <std::signed_integral Value>
struct JsonForm<Value> {
  static RecordJson write(Value value) { return std::int64_t{value}; }
  static void read(const RecordJson& json, Value& value) {
    using Limits = std::numeric_limits<Value>;
    value = static_cast<Value>(whole_number_from(json, Limits::min(), Limits::max()));
  }
};

template <std::unsigned_integral Value>
struct JsonForm<Value> {
  static RecordJson write(Value value) { return std::uint64_t{value}; }
  static void read(const RecordJson& json, Value& value) {
    value = static_cast<Value>(natural_number_from(json, std::numeric_limits<Value>::max()));
  }
};

// A float is written as a double, without loss.
template <std::floating_point Value>
struct JsonForm<Value> {
  static RecordJson write(Value value) { return json_of_number(value); }
  static void read(const RecordJson& json, Value& value) {
    value = static_cast<Value>(number_from(json));
  }
};

template <>
struct JsonForm<std::string> {
  static RecordJson write(const std::string& value) { return json_of_text(value); }
  static void read(const RecordJson& json, std::string& value) { value = text_from(json); }
};

template <>
struct JsonForm<std::chrono::nanoseconds> {
  static RecordJson write(std::chrono::nanoseconds value) { return value.count(); }
  static void read(const RecordJson& json, std::chrono::nanoseconds& value) {
    value = std::chrono::nanoseconds(record_from<std::int64_t>(json));
  }
};

template <class Enum>
requires std::is_enum_v<Enum>
struct JsonForm<Enum> {
  static RecordJson write(Enum value) {
    return std::string(enumerators<Enum>.at(static_cast<std::size_t>(value)));
  }
  static void read(const RecordJson& json, Enum& value) {
    const std::string name = text_from(json);
    for (std::size_t index = 0; index < enumerators<Enum>.size(); ++index) {
      if (enumerators<Enum>[index] == name) {
        value = static_cast<Enum>(index);
        return;
      }
    }
    throw WrongRecord(json, "is none of the choices");
  }
};

// Writes and reads the fields of a record as a JSON object.
template <Record Value>
RecordJson fields_json(const Value& value) {
  RecordJson object = RecordJson::object();
  for_each_field(
      value, [&]<class Field, class About>(std::string_view name, const Field& field, About about) {
        if constexpr (!says<NotCarried>(about)) {
          if constexpr (is_left_out_if_empty(About{})) {
            if (field == Field{}) return;
          }
          object[std::string(name)] = form_among<Field>(about).write(field);
        }
      });
  return object;
}
template <Record Value>
void read_fields(const RecordJson& json, Value& value) {
  if (!json.is_object()) throw WrongRecord(json, "is no object");
  for_each_field(value,
                 [&]<class Field, class About>(std::string_view name, Field& field, About about) {
                   if constexpr (!says<NotCarried>(about)) {
                     const auto found = json.find(name);
                     if (found != json.end())
                       return read_within(name, *found, field, form_among<Field>(about));
                     if constexpr (!says<MayBeMissing>(About{})) throw WrongRecord::missing(name);
                   }
                 });
}

// Reads the alternative of the variant with that index.
template <class Variant>
Variant read_alternative(std::size_t wanted, const RecordJson& json) {
  Variant value;
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    const auto read = [&](auto& alternative) { read_record(json, alternative); };
    ((index == wanted ? read(value.template emplace<index>()) : void()), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>());
  return value;
}

template <class Value>
struct JsonForm<std::optional<Value>> {
  static RecordJson write(const std::optional<Value>& value) {
    return value ? record_json(*value) : RecordJson();
  }
  static void read(const RecordJson& json, std::optional<Value>& value) {
    value.reset();
    if (!json.is_null()) read_record(json, value.emplace());
  }
};

template <class Value>
struct JsonForm<std::vector<Value>> {
  static RecordJson write(const std::vector<Value>& values) {
    RecordJson list = RecordJson::array();
    for (const Value& value : values) list.push_back(record_json(value));
    return list;
  }
  static void read(const RecordJson& json, std::vector<Value>& values) {
    if (!json.is_array()) throw WrongRecord(json, "is no list");
    values.clear();
    for (std::size_t index = 0; index < json.size(); ++index)
      read_within(index, json[index], values.emplace_back());
  }
};

template <class Value, std::size_t length>
struct JsonForm<std::array<Value, length>> {
  static RecordJson write(const std::array<Value, length>& values) {
    RecordJson list = RecordJson::array();
    for (const Value& value : values) list.push_back(record_json(value));
    return list;
  }
  static void read(const RecordJson& json, std::array<Value, length>& values) {
    if (!json.is_array()) throw WrongRecord(json, "is no list");
    if (json.size() != length) throw WrongRecord(json, "has another length");
    for (std::size_t index = 0; index < length; ++index)
      read_within(index, json[index], values[index]);
  }
};

// A list of records with row_fields: first the list of all texts in them, then a row for each
// record. In a row a text is its index in that list, an enumerator its number. Each element of an
// array has its own column.
template <RowRecord Value>
struct JsonForm<std::vector<Value>> {
  static RecordJson write(const std::vector<Value>& values) {
    std::map<std::string, std::size_t> places;
    RecordJson list = RecordJson::array({RecordJson::array()});
    for (const Value& value : values) {
      RecordJson row = RecordJson::array();
      for_each_field(
          value, [&](std::string_view, const auto& field) { append(row, field, places, list[0]); });
      list.push_back(std::move(row));
    }
    return list;
  }
  static void read(const RecordJson& json, std::vector<Value>& values) {
    if (!json.is_array() || json.empty()) throw WrongRecord(json, "is no list of rows");
    std::vector<std::string> texts;
    read_within(std::size_t{0}, json[0], texts);
    values.assign(json.size() - 1, {});
    for (std::size_t index = 0; index < values.size(); ++index) {
      try {
        read_row(json[index + 1], texts, values[index]);
      } catch (const WrongRecord& wrong) {
        throw wrong.within('[' + std::to_string(index) + ']');
      }
    }
  }

 private:
  template <class Field>
  static void append(RecordJson& row, const Field& field,
                     std::map<std::string, std::size_t>& places, RecordJson& texts) {
    if constexpr (std::is_same_v<Field, std::string>) {
      const auto [place, is_new] = places.try_emplace(field, texts.size());
      if (is_new) texts.push_back(record_json(field));
      row.push_back(place->second);
    } else if constexpr (std::is_enum_v<Field>) {
      row.push_back(static_cast<int>(field));
    } else if constexpr (requires { std::tuple_size<Field>::value; }) {
      for (const auto& element : field) append(row, element, places, texts);
    } else {
      row.push_back(record_json(field));
    }
  }

  static void read_row(const RecordJson& row, const std::vector<std::string>& texts, Value& value) {
    if (!row.is_array()) throw WrongRecord(row, "is no row");
    std::size_t column = 0;
    for_each_field(
        value, [&](std::string_view name, auto& field) { take(row, column, texts, name, field); });
    if (column != row.size()) throw WrongRecord(row, "has more columns than fields");
  }
  template <class Field>
  static void take(const RecordJson& row, std::size_t& column,
                   const std::vector<std::string>& texts, std::string_view name, Field& field) {
    if constexpr (requires { std::tuple_size<Field>::value; }) {
      for (auto& element : field) take(row, column, texts, name, element);
      return;
    }
    if (column == row.size()) throw WrongRecord::missing(name);
    const RecordJson& cell = row[column++];
    if constexpr (std::is_same_v<Field, std::string> || std::is_enum_v<Field>) {
      std::size_t place = 0;
      read_within(name, cell, place);
      if constexpr (std::is_enum_v<Field>) {
        if (place >= enumerators<Field>.size())
          throw WrongRecord(cell, "is none of the choices").within(name);
        field = static_cast<Field>(place);
      } else {
        if (place >= texts.size()) throw WrongRecord(cell, "is none of the texts").within(name);
        field = texts[place];
      }
    } else if constexpr (!requires { std::tuple_size<Field>::value; }) {
      read_within(name, cell, field);
    }
  }
};

template <EntryRecord Value>
struct JsonForm<std::vector<Value>> {
  static RecordJson write(const std::vector<Value>& values) {
    RecordJson object = RecordJson::object();
    for (const auto& [name, value] : values) {
      const RecordJson key = record_json(name);
      if (!key.is_string() || object.contains(key)) return pairs(values);
      object[key.template get<std::string>()] = record_json(value);
    }
    return object;
  }
  static void read(const RecordJson& json, std::vector<Value>& values) {
    values.clear();
    if (json.is_array()) {
      for (std::size_t index = 0; index < json.size(); ++index)
        read_within(index, json[index], values.emplace_back());
      return;
    }
    if (!json.is_object()) throw WrongRecord(json, "is no object");
    for (const auto& [name, value] : json.items()) {
      auto& [own_name, own_value] = values.emplace_back();
      read_record(RecordJson(name), own_name);
      read_within(name, value, own_value);
    }
  }

 private:
  // Writes a list of objects, for names that cannot be JSON keys or that occur twice.
  static RecordJson pairs(const std::vector<Value>& values) {
    RecordJson list = RecordJson::array();
    for (const Value& value : values) list.push_back(record_json(value));
    return list;
  }
};

template <class Key, class Value>
struct JsonForm<std::map<Key, Value>> {
  static RecordJson write(const std::map<Key, Value>& values) {
    RecordJson list = RecordJson::array();
    for (const auto& [key, value] : values)
      list.push_back(RecordJson::array({record_json(key), record_json(value)}));
    return list;
  }
  static void read(const RecordJson& json, std::map<Key, Value>& values) {
    if (!json.is_array()) throw WrongRecord(json, "is no list");
    values.clear();
    for (std::size_t index = 0; index < json.size(); ++index) {
      const std::string place = '[' + std::to_string(index) + ']';
      const RecordJson& pair = json[index];
      if (!pair.is_array() || pair.size() != 2) throw WrongRecord(pair, "is no pair").within(place);
      Key key{};
      read_within(place + "[0]", pair[0], key);
      const auto [at, is_new] = values.try_emplace(std::move(key));
      if (!is_new) throw WrongRecord(pair[0], "is there twice").within(place + "[0]");
      read_within(place + "[1]", pair[1], at->second);
    }
  }
};

template <Record Value>
struct JsonForm<Value> {
  static RecordJson write(const Value& value) { return fields_json(value); }
  static void read(const RecordJson& json, Value& value) { read_fields(json, value); }
};

}  // namespace stepgate
