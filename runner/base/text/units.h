// SPDX-License-Identifier: MIT
// Numbers with units, read and printed: "64 KiB", "5%", "60 us", "10 GB/s". The caller knows which
// quantity belongs where.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace stepgate {

inline constexpr std::int64_t kibibyte = 1024;
inline constexpr std::int64_t mebibyte = 1024 * kibibyte;
inline constexpr std::int64_t gibibyte = 1024 * mebibyte;
inline constexpr double hertz_per_megahertz = 1e6;

enum class Dimension { plain, seconds, bytes, bytes_per_second };

struct Unit {
  std::string_view name;
  Dimension dimension;
  double scale;  // size of one unit in seconds, bytes or bytes per second; 0.01 for "%"
};

// All units: % ns us ms s B KiB MiB GiB GB/s.
std::span<const Unit> units();

// Returns nullptr when there is no such unit. Case matters: "kib" is none.
const Unit* unit_named(std::string_view name);

// A value in the base unit of its dimension: "60 us" is 6e-5 seconds, "5%" is 0.05.
struct Quantity {
  double value = 0;
  Dimension dimension = Dimension::plain;
  bool operator==(const Quantity&) const = default;
};

// Parses a number that is not negative, followed by an optional unit with or without a space
// between. nullopt when the text is anything else.
std::optional<Quantity> parse_quantity(std::string_view text);

// The longest prefix that is a decimal number ("1.5e3"): its value and length. nullopt when the
// text does not start with a digit or the number does not fit a double.
struct NumberPrefix {
  double value = 0;
  std::size_t length = 0;
};
std::optional<NumberPrefix> number_prefix(std::string_view text);

// The number that a whole text is, written as in a scenario and in decimal digits: without a sign,
// and without zeros before it. nullopt when it is anything else or does not fit.
std::optional<double> parse_number(std::string_view text);
std::optional<std::uint64_t> parse_whole_number(std::string_view text);

// The exact number of bytes, or what is wrong with the text ("has no unit").
using BytesOrProblem = std::variant<std::int64_t, std::string>;
BytesOrProblem parse_bytes(std::string_view text);

// Writes the exact size in the largest unit that divides it: 65536 is "64 KiB", 1500 is "1500 B".
std::string bytes_text(std::int64_t bytes);

// Writes a size to about three digits: 10000000 is "9.54 MiB".
std::string rounded_bytes_text(double bytes);
std::string size_text(std::int64_t bytes);

// Writes a time to about three digits, in ns, us, ms or s: 6e-5 is "60 us".
std::string seconds_text(double seconds);

// Writes a ratio to about three digits: 0.05 is "5%".
std::string percent_text(double ratio);

}  // namespace stepgate
