// SPDX-License-Identifier: MIT
// Numbers in words, the same in reasons and reports.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "judge/verdict/verdict.h"
#include "scenario/assertions/metric_words.h"

namespace stepgate {

// A ratio of two like things: "1.31x", and "1.003x" close to 1.
std::string factor_in_words(double ratio, int more_digits = 0);

// How a number is written with so many digits more than usual.
using Wording = std::function<std::string(double value, int more_digits)>;

// With the fewest digits that tell it from the other number, which would be written alike.
std::string told_from(double value, double other, const Wording&);

// "passes", "fails", "undecided", "skipped", "no baseline", "not comparable",
// "machine slower".
std::string_view in_words(Outcome);
// "passes", "fails", "is undecided", "is skipped": what a subject does.
std::string predicate_of(Outcome);
// Returns the outcome that has these words; nothing where no outcome has them.
std::optional<Outcome> outcome_in(std::string_view words);

// More rounds, or pairs of launches, than this nobody waits for.
constexpr double most_within_reach = 1000;

// "180 s", "0.25 s": what something will take, to two digits.
std::string seconds_in_words(double seconds);

// A share in a sentence, to two digits: "23 %", "0.91 %", "100 %".
std::string share_in_words(double share);

// A thing that happens in this share of looks (rounds, launches, steps) happens in none of so many
// with probability `level`. There is at least one look.
double share_that_may_not_show(std::int64_t looks, double level);

// "run", "session", "device".
std::string_view in_words(StoredUnit);

// "idle after waits".
std::string_view in_words(TimePart);

}  // namespace stepgate
