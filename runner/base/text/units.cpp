// SPDX-License-Identifier: MIT
// The unit table, and reading and printing by it.
#include "base/text/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text/ascii.h"

namespace stepgate {
namespace {

constexpr double kibi = 1024.0;

constexpr std::array<Unit, 10> unit_table{{
    {"%", Dimension::plain, 0.01},
    {"ns", Dimension::seconds, 1e-9},
    {"us", Dimension::seconds, 1e-6},
    {"ms", Dimension::seconds, 1e-3},
    {"s", Dimension::seconds, 1.0},
    {"B", Dimension::bytes, 1.0},
    {"KiB", Dimension::bytes, kibi},
    {"MiB", Dimension::bytes, kibi* kibi},
    {"GiB", Dimension::bytes, kibi* kibi* kibi},
    {"GB/s", Dimension::bytes_per_second, 1e9},
}};

std::string_view without_leading_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

// A decimal number as two integers, so that no byte is lost to rounding.
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;
  std::uint64_t fraction_base = 1;  // ten to the power of the number of digits
  std::size_t length = 0;           // length of the text read
};

constexpr int most_fraction_digits = 9;  // times 2^30 stays below 2^63

std::optional<Decimal> decimal_prefix(std::string_view text) {
  Decimal decimal;
  const char* const end = text.data() + text.size();
  const auto whole = std::from_chars(text.data(), end, decimal.whole);
  if (whole.ec != std::errc{}) return std::nullopt;
  const char* at = whole.ptr;
  if (at != end && *at == '.') {
    int digits = 0;
    for (++at; at != end && is_digit(*at); ++at) {
      if (++digits > most_fraction_digits) return std::nullopt;
      decimal.fraction = decimal.fraction * 10 + static_cast<std::uint64_t>(*at - '0');
      decimal.fraction_base *= 10;
    }
    if (digits == 0) return std::nullopt;
  }
  decimal.length = static_cast<std::size_t>(at - text.data());
  return decimal;
}

// Writes three significant digits, or all digits before the point; never "1e+03".
std::string rounded_text(double value) {
  constexpr double four_digits = 999.5;
  return std::abs(value) < four_digits ? fmt::format("{:.3g}", value)
                                       : fmt::format("{:.0f}", value);
}

std::string scaled_text(double value, Dimension dimension) {
  const Unit* chosen = nullptr;
  for (const Unit& unit : unit_table) {
    if (unit.dimension != dimension) continue;
    if (chosen == nullptr || std::abs(value) >= unit.scale) chosen = &unit;
  }
  return fmt::format("{} {}", rounded_text(value / chosen->scale), chosen->name);
}

}  // namespace

std::span<const Unit> units() {
  return unit_table;
}

const Unit* unit_named(std::string_view name) {
  for (const Unit& unit : unit_table) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

std::optional<NumberPrefix> number_prefix(std::string_view text) {
  // from_chars alone would also accept "inf", "nan" and a sign.
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  NumberPrefix prefix;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), prefix.value);
  if (read.ec != std::errc{} || !std::isfinite(prefix.value)) return std::nullopt;
  prefix.length = static_cast<std::size_t>(read.ptr - text.data());
  return prefix;
}

std::optional<double> parse_number(std::string_view text) {
  const auto number = number_prefix(text);
  const bool is_all = number && number->length == text.size() && is_digit(text.back());
  const bool has_zeros = text.size() > 1 && text.front() == '0' && is_digit(text[1]);
  return is_all && !has_zeros ? std::optional(number->value) : std::nullopt;
}

std::optional<std::uint64_t> parse_whole_number(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, failed] = std::from_chars(text.data(), end, number);
  return failed == std::errc{} && read_to == end ? std::optional(number) : std::nullopt;
}

std::optional<Quantity> parse_quantity(std::string_view text) {
  const auto number = number_prefix(text);
  if (!number) return std::nullopt;
  const std::string_view name = without_leading_spaces(text.substr(number->length));
  if (name.empty()) return Quantity{number->value, Dimension::plain};
  const Unit* unit = unit_named(name);
  if (unit == nullptr) return std::nullopt;
  return Quantity{number->value * unit->scale, unit->dimension};
}

BytesOrProblem parse_bytes(std::string_view text) {
  if (text.empty() || !is_digit(text.front())) return "is not a size";
  const auto decimal = decimal_prefix(text);
  if (!decimal) return "is too long for a size";
  const std::string_view name = without_leading_spaces(text.substr(decimal->length));
  if (name.empty()) return "has no unit";
  const Unit* unit = unit_named(name);
  if (unit == nullptr || unit->dimension != Dimension::bytes) {
    return fmt::format("has no unit of size, but '{}'", name);
  }
  const auto scale = static_cast<std::uint64_t>(unit->scale);
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (decimal->whole >= most / scale) return "is more than can be counted";
  if (decimal->fraction * scale % decimal->fraction_base != 0) {
    return "is not a whole number of bytes";
  }
  return static_cast<std::int64_t>(decimal->whole * scale +
                                   decimal->fraction * scale / decimal->fraction_base);
}

std::string bytes_text(std::int64_t bytes) {
  const Unit* chosen = unit_named("B");
  for (const Unit& unit : unit_table) {
    if (unit.dimension != Dimension::bytes || bytes == 0) continue;
    if (bytes % static_cast<std::int64_t>(unit.scale) == 0) chosen = &unit;
  }
  return fmt::format("{} {}", bytes / static_cast<std::int64_t>(chosen->scale), chosen->name);
}

std::string rounded_bytes_text(double bytes) {
  return scaled_text(bytes, Dimension::bytes);
}

std::string size_text(std::int64_t bytes) {
  return rounded_bytes_text(static_cast<double>(bytes));
}

std::string seconds_text(double seconds) {
  return scaled_text(seconds, Dimension::seconds);
}

std::string percent_text(double ratio) {
  return rounded_text(ratio * 100) + '%';
}

}  // namespace stepgate
