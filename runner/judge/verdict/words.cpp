// SPDX-License-Identifier: MIT
// Scales and digits.
#include "judge/verdict/words.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

#include "support/text/number_words.h"

namespace stepgate {
namespace {

struct Scale {
  double from;  // values of at least this use the scale
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

// Four significant digits, or more, at the largest scale that the value reaches.
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
    // A value that could not be told from nothing is nothing: a millionth of a count, a thousandth
    // of a byte.
    case MetricUnit::count:
      if (value == std::round(value)) return number_in_words(value, all_digits);
      return number_in_words(std::abs(value) <= 1.1e-6 ? 0 : value, 6 + more_digits);
    case MetricUnit::bytes:
      return scaled(std::abs(value) <= 1.1e-3 ? 0 : value, byte_scales, " ", more_digits);
    case MetricUnit::seconds:
      return value == 0 ? "0 s" : scaled(value, second_scales, " ", more_digits);
    case MetricUnit::ratio:
      // A share below a millionth is one that could not be told from nothing.
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

// Next to nothing and far above one it is digits that count, and places otherwise.
std::string factor_in_words(double ratio, int more_digits) {
  if (!(ratio >= 0.1 && ratio < 1000)) return number_in_words(ratio, 3 + more_digits) + "x";
  return fmt::format("{:.{}f}x", ratio, (std::abs(ratio - 1) < 0.1 ? 3 : 2) + more_digits);
}

std::string told_from(double value, double other, const Wording& wording) {
  constexpr int most_more_digits = 9;
  int more = 0;
  if (value != other) {
    while (more < most_more_digits && wording(value, more) == wording(other, more)) ++more;
  }
  // Apart by less than that, they are the same.
  return wording(value, more == most_more_digits ? 0 : more);
}

std::string seconds_in_words(double seconds) {
  return number_in_words(seconds, 2) + " s";
}

double share_that_may_not_show(std::int64_t looks, double level) {
  return 1 - std::pow(level, 1 / static_cast<double>(looks));
}

std::string share_in_words(double share) {
  const double percent = 100 * share;
  return percent >= 10 ? fmt::format("{:.0f} %", percent) : number_in_words(percent, 2) + " %";
}

std::string_view in_words(TimePart part) {
  constexpr std::array<std::string_view, time_part_count> names{
      "compute",          "memory",        "latency",       "copies", "communication",
      "idle after waits", "idle for data", "idle for host", "pauses"};
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
    case Outcome::machine_slower:
      return "machine slower";
  }
  return {};
}

std::optional<Outcome> outcome_in(std::string_view words) {
  for (const Outcome outcome :
       {Outcome::holds, Outcome::refuted, Outcome::undecided, Outcome::skipped,
        Outcome::no_baseline, Outcome::not_comparable, Outcome::machine_slower}) {
    if (in_words(outcome) == words) return outcome;
  }
  return std::nullopt;
}

}  // namespace stepgate
