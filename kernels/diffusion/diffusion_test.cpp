// SPDX-License-Identifier: MIT
// Compares host references of diffusion with formulas written independently here, and its noise
// with a normal distribution.
#include "kernels/diffusion/diffusion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "kernels/testing/expect_formulas.h"
#include "kernels/testing/norms_in_fp64.h"

namespace stepgate {
namespace {

// The noise of an element as the real part of a complex number.
double noise_of(const TrialOf<kernels::AddNoise>& t, std::int64_t i) {
  const auto time = static_cast<std::uint64_t>(value_at(t, 1, i / t.shape.features));
  const auto step = static_cast<std::uint64_t>(value_at(t, 2, 0));
  const std::uint64_t bits = noise_bits(noise_bits(step, time), static_cast<std::uint64_t>(i));
  const double u = static_cast<double>((bits >> 40) + 1) / 16777216;
  const double v = static_cast<double>(bits / 65536 % 16777216) / 16777216;
  return std::polar(std::sqrt(-2 * std::log(u)), 2 * std::numbers::pi * v).real();
}

TEST(AddNoise, MixesASampleWithNoiseByItsTime) {
  using Trial = TrialOf<kernels::AddNoise>;
  const auto noisy = [](const Trial& t, std::int64_t i) {
    const double time = value_at(t, 1, i / t.shape.features) + 1;
    const double quarter = std::numbers::pi / 2 / 1.008;
    const double signal = std::cos((time / 1000 + 0.008) * quarter) / std::cos(0.008 * quarter);
    const double noise = stored_number(t.trial.dtype, noise_of(t, i));
    return signal * value_at(t, 0, i) + std::sqrt((1 - signal) * (1 + signal)) * noise;
  };
  expect_formulas<kernels::AddNoise>({{3, noisy}, {4, noise_of}});
}

// The noise of 2^16 numbers at one time of one step.
Doubles noise_at(std::int32_t time, std::uint64_t step) {
  constexpr std::int64_t count = 1 << 16;
  Doubles x(count), noisy(count), noise(count);
  run_in_fp64<kernels::AddNoise>({1, count}, {},
                                 {x.data(), &time, &step, noisy.data(), noise.data()});
  return noise;
}

double covariance(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum / static_cast<double>(a.size());
}

// Bounds are four deviations of such a mean or more.
TEST(AddNoise, DrawsAnewForEveryTimeAndStep) {
  const Doubles ones(1 << 16, 1.0), noise = noise_at(7, 3);
  EXPECT_NEAR(covariance(noise, ones), 0, 0.016);
  EXPECT_NEAR(covariance(noise, noise), 1, 0.025);
  const auto beyond = std::ranges::count_if(noise, [](double one) { return one > 2; });
  EXPECT_NEAR(static_cast<double>(beyond) / (1 << 16), 0.02275, 0.0024);
  EXPECT_NEAR(covariance(noise, noise_at(8, 3)), 0, 0.016);
  EXPECT_NEAR(covariance(noise, noise_at(7, 4)), 0, 0.016);
  Doubles next(noise.begin() + 1, noise.end());
  next.push_back(0);
  EXPECT_NEAR(covariance(noise, next), 0, 0.016);
}

TEST(TimeEmbedding, TurnsByFrequenciesThatFall) {
  const FormulaOf<kernels::TimeEmbedding> y = [](const TrialOf<kernels::TimeEmbedding>& t,
                                                 std::int64_t i) {
    const std::int64_t features = t.shape.features, half = features / 2, place = i % features;
    const double fall =
        -std::log(10000.0) * static_cast<double>(place % half) / static_cast<double>(half);
    const auto turned = std::polar(1.0, value_at(t, 0, i / features) * std::exp(fall));
    return place < half ? turned.real() : turned.imag();
  };
  expect_formulas<kernels::TimeEmbedding>({{1, y}});
}

TEST(SquaredError, HasTheMeanOfARowAndTheSlopeOfTheMeanOverAll) {
  using Trial = TrialOf<kernels::SquaredError>;
  const auto gradient = [](const Trial& t, std::int64_t i) {
    return (value_at(t, 0, i) - value_at(t, 1, i)) * 2 /
           static_cast<double>(t.shape.rows * t.shape.columns);
  };
  const auto row_loss = [](const Trial& t, std::int64_t row) {
    double sum = 0;
    for (std::int64_t i = (row + 1) * t.shape.columns - 1; i >= row * t.shape.columns; --i)
      sum += std::pow(value_at(t, 0, i) - value_at(t, 1, i), 2);
    return sum / static_cast<double>(t.shape.columns);
  };
  expect_formulas<kernels::SquaredError>({{2, gradient}, {3, row_loss}});
}

}  // namespace
}  // namespace stepgate
