// SPDX-License-Identifier: MIT
// Scales and digits.
#include "judge/words.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

namespace stepgate {
namespace {

struct Scale {
  double from;  // values of at least this use the scale
  double size;
  std::string_view name;
};

constexpr double kib = 1024;
constexpr Scale second_scales[] = {
    {1, 1, "s"}, {1e-3, 1e-3, "ms"}, {1e-6, 1e-6, "us"}, {0, 1e-9, "ns"}};
constexpr Scale byte_scales[] = {{kib * kib * kib, kib* kib* kib, "GiB"},
                                 {kib * kib, kib* kib, "MiB"},
                                 {kib, kib, "KiB"},
                                 {0, 1, "B"}};
constexpr Scale decimal_scales[] = {
    {1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}, {0, 1, ""}};

// Four significant digits at the largest scale that the value reaches.
std::string scaled(double value, std::span<const Scale> scales, std::string_view gap) {
  for (const Scale& scale : scales) {
    if (std::abs(value) < scale.from) continue;
    return fmt::format("{:.4g}{}{}", value / scale.size, gap, scale.name);
  }
  return fmt::format("{}", value);  // not a number
}

}  // namespace

std::string in_words(double value, MetricUnit unit) {
  switch (unit) {
    // What could not be told from nothing is nothing: a millionth of a count, a thousandth of a
    // byte.
    case MetricUnit::count:
      return fmt::format("{:.6g}", std::abs(value) <= 1.1e-6 ? 0 : value);
    case MetricUnit::bytes:
      return scaled(std::abs(value) <= 1.1e-3 ? 0 : value, byte_scales, " ");
    case MetricUnit::seconds:
      return value == 0 ? "0 s" : scaled(value, second_scales, " ");
    case MetricUnit::ratio:
      // A share below a millionth is one that could not be told from nothing.
      return fmt::format("{:.3g} %", std::abs(value) <= 1.000001e-6 ? 0 : 100 * value);
    case MetricUnit::per_second:
      return scaled(value, decimal_scales, "") + "/s";
    case MetricUnit::bytes_per_second:
      return scaled(value, decimal_scales, " ") + "B/s";
    case MetricUnit::flops:
      return scaled(value, decimal_scales, " ") + "flop";
  }
  return {};
}

std::string factor_in_words(double ratio) {
  if (ratio >= 1000) return fmt::format("{:.3g}x", ratio);
  return std::abs(ratio - 1) < 0.1 ? fmt::format("{:.3f}x", ratio) : fmt::format("{:.2f}x", ratio);
}

std::string share_in_words(double share) {
  const double percent = 100 * share;
  return percent >= 10 ? fmt::format("{:.0f} %", percent) : fmt::format("{:.2g} %", percent);
}

std::string_view in_words(TimePart part) {
  constexpr std::array<std::string_view, time_part_count> names{
      "compute",       "memory",        "copies", "idle after waits",
      "idle for data", "idle for host", "pauses"};
  return names[static_cast<std::size_t>(part)];
}

std::string_view in_words(StoredUnit unit) {
  switch (unit) {
    case StoredUnit::run:
      return "run";
    case StoredUnit::sitting:
      return "sitting";
    case StoredUnit::device:
      return "device";
  }
  return "";
}

std::string_view in_words(Outcome outcome) {
  switch (outcome) {
    case Outcome::holds:
      return "holds";
    case Outcome::refuted:
      return "refuted";
    case Outcome::undecided:
      return "undecided";
    case Outcome::skipped:
      return "skipped";
    case Outcome::no_baseline:
      return "no baseline";
    case Outcome::not_comparable:
      return "not comparable";
  }
  return {};
}

}  // namespace stepgate
