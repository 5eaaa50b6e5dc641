// SPDX-License-Identifier: MIT
// Signs and words, and places of bytes in columns of code points.
#include "scenario/assertions/assertion_text.h"

#include <array>

#include "base/text/ascii.h"
#include "base/text/utf8.h"

namespace stepgate {
namespace {

// Longer signs come first, since the first match is taken.
const std::array<RelationSign, 12> relation_signs{{
    {"<=", Relation::at_most, ""},
    {">=", Relation::at_least, ""},
    {"==", Relation::equal, ""},
    {"~=", Relation::about, ""},
    {"=>", std::nullopt, "write >="},
    {"=<", std::nullopt, "write <="},
    {"!=", std::nullopt, "write < or >, whichever is meant"},
    {"<>", std::nullopt, "write < or >, whichever is meant"},
    {"=", std::nullopt, "write =="},
    {"~", std::nullopt, "write ~= ... within 3%"},
    {"<", Relation::less, ""},
    {">", Relation::greater, ""},
}};

template <class Predicate>
std::string_view leading(std::string_view text, Predicate wanted) {
  std::size_t end = 0;
  while (end < text.size() && wanted(text[end])) ++end;
  return text.substr(0, end);
}

}  // namespace

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void AssertionText::skip_spaces() {
  skip(leading(rest(), [](char c) { return c == ' ' || c == '\t'; }).size());
}

bool AssertionText::take(std::string_view expected) {
  if (!rest().starts_with(expected)) return false;
  skip(expected.size());
  return true;
}

std::string_view AssertionText::word() const {
  return leading(rest(), [](char c) { return is_letter(c) || is_digit(c); });
}

std::string_view AssertionText::unit_word() const {
  return leading(rest(), [](char c) { return is_letter(c) || c == '%' || c == '/'; });
}

const RelationSign* AssertionText::sign_here() const {
  for (const RelationSign& sign : relation_signs) {
    if (rest().starts_with(sign.sign)) return &sign;
  }
  return nullptr;
}

std::string_view AssertionText::seen() const {
  if (const RelationSign* sign = sign_here()) return sign->sign;
  if (!word().empty()) return word();
  // Takes a whole code point, so that the message stays UTF-8.
  std::size_t length = 1;
  while (length < rest().size() && (static_cast<unsigned char>(rest()[length]) & 0xc0U) == 0x80U) {
    ++length;
  }
  return rest().substr(0, length);
}

Place AssertionText::place_of(std::size_t where) const {
  Place place = start_;
  if (place.line > 0) place.column += count_code_points(text_.substr(0, where));
  return place;
}

bool AssertionText::fail(std::size_t where, std::string message, std::string hint) {
  problem_ = Diagnostic{place_of(where), std::move(message), std::move(hint)};
  return false;
}

}  // namespace stepgate
