// SPDX-License-Identifier: MIT
// Numbers as people read them: those whose digits beyond the first few say nothing, and counts.
// judge/verdict/words.h has units and scales.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepgate {

// Writes a number to `digits` significant digits, without an exponent and without trailing zeros of
// a fraction: "180", "0.91", "20600".
std::string number_in_words(double value, int digits);

// "1 round", "2 rounds".
std::string counted_in_words(std::int64_t count, std::string_view what);

}  // namespace stepgate
