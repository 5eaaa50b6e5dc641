// SPDX-License-Identifier: MIT
// The fields of a struct, listed once behind its declaration. Writers, readers and tests walk that
// list, so that no wire can leave a field out:
//
//   struct DeviceKey {
//     std::string name;
//     std::string value;
//   };
//   template <>
//   inline constexpr auto fields_of<DeviceKey> = fields<&DeviceKey::name, &DeviceKey::value>;
//
// A field is called what the member is called. Code that walks a list that lacks a member does not
// compile: "only 1 name provided for structured binding, while DeviceKey decomposes into 2".
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "base/record/members.h"

namespace stepgate {

template <auto... member>
struct Fields {};
template <auto... member>
inline constexpr Fields<member...> fields{};

// `row_fields` replaces `fields` for a record that is listed by the thousands. JSON then has a row
// of values for each record, without the names of the fields.
template <auto... member>
struct RowFields : Fields<member...> {};
template <auto... member>
inline constexpr RowFields<member...> row_fields{};

// `entry_fields` replaces `fields` for a record that is a name and a value. JSON then has one
// object for a list of them, with a key for each name.
template <auto name, auto named>
struct EntryFields : Fields<name, named> {};
template <auto name, auto named>
inline constexpr EntryFields<name, named> entry_fields{};

// `described` replaces a member in a list to add attributes `said`, which readers and writers find
// by their types: Named, MayBeMissing, NotCarried below and the forms of record_json.h and
// ledger/record/record.h.
//   fields<&Ran::steps, described<&Ran::elapsed, Named("elapsed_ns")>>
template <auto member, auto... said>
struct Described {};
template <auto member, auto... said>
inline constexpr Described<member, said...> described{};

template <auto... said>
struct Said {};

// The field has another name than the member.
template <std::size_t size>
struct Named {
  consteval Named(const char (&literal)[size]) {
    for (std::size_t at = 0; at < size; ++at) text[at] = literal[at];
  }
  char text[size]{};
};
// The field may be missing; it is then read as the member's default. If is_left_out is set, writers
// leave the field out where it is empty, zero or false.
struct MayBeMissing {
  bool is_left_out = false;
};
inline constexpr MayBeMissing may_be_missing{false};
inline constexpr MayBeMissing only_if_any{true};
// The member is neither written nor read.
struct NotCarried {};
inline constexpr NotCarried not_carried{};

struct NoFields {};
// The fields of a type; NoFields for a type that lists none.
template <class Value>
inline constexpr NoFields fields_of{};

template <class Value>
concept Record =
    !std::is_same_v<std::remove_cv_t<decltype(fields_of<std::remove_cv_t<Value>>)>, NoFields>;

namespace fields_in_detail {

template <auto... member>
constexpr bool is_row(const RowFields<member...>&) {
  return true;
}
constexpr bool is_row(...) {
  return false;
}
template <auto name, auto named>
constexpr bool is_entry(const EntryFields<name, named>&) {
  return true;
}
constexpr bool is_entry(...) {
  return false;
}

// Gets the member's name from the compiler's name of this function: "... [with auto member =
// &stepgate::DeviceKey::name]" (GCC), "[member = &stepgate::DeviceKey::name]" (Clang).
template <auto member>
consteval std::string_view name_in_function() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of(";]"));
  text = text.substr(text.rfind(':') + 1);
  return text.substr(0, text.find(')'));
}

// One element of a list: a member, or a Described with one.
template <auto listed, class = std::remove_cv_t<decltype(listed)>>
struct Listed {
  static constexpr auto member = listed;
  using About = Said<>;
  static constexpr std::string_view name = name_in_function<listed>();
};

template <std::size_t size>
constexpr std::string_view name_among(std::string_view, const Named<size>& named, const auto&...) {
  return {named.text, size - 1};
}
constexpr std::string_view name_among(std::string_view name) {
  return name;
}
constexpr std::string_view name_among(std::string_view name, const auto&, const auto&... rest) {
  return name_among(name, rest...);
}

template <auto listed, auto of, auto... said>
struct Listed<listed, Described<of, said...>> {
  static constexpr auto member = of;
  using About = Said<said...>;
  static constexpr std::string_view name = name_among(name_in_function<of>(), said...);
};

template <auto... listed>
constexpr bool are_listed_once() {
  const std::array<std::string_view, sizeof...(listed)> names{
      name_in_function<Listed<listed>::member>()...};
  for (std::size_t one = 0; one < names.size(); ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      if (names[one] == names[other]) return false;
    }
  }
  return true;
}

}  // namespace fields_in_detail

template <class Value>
concept RowRecord = Record<Value> && fields_in_detail::is_row(fields_of<Value>);
template <class Value>
concept EntryRecord = Record<Value> && fields_in_detail::is_entry(fields_of<Value>);

template <class Wanted, auto... said>
constexpr bool says(Said<said...>) {
  return (std::is_same_v<std::remove_cv_t<decltype(said)>, Wanted> || ...);
}
template <class One>
constexpr bool says_left_out(const One& one) {
  if constexpr (std::is_same_v<One, MayBeMissing>) {
    return one.is_left_out;
  } else {
    return false;
  }
}
template <auto... said>
constexpr bool is_left_out_if_empty(Said<said...>) {
  return (says_left_out(said) || ...);
}

// Calls visit(name, member of the value) for each field, in the order of the list. A visitor with
// three parameters also gets the field's attributes as Said<...>.
template <Record Value, class Visit>
constexpr void for_each_field(Value& value, Visit&& visit) {
  const auto visit_one = [&]<class One>(One, auto& member) {
    if constexpr (std::is_invocable_v<Visit&, std::string_view, decltype(member),
                                      typename One::About>) {
      visit(One::name, member, typename One::About{});
    } else {
      visit(One::name, member);
    }
  };
  [&]<auto... listed>(Fields<listed...>) {
    static_assert(fields_in_detail::are_listed_once<listed...>(), "a field is listed twice");
    with_members<sizeof...(listed)>(value, [](const auto&...) {});
    (visit_one(fields_in_detail::Listed<listed>{}, value.*fields_in_detail::Listed<listed>::member),
     ...);
  }
  (fields_of<std::remove_const_t<Value>>);
}

}  // namespace stepgate
