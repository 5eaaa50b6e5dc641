// SPDX-License-Identifier: MIT
#include "base/record/record_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/text/json_line.h"
#include "base/text/utf8.h"
#include "base/text/visible_text.h"

namespace stepgate {
namespace {

constexpr const char* bytes_key = "bytes";

std::string short_form(const RecordJson& value) {
  constexpr std::size_t most = 40;
  const std::string text = json_line(value);
  return text.size() > most ? text.substr(0, most) + "..." : text;
}

std::string hexadecimal_of(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

// Reads a number from digits; nullopt where the text is not only digits or the number does not fit.
template <class Number>
std::optional<Number> number_of_digits(std::string_view digits) {
  Number number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number, 16);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

std::string bytes_of(const RecordJson& json) {
  const std::string_view digits = json.get_ref<const std::string&>();
  std::string bytes;
  if (digits.size() % 2 != 0) throw WrongRecord(json, "has half a byte");
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    const auto byte = number_of_digits<unsigned char>(digits.substr(at, 2));
    if (!byte) throw WrongRecord(json, "is not hexadecimal");
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

}  // namespace

WrongRecord::WrongRecord(const RecordJson& value, std::string_view fact)
    : WrongRecord("", short_form(value), std::string(fact)) {}

WrongRecord::WrongRecord(std::string path, std::string value, std::string fact)
    : std::runtime_error(value.empty()  ? fmt::format("has no '{}'", one_line(path))
                         : path.empty() ? fmt::format("is {}, which {}", one_line(value), fact)
                                        : fmt::format("has '{}' {}, which {}", one_line(path),
                                                      one_line(value), fact)),
      path_(std::move(path)),
      value_(std::move(value)),
      fact_(std::move(fact)) {}

WrongRecord WrongRecord::missing(std::string_view field) {
  return {std::string(field), "", ""};
}

WrongRecord WrongRecord::within(std::string_view place) const {
  const bool joins = path_.empty() || path_.starts_with('[');
  return {std::string(place) + (joins ? "" : ".") + path_, value_, fact_};
}

RecordJson with_plain_texts(RecordJson json) {
  if (json.is_object() && json.size() == 1 && json.contains(bytes_key) &&
      json.at(bytes_key).is_string())
    return bytes_of(json.at(bytes_key));
  for (RecordJson& part : json) {
    if (part.is_structured()) part = with_plain_texts(std::move(part));
  }
  return json;
}

RecordJson json_of_text(const std::string& text) {
  if (!first_bad_utf8(text)) return text;
  return {{bytes_key, hexadecimal_of(text)}};
}

std::string text_from(const RecordJson& json) {
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_object() || !json.contains(bytes_key) || !json.at(bytes_key).is_string())
    throw WrongRecord(json, "is no text");
  return bytes_of(json.at(bytes_key));
}

RecordJson json_of_number(double number) {
  if (std::isfinite(number)) return number;
  return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(number));
}

double number_from(const RecordJson& json) {
  if (json.is_number()) return json.get<double>();
  const auto bits = json.is_string()
                        ? number_of_digits<std::uint64_t>(json.get_ref<const std::string&>())
                        : std::optional<std::uint64_t>();
  const double number = std::bit_cast<double>(bits.value_or(0));
  if (!bits || std::isfinite(number)) throw WrongRecord(json, "is no number");
  return number;
}

std::int64_t whole_number_from(const RecordJson& json, std::int64_t least, std::int64_t most) {
  if (!json.is_number_integer()) throw WrongRecord(json, "is no whole number");
  const bool fits = !json.is_number_unsigned() || json.get<std::uint64_t>() <= INT64_MAX;
  const std::int64_t number = fits ? json.get<std::int64_t>() : 0;
  if (!fits || number < least || number > most)
    throw WrongRecord(json, fmt::format("is not from {} to {}", least, most));
  return number;
}

std::uint64_t natural_number_from(const RecordJson& json, std::uint64_t most) {
  const bool is_natural =
      json.is_number_unsigned() || (json.is_number_integer() && json.get<std::int64_t>() >= 0);
  if (!is_natural || json.get<std::uint64_t>() > most)
    throw WrongRecord(json, fmt::format("is no whole number from 0 to {}", most));
  return json.get<std::uint64_t>();
}

}  // namespace stepgate
