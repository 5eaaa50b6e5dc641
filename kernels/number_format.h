// SPDX-License-Identifier: MIT
// Storage of numbers: bits of bf16 and fp16, and reading and writing element i of an array whose
// type is known at run time. tf32 is stored as fp32. All constexpr functions give the same bits in
// device code.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/kernel.h"

namespace stepgate {

constexpr float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to the nearest, ties to even; a NaN stays a NaN (quiet).
constexpr std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// The absolute value; std::abs is not constexpr.
constexpr double size_of(double value) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63));
}

// Rounds once: a double is not rounded to float first, which could turn a near tie into a tie.
constexpr std::uint16_t bf16_from_double(double value) {
  const float nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool tie = (bits & 0xffffu) == 0x8000u && static_cast<double>(nearest) != value;
  if (!tie) return bf16_from_float(nearest);
  const bool away = size_of(value) > size_of(static_cast<double>(nearest));
  return static_cast<std::uint16_t>((bits >> 16) + (away ? 1u : 0u));
}

// Computes 2^exponent exactly for exponents from -126 to 127. References convert many numbers, and
// std::ldexp takes several times as long.
constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

constexpr float float_from_fp16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1p-24f;
  if (exponent == 0x1f) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  return sign * static_cast<float>(mantissa + 0x400) * power_of_two(exponent - 25);
}

// Rounds once to the nearest, ties to even; what is too large becomes infinite.
constexpr std::uint16_t fp16_from_double(double value) {
  const double size = size_of(value);
  const auto size_bits = std::bit_cast<std::uint64_t>(size);
  const auto sign =
      static_cast<std::uint16_t>(std::bit_cast<std::uint64_t>(value) == size_bits ? 0 : 0x8000u);
  if (value != value) return sign | 0x7e00u;
  if (size >= 65520) return sign | 0x7c00u;
  // The distance between neighbouring fp16 numbers is 2^(exponent - 10), and 2^-24 for subnormal
  // numbers (below 2^-14).
  const int exponent = size < 0x1p-14 ? -14 : static_cast<int>(size_bits >> 52) - 1023;
  // From 2^52 on doubles are whole numbers, so adding 2^52 rounds to a whole number.
  const double units = size * power_of_two(10 - exponent) + 0x1p52 - 0x1p52;
  // The units of a subnormal number are its bits. The units of a normal number start at 1024, which
  // carries into the exponent.
  const auto bits = static_cast<std::uint32_t>((exponent + 14) * 0x400 + units);
  return static_cast<std::uint16_t>(sign | bits);
}

// Returns element `index` of an array of that storage type.
inline double number_at(const void* numbers, DType dtype, std::int64_t index) {
  if (dtype == DType::bf16) {
    return float_from_bf16(static_cast<const std::uint16_t*>(numbers)[index]);
  }
  if (dtype == DType::fp16) {
    return float_from_fp16(static_cast<const std::uint16_t*>(numbers)[index]);
  }
  if (dtype == DType::fp64) return static_cast<const double*>(numbers)[index];
  return static_cast<const float*>(numbers)[index];
}

// The bits of a number in a 16-bit type, rounded once.
constexpr std::uint16_t rounded_to_16_bits(DType dtype, double value) {
  return dtype == DType::bf16 ? bf16_from_double(value) : fp16_from_double(value);
}

// Stores element `index`, rounded once to the storage type.
inline void set_number(void* numbers, DType dtype, std::int64_t index, double value) {
  if (is_16_bit(dtype)) {
    static_cast<std::uint16_t*>(numbers)[index] = rounded_to_16_bits(dtype, value);
  } else if (dtype == DType::fp64) {
    static_cast<double*>(numbers)[index] = value;
  } else {
    static_cast<float*>(numbers)[index] = static_cast<float>(value);
  }
}

// The number after rounding to that storage type.
inline double stored_number(DType dtype, double value) {
  std::uint64_t memory = 0;
  set_number(&memory, dtype, 0, value);
  return number_at(&memory, dtype, 0);
}

// Returns the array as floats, which is exact unless it is fp64.
inline std::vector<float> floats_of(const void* numbers, DType dtype, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<float>(number_at(numbers, dtype, i));
  }
  return values;
}

// Returns the array as doubles, which is exact.
inline std::vector<double> doubles_of(const void* numbers, DType dtype, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = number_at(numbers, dtype, i);
  return values;
}

}  // namespace stepgate
