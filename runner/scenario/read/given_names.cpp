// SPDX-License-Identifier: MIT
#include "scenario/read/given_names.h"

#include <algorithm>

#include "base/text/ascii.h"

namespace stepgate {
namespace {

bool is_small(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c);
}

bool is_letter_or_digit(char c) {
  return is_small(c) || (c >= 'A' && c <= 'Z');
}

bool is_all_of(std::string_view text, bool (*allowed)(char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace

bool is_variant_name(std::string_view text) {
  return is_all_of(text, [](char c) { return is_letter_or_digit(c) || c == '_'; }) &&
         !is_digit(text[0]);
}

bool is_line_name(std::string_view text) {
  return is_all_of(text, [](char c) { return is_letter_or_digit(c) || c == '_' || c == '-'; });
}

bool is_tag(std::string_view text) {
  return is_all_of(text, [](char c) { return is_small(c) || c == '_' || c == '-'; });
}

}  // namespace stepgate
