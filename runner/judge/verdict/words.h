// SPDX-License-Identifier: MIT
// Writes numbers as text, in the same way for reasons and reports.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "judge/verdict/verdict.h"
#include "scenario/assertions/metric_words.h"

namespace stepgate {

// A ratio of two values of the same kind: "1.31x", and "1.003x" close to 1.
std::string factor_in_words(double ratio, int more_digits = 0);

// Writes a number with `more_digits` more digits than usual.
using Wording = std::function<std::string(double value, int more_digits)>;

// Writes `value` with the fewest digits that distinguish it from `other`.
std::string told_from(double value, double other, const Wording&);

// "passes", "fails", "undecided", "skipped", "no baseline", "not comparable",
// "machine slower".
std::string_view in_words(Outcome);
// Returns the predicate for a subject: "passes", "fails", "is undecided", "is skipped".
std::string predicate_of(Outcome);
// Returns the outcome that has these words; nullopt where no outcome has them.
std::optional<Outcome> outcome_in(std::string_view words);

// Estimates beyond this number of rounds, or pairs of launches, are not worth reporting.
constexpr double most_within_reach = 1000;

// "180 s", "0.25 s": a duration estimate with two digits.
std::string seconds_in_words(double seconds);

// "23 %", "0.91 %", "100 %": a share with two digits.
std::string share_in_words(double share);
// "+0.36 %", "-3.1 %", "+105 %", "+6170 %": what a ratio adds to 1, with two digits, from 100 % on
// with three.
std::string growth_in_words(double ratio);

// The share of looks (rounds, launches, steps) in which an event may happen and still, with
// probability `level`, happen in none of `looks` looks. Needs at least one look.
double share_that_may_not_show(std::int64_t looks, double level);

// Returns the name of the unit: "run", "session", "device".
std::string_view in_words(StoredUnit);

// "idle after waits".
std::string_view in_words(TimePart);

}  // namespace stepgate
