// SPDX-License-Identifier: MIT
// A number as people read it: the one function for numbers whose digits beyond the first few say
// nothing. judge/verdict/words.h has units and scales.
#pragma once

#include <string>

namespace stepgate {

// Writes a number to `digits` significant digits, without an exponent and without trailing zeros of
// a fraction: "180", "0.91", "20600".
std::string number_in_words(double value, int digits);

}  // namespace stepgate
