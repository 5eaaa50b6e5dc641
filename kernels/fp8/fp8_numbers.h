// SPDX-License-Identifier: MIT
// The two formats of 8-bit floating point numbers (Micikevicius et al.: FP8 Formats for Deep
// Learning, 2022) and the scale by which a tensor's numbers are brought into their range. All
// functions give the same bits in device code.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/number_format.h"

namespace stepgate {

// e4m3 has no infinity, and one NaN with either sign. e5m2 is like fp16 without its last 8 bits.
struct Fp8Format {
  int mantissa = 0;  // bits
  int bias = 0;      // of the exponent
  float largest = 0;
};
inline constexpr Fp8Format e4m3{3, 7, 448};
inline constexpr Fp8Format e5m2{2, 15, 57344};
inline constexpr std::uint8_t fp8_nan = 0x7f;  // in both formats
// The bits of a byte that leave it a number between -2 and 2 in either format.
inline constexpr std::uint8_t fp8_below_two = 0xbf;

constexpr float float_from_fp8(const Fp8Format& format, std::uint8_t bits) {
  const int size = bits & 0x7f;
  const float sign = (bits & 0x80u) != 0 ? -1.0f : 1.0f;
  const int units_of_exponent = 1 << format.mantissa;
  const int exponent = size / units_of_exponent, units = size % units_of_exponent;
  const int smallest = 1 - format.bias - format.mantissa;  // exponent of the smallest number
  if (exponent == 0) return sign * static_cast<float>(units) * power_of_two(smallest);
  const float number =
      static_cast<float>(units_of_exponent + units) * power_of_two(smallest + exponent - 1);
  if (number <= format.largest) return sign * number;
  const bool infinite = units == 0 && number == 2 * power_of_two(format.bias);
  return infinite ? sign * std::numeric_limits<float>::infinity()
                  : std::numeric_limits<float>::quiet_NaN();
}

// Rounds to the nearest, ties to even. What is too large becomes the largest number of its sign,
// infinities too, and every NaN fp8_nan, as the GPU's saturating conversion has it.
constexpr std::uint8_t fp8_from_float(const Fp8Format& format, float value) {
  if (value != value) return fp8_nan;
  const auto size_bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
  const auto sign = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(value) >> 24 & 0x80u);
  const float stored = std::bit_cast<float>(size_bits);
  const double size = stored < format.largest ? stored : format.largest;
  const int least = 1 - format.bias;  // the exponent of the smallest normal number
  const int exponent = size < power_of_two(least)
                           ? least
                           : static_cast<int>(std::bit_cast<std::uint64_t>(size) >> 52) - 1023;
  // From 2^52 on doubles are whole numbers, so adding 2^52 rounds to a whole number. The units of a
  // normal number start at 2^mantissa, which carries into the exponent.
  const double units = size * power_of_two(format.mantissa - exponent) + 0x1p52 - 0x1p52;
  return static_cast<std::uint8_t>(
      sign | static_cast<std::uint8_t>((exponent - least) * (1 << format.mantissa) +
                                       static_cast<int>(units)));
}

// The factor that takes a tensor whose largest absolute value is `amax` to the format's largest
// number; 1 where amax is 0, infinite or NaN.
constexpr float fp8_scale(const Fp8Format& format, float amax) {
  if (!(amax > 0 && amax <= std::numeric_limits<float>::max())) return 1;
  const float scale = format.largest / amax;
  return scale <= std::numeric_limits<float>::max() ? scale : std::numeric_limits<float>::max();
}

}  // namespace stepgate
