// SPDX-License-Identifier: MIT
// Compares numbers in fp8 with tables that follow from the definition of the formats, and host
// references with formulas written independently here.
#include "kernels/fp8/fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/fp8/fp8_numbers.h"
#include "kernels/gemm/gemm.h"
#include "kernels/testing/expect_formulas.h"

namespace stepgate {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Table 1 of "FP8 Formats for Deep Learning": the value of each code without a sign.
double defined_value(bool gradient, int code) {
  const int exponent_bits = gradient ? 5 : 4, mantissa_bits = gradient ? 2 : 3;
  const int bias = gradient ? 15 : 7;
  const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
  if (gradient && exponent == (1 << exponent_bits) - 1) return mantissa == 0 ? infinity : nan;
  if (!gradient && code == 0x7f) return nan;
  if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

const Fp8Format& format_of(bool gradient) {
  return gradient ? e5m2 : e4m3;
}

int largest_code(bool gradient) {
  return gradient ? 0x7b : 0x7e;
}

TEST(Fp8Numbers, AreThoseOfTheTable) {
  for (const bool gradient : {false, true}) {
    const Fp8Format& format = format_of(gradient);
    for (int code = 0; code < 128; ++code) {
      const double value = defined_value(gradient, code);
      const float positive = float_from_fp8(format, static_cast<std::uint8_t>(code));
      const float negative = float_from_fp8(format, static_cast<std::uint8_t>(code | 0x80));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(positive) && std::isnan(negative)) << code;
      } else {
        EXPECT_EQ(positive, value) << code;
        EXPECT_EQ(negative, -value) << code;
        EXPECT_TRUE(std::signbit(negative));
      }
    }
    EXPECT_EQ(defined_value(gradient, largest_code(gradient)), format.largest);
  }
  EXPECT_EQ(e4m3.largest, 448);
  EXPECT_EQ(e5m2.largest, 57344);
}

TEST(Fp8Numbers, AreTheNearestAndAtMidpointsTheEven) {
  for (const bool gradient : {false, true}) {
    const Fp8Format& format = format_of(gradient);
    for (int code = 0; code <= largest_code(gradient); ++code) {
      const auto value = static_cast<float>(defined_value(gradient, code));
      EXPECT_EQ(fp8_from_float(format, value), code);
      EXPECT_EQ(fp8_from_float(format, -value), code | 0x80);
      if (code == largest_code(gradient)) break;
      const auto next = static_cast<float>(defined_value(gradient, code + 1));
      const float middle = (value + next) / 2;
      EXPECT_EQ(fp8_from_float(format, middle), code + code % 2) << middle;
      EXPECT_EQ(fp8_from_float(format, -middle), (code + code % 2) | 0x80) << middle;
      EXPECT_EQ(fp8_from_float(format, std::nextafter(middle, 0.0f)), code) << middle;
      EXPECT_EQ(fp8_from_float(format, std::nextafter(middle, infinity)), code + 1) << middle;
    }
  }
}

TEST(Fp8Numbers, SaturateAndKeepNaN) {
  for (const bool gradient : {false, true}) {
    const Fp8Format& format = format_of(gradient);
    for (const float large : {format.largest * 1.01f, 1e38f, infinity}) {
      EXPECT_EQ(fp8_from_float(format, large), largest_code(gradient));
      EXPECT_EQ(fp8_from_float(format, -large), largest_code(gradient) | 0x80);
    }
    EXPECT_EQ(fp8_from_float(format, nan), fp8_nan);
    EXPECT_EQ(fp8_from_float(format, -nan), fp8_nan);
    EXPECT_EQ(fp8_from_float(format, std::numeric_limits<float>::denorm_min()), 0);
  }
  for (int code = 0; code < 256; ++code) {
    const auto small = static_cast<std::uint8_t>(code & fp8_below_two);
    EXPECT_LT(std::abs(float_from_fp8(e4m3, small)), 2);
    EXPECT_LT(std::abs(float_from_fp8(e5m2, small)), 2);
  }
}

TEST(Fp8Scale, TakesTheLargestToTheLargest) {
  EXPECT_EQ(fp8_scale(e4m3, 448), 1);
  EXPECT_EQ(fp8_scale(e4m3, 7), 64);
  EXPECT_EQ(fp8_scale(e5m2, 7), 8192);
  for (const float amax : {0.0f, infinity, nan}) EXPECT_EQ(fp8_scale(e5m2, amax), 1);
  EXPECT_EQ(fp8_scale(e5m2, 1e-40f), std::numeric_limits<float>::max());
}

double largest_of(const KernelTrial& t, std::size_t operand, std::int64_t first, std::int64_t end) {
  double largest = 0;
  for (std::int64_t i = first; i < end; ++i)
    largest = std::max(largest, std::abs(value_at(t, operand, i)));
  return largest;
}

TEST(AmaxParts, AreTheLargestOfEachPart) {
  const FormulaOf<kernels::AmaxParts> maxima = [](const TrialOf<kernels::AmaxParts>& t,
                                                  std::int64_t i) {
    const std::int64_t part = amax_part(t.shape), numbers = t.shape.numbers;
    return largest_of(t, 0, std::min(i * part, numbers), std::min((i + 1) * part, numbers));
  };
  expect_formulas<kernels::AmaxParts>({{1, maxima}});
}

// Searches the code of the nearest number; of two, the even.
double nearest_code(bool gradient, float scaled) {
  int nearest = 0;
  for (int code = 1; code <= largest_code(gradient); ++code) {
    const double there = std::abs(std::abs(scaled) - defined_value(gradient, code));
    const double before = std::abs(std::abs(scaled) - defined_value(gradient, nearest));
    if (there < before || (there == before && code % 2 == 0)) nearest = code;
  }
  return nearest + (std::signbit(scaled) ? 128 : 0);
}

template <class Kernel>
float scale_of(const TrialOf<Kernel>& t, std::int64_t first, std::int64_t end) {
  const auto amax = static_cast<float>(largest_of(t, 1, first, end));
  return (t.attributes.gradient ? 57344.0f : 448.0f) / amax;
}

template <class Kernel, class Scale>
std::map<std::size_t, FormulaOf<Kernel>> quantized(Scale scale) {
  const auto code = [=](const TrialOf<Kernel>& t, std::int64_t i) {
    return nearest_code(t.attributes.gradient, static_cast<float>(value_at(t, 0, i)) * scale(t));
  };
  return {{2, code},
          {3,
           [=](const TrialOf<Kernel>& t, std::int64_t i) {
             return code(t, i % t.shape.rows * t.shape.columns + i / t.shape.rows);
           }},
          {4, [=](const TrialOf<Kernel>& t, std::int64_t) -> double { return 1 / scale(t); }}};
}

TEST(QuantizeFp8, ScalesByTheLargestOfAllParts) {
  expect_formulas<kernels::QuantizeFp8>(
      quantized<kernels::QuantizeFp8>([](const TrialOf<kernels::QuantizeFp8>& t) {
        return scale_of<kernels::QuantizeFp8>(t, 0, t.shape.parts);
      }));
}

TEST(QuantizeFp8Delayed, ScalesByEarlierStepsAndRecordsItsOwn) {
  auto formulas =
      quantized<kernels::QuantizeFp8Delayed>([](const TrialOf<kernels::QuantizeFp8Delayed>& t) {
        return scale_of<kernels::QuantizeFp8Delayed>(t, 1, 17);
      });
  formulas[1] = [](const TrialOf<kernels::QuantizeFp8Delayed>& t, std::int64_t i) {
    if (i > 0) return value_at(t, 1, i);
    return std::max(value_at(t, 1, 0), largest_of(t, 0, 0, value_count(t, 0)));
  };
  expect_formulas<kernels::QuantizeFp8Delayed>(formulas);
}

TEST(MoveAmaxHistories, ForgetsTheOldestAndStartsAtZero) {
  expect_formulas("move_amax_histories", {{0, [](const KernelTrial& t, std::int64_t i) {
                                             return i % 17 == 0 ? 0 : value_at(t, 0, i - 1);
                                           }}});
}

// The sum that becomes number i of the result, with both scales.
template <class Kernel>
double scaled_sum(const TrialOf<Kernel>& t, bool gradient, std::int64_t i) {
  const auto [m, n, k, unused] = t.shape;
  const auto number = [&](std::size_t operand, bool of_gradient, std::int64_t index) {
    const int code = static_cast<int>(value_at(t, operand, index));
    return defined_value(of_gradient, code & 127) * (code < 128 ? 1 : -1);
  };
  double sum = 0;
  for (std::int64_t inner = k - 1; inner >= 0; --inner)
    sum += number(0, gradient, i / n * k + inner) * number(1, false, i % n * k + inner);
  return sum * value_at(t, 2, 0) * value_at(t, 3, 0);
}

TEST(MatmulFp8, SumsProductsOfRowsAndScalesThem) {
  const FormulaOf<kernels::MatmulFp8> c = [](const TrialOf<kernels::MatmulFp8>& t, std::int64_t i) {
    const double before = t.attributes.accumulate ? value_at(t, 4, i) : 0;
    return before + scaled_sum<kernels::MatmulFp8>(t, t.attributes.gradient, i);
  };
  expect_formulas<kernels::MatmulFp8>({{4, c}});
}

TEST(LinearFp8, AddsTheBias) {
  const FormulaOf<kernels::LinearFp8> y = [](const TrialOf<kernels::LinearFp8>& t, std::int64_t i) {
    return scaled_sum<kernels::LinearFp8>(t, false, i) + value_at(t, 4, i % t.shape.columns);
  };
  expect_formulas<kernels::LinearFp8>({{5, y}});
}

}  // namespace
}  // namespace stepgate
