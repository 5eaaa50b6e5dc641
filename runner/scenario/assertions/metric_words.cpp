// SPDX-License-Identifier: MIT
// Scales and digits.
#include "scenario/assertions/metric_words.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string_view>

#include "base/text/number_words.h"

namespace stepgate {
namespace {

struct Scale {
  double from;  // smallest value that uses the scale
  double size;
  std::string_view name;
};

constexpr double kib = 1024;
constexpr int all_digits = 15;
constexpr Scale second_scales[] = {
    {1, 1, "s"}, {1e-3, 1e-3, "ms"}, {1e-6, 1e-6, "us"}, {0, 1e-9, "ns"}};
constexpr Scale byte_scales[] = {{kib * kib * kib, kib* kib* kib, "GiB"},
                                 {kib * kib, kib* kib, "MiB"},
                                 {kib, kib, "KiB"},
                                 {0, 1, "B"}};
constexpr Scale decimal_scales[] = {
    {1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}, {0, 1, ""}};

// Writes the value at the largest scale that it reaches, to four significant digits plus
// `more_digits`.
std::string scaled(double value, std::span<const Scale> scales, std::string_view gap,
                   int more_digits) {
  for (const Scale& scale : scales) {
    if (std::abs(value) < scale.from) continue;
    return fmt::format("{}{}{}", number_in_words(value / scale.size, 4 + more_digits), gap,
                       scale.name);
  }
  return fmt::format("{}", value);  // not a number
}

}  // namespace

std::string in_words(double value, MetricUnit unit, int more_digits) {
  switch (unit) {
    // Values that are negligible in their unit, such as a thousandth of a byte, are written as 0.
    case MetricUnit::count:
      if (value == std::round(value)) return number_in_words(value, all_digits);
      return number_in_words(std::abs(value) <= 1.1e-6 ? 0 : value, 6 + more_digits);
    case MetricUnit::bytes:
      return scaled(std::abs(value) <= 1.1e-3 ? 0 : value, byte_scales, " ", more_digits);
    case MetricUnit::seconds:
      return value == 0 ? "0 s" : scaled(value, second_scales, " ", more_digits);
    case MetricUnit::ratio:
      // A share below a millionth is indistinguishable from 0.
      return number_in_words(std::abs(value) <= 1.000001e-6 ? 0 : 100 * value, 3 + more_digits) +
             " %";
    case MetricUnit::per_second:
      return scaled(value, decimal_scales, "", more_digits) + "/s";
    case MetricUnit::bytes_per_second:
      return scaled(value, decimal_scales, " ", more_digits) + "B/s";
    case MetricUnit::flops:
      return scaled(value, decimal_scales, " ", more_digits) + "flop";
    case MetricUnit::bound_class:
      return std::string(name_of(static_cast<BoundClass>(std::lround(value) - 1)));
  }
  return {};
}

}  // namespace stepgate
