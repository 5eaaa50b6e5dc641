// SPDX-License-Identifier: MIT
#include "judge/verdict/words.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/text/number_words.h"

namespace stepgate {

// Near 0 and far above 1, significant digits count, and otherwise decimal places.
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
  // Numbers that differ by less are written alike.
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

std::string growth_in_words(double ratio) {
  const double percent = 100 * (ratio - 1);
  return fmt::format("{}{} %", percent < 0 ? "" : "+",
                     number_in_words(percent, std::abs(percent) < 100 ? 2 : 3));
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
    case StoredUnit::session:
      return "session";
    case StoredUnit::device:
      return "device";
  }
  return "";
}

std::string_view in_words(Outcome outcome) {
  switch (outcome) {
    case Outcome::passes:
      return "passes";
    case Outcome::fails:
      return "fails";
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

std::string predicate_of(Outcome outcome) {
  const bool is_verb = outcome == Outcome::passes || outcome == Outcome::fails;
  return (is_verb ? "" : "is ") + std::string(in_words(outcome));
}

// Builds before schema 4 of the report write "holds" and "refuted".
std::optional<Outcome> outcome_in(std::string_view words) {
  if (words == "holds") return Outcome::passes;
  if (words == "refuted") return Outcome::fails;
  for (const Outcome outcome :
       {Outcome::passes, Outcome::fails, Outcome::undecided, Outcome::skipped, Outcome::no_baseline,
        Outcome::not_comparable, Outcome::machine_slower}) {
    if (in_words(outcome) == words) return outcome;
  }
  return std::nullopt;
}

}  // namespace stepgate
