// SPDX-License-Identifier: MIT
// The names of an enum's values as its declaration writes them, so that no table repeats them. The
// compiler knows them only in its name of a function, "... [with auto value =
// stepgate::Fuse::none]" (GCC, Clang); a number that is no value is "(stepgate::Fuse)3" there.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace stepgate {
namespace enumerators_in_detail {

template <auto value>
constexpr std::string_view name() {
  constexpr std::string_view before = "value = ";
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find(before) + before.size());
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

template <class Enum, int value = 0>
constexpr int count() {
  if constexpr (name<static_cast<Enum>(value)>().find(')') == std::string_view::npos)
    return count<Enum, value + 1>();
  else
    return value;
}

template <class Enum, int... value>
constexpr auto all(std::integer_sequence<int, value...>) {
  return std::array<std::string_view, sizeof...(value)>{name<static_cast<Enum>(value)>()...};
}

}  // namespace enumerators_in_detail

// The names of an enum whose values count from 0: enumerators<SyncWait>[2] is "block".
template <class Enum>
inline constexpr auto enumerators = enumerators_in_detail::all<Enum>(
    std::make_integer_sequence<int, enumerators_in_detail::count<Enum>()>());

}  // namespace stepgate
