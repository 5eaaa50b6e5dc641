// SPDX-License-Identifier: MIT
// Compares host references of batch norm with formulas written independently here, its statistics
// with direct computations, and its gradients with central differences.
#include "kernels/batch_norm/batch_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "kernels/number_format.h"
#include "kernels/testing/expect_formulas.h"
#include "kernels/testing/norms_in_fp64.h"

namespace stepgate {
namespace {

// Rounding a moment is multiplied by up to epsilon^-3/2.
constexpr double unit_of_sums = 1e4;

// Formula of a number of partials: the sum over the rows of its part of a term of the column.
// `terms` returns the term of an element for the first and the second vector of a part.
template <class Kernel, class Terms>
FormulaOf<Kernel> parts_of(Terms terms) {
  return [=](const TrialOf<Kernel>& t, std::int64_t i) {
    const auto [rows, columns, parts] = t.shape;
    const std::int64_t column = i % columns, part = i / (2 * columns);
    double sum = 0;
    for (std::int64_t row = rows - 1; row >= 0; --row)
      if (row % parts == part) sum += terms(t, row * columns + column, i / columns % 2 == 1);
    return sum;
  };
}

double statistic(const KernelTrial& t, std::size_t operand, std::int64_t vector,
                 std::int64_t column) {
  return value_at(t, operand, vector * value_count(t, operand) / 4 + column);
}

double normalised(const KernelTrial& t, std::size_t x, std::int64_t i, std::int64_t column) {
  return (value_at(t, x, i) - statistic(t, x + 1, 0, column)) * statistic(t, x + 1, 1, column);
}

// norm(x) of element i. The statistics follow x among the operands.
double normed(const KernelTrial& t, std::size_t x, std::int64_t i, std::int64_t column) {
  const double scale = statistic(t, x + 1, 2, column);
  return value_at(t, x, i) * scale - statistic(t, x + 1, 0, column) * scale +
         statistic(t, x + 1, 3, column);
}

TEST(BatchNormSums, SumsDifferencesFromTheFirstRowAndTheirSquares) {
  const auto terms = [](const TrialOf<kernels::BatchNormSums>& t, std::int64_t i, bool of_squares) {
    const double shifted = value_at(t, 0, i) - value_at(t, 0, i % t.shape.columns);
    return of_squares ? shifted * shifted : shifted;
  };
  expect_formulas<kernels::BatchNormSums>({{1, parts_of<kernels::BatchNormSums>(terms)}});
}

TEST(BatchNormFinish, TakesMomentsOfAllParts) {
  using Trial = TrialOf<kernels::BatchNormFinish>;
  struct Moments {
    double mean, variance;
  };
  const auto moments = [](const Trial& t, std::int64_t column) -> Moments {
    const auto [rows, columns, parts] = t.shape;
    double sum = 0, squares = 0;
    for (std::int64_t part = parts - 1; part >= 0; --part) {
      sum += value_at(t, 1, part * 2 * columns + column);
      squares += value_at(t, 1, (part * 2 + 1) * columns + column);
    }
    const auto count = static_cast<double>(rows);
    return {value_at(t, 0, column) + sum / count, (squares - sum * sum / count) / count};
  };
  const auto running = [=](std::size_t operand) {
    return [=](const Trial& t, std::int64_t column) {
      const auto [mean, variance] = moments(t, column);
      const auto count = static_cast<double>(t.shape.rows);
      const double now = operand == 4 ? mean : variance * count / (count - 1);
      const double momentum = t.attributes.momentum;
      return value_at(t, operand, column) + momentum * (now - value_at(t, operand, column));
    };
  };
  const auto statistics = [=](const Trial& t, std::int64_t i) {
    const std::int64_t column = i % t.shape.columns;
    const auto [mean, variance] = moments(t, column);
    const double reciprocal = std::pow(variance + t.attributes.epsilon, -0.5);
    const double vectors[] = {mean, reciprocal, value_at(t, 2, column) * reciprocal,
                              value_at(t, 3, column)};
    return vectors[i / t.shape.columns];
  };
  expect_formulas<kernels::BatchNormFinish>({{4, running(4)}, {5, running(5)}, {6, statistics}},
                                            unit_of_sums);
}

TEST(BatchNormApply, NormalisesAndCutsAtZero) {
  const FormulaOf<kernels::BatchNormApply> y = [](const TrialOf<kernels::BatchNormApply>& t,
                                                  std::int64_t i) {
    const double value = normed(t, 0, i, i % t.shape.columns);
    return t.attributes.relu ? std::max(value, 0.0) : value;
  };
  expect_formulas<kernels::BatchNormApply>({{2, y}});
}

// Formulas of y and of the mask, of the sum that `value` returns.
using Sum = double (*)(const KernelTrial&, std::int64_t i, std::int64_t column);
template <class Kernel>
std::pair<FormulaOf<Kernel>, FormulaOf<Kernel>> relu_of(Sum value) {
  const FormulaOf<Kernel> y = [=](const TrialOf<Kernel>& t, std::int64_t i) {
    return std::max(value(t, i, i % t.shape.columns), 0.0);
  };
  const FormulaOf<Kernel> mask = [=](const TrialOf<Kernel>& t, std::int64_t i) {
    const std::int64_t columns = t.shape.columns, bytes = (columns + 7) / 8;
    double byte = 0;
    for (std::int64_t c = i % bytes * 8, bit = 1; bit < 256 && c < columns; ++c, bit *= 2)
      if (value(t, i / bytes * columns + c, c) > 0) byte += static_cast<double>(bit);
    return byte;
  };
  return {y, mask};
}

TEST(BatchNormAddApply, AddsTheResidualBeforeTheRelu) {
  const auto [y, mask] = relu_of<kernels::BatchNormAddApply>(
      [](const KernelTrial& t, std::int64_t i, std::int64_t column) {
        return normed(t, 0, i, column) + value_at(t, 2, i);
      });
  expect_formulas<kernels::BatchNormAddApply>({{3, y}, {4, mask}});
}

TEST(BatchNormTwoApply, AddsTheNormOfTheShortcut) {
  const auto [y, mask] = relu_of<kernels::BatchNormTwoApply>(
      [](const KernelTrial& t, std::int64_t i, std::int64_t column) {
        return normed(t, 0, i, column) + normed(t, 2, i, column);
      });
  expect_formulas<kernels::BatchNormTwoApply>({{4, y}, {5, mask}});
}

TEST(BatchNormGradientSums, SumsWhatTheReluLetThrough) {
  const auto terms = [](const TrialOf<kernels::BatchNormGradientSums>& t, std::int64_t i,
                        bool of_projections) {
    const std::int64_t column = i % t.shape.columns;
    const bool cut = t.attributes.relu && normed(t, 1, i, column) <= 0;
    const double factor = of_projections ? normalised(t, 1, i, column) : 1;
    return cut ? 0 : value_at(t, 0, i) * factor;
  };
  expect_formulas<kernels::BatchNormGradientSums>(
      {{3, parts_of<kernels::BatchNormGradientSums>(terms)}});
}

TEST(BatchNormAddGradientSums, SumsWhatTheMaskLetsThrough) {
  using Trial = TrialOf<kernels::BatchNormAddGradientSums>;
  const auto d_sum = [](const Trial& t, std::int64_t i) {
    const std::int64_t row = i / t.shape.columns, column = i % t.shape.columns;
    const double byte = value_at(t, 3, row * ((t.shape.columns + 7) / 8) + column / 8);
    const double shifted = std::floor(byte / std::exp2(column % 8));
    return std::fmod(shifted, 2) == 1 ? value_at(t, 0, i) : 0;
  };
  const auto terms = [=](const Trial& t, std::int64_t i, bool of_projections) {
    return d_sum(t, i) * (of_projections ? normalised(t, 1, i, i % t.shape.columns) : 1);
  };
  expect_formulas<kernels::BatchNormAddGradientSums>(
      {{4, d_sum}, {5, parts_of<kernels::BatchNormAddGradientSums>(terms)}});
}

TEST(BatchNormGradientFinish, AddsThePartsUp) {
  using Trial = TrialOf<kernels::BatchNormGradientFinish>;
  const auto sum = [](const Trial& t, std::int64_t vector, std::int64_t column) {
    double total = 0;
    for (std::int64_t part = t.shape.parts - 1; part >= 0; --part)
      total += value_at(t, 0, (part * 2 + vector) * t.shape.columns + column);
    return total;
  };
  const auto gradient = [=](std::size_t operand) {
    return [=](const Trial& t, std::int64_t column) {
      const double old = t.attributes.accumulate ? value_at(t, operand, column) : 0;
      return old + sum(t, operand == 1 ? 1 : 0, column);
    };
  };
  const auto mean = [=](const Trial& t, std::int64_t i) {
    return sum(t, i / t.shape.columns, i % t.shape.columns) / static_cast<double>(t.shape.rows);
  };
  expect_formulas<kernels::BatchNormGradientFinish>(
      {{1, gradient(1)}, {2, gradient(2)}, {3, mean}});
}

TEST(BatchNormGradientApply, TakesTheMeansAway) {
  const FormulaOf<kernels::BatchNormGradientApply> d_x =
      [](const TrialOf<kernels::BatchNormGradientApply>& t, std::int64_t i) {
        const std::int64_t column = i % t.shape.columns;
        const bool cut = t.attributes.relu && normed(t, 1, i, column) <= 0;
        const double d = cut ? 0 : value_at(t, 0, i);
        const double n = normalised(t, 1, i, column);
        const double inner =
            d - value_at(t, 3, column) - n * value_at(t, 3, t.shape.columns + column);
        return statistic(t, 2, 2, column) * inner;
      };
  expect_formulas<kernels::BatchNormGradientApply>({{4, d_x}});
}

TEST(BatchNormParts, AreAtLeastOneAndNeverMoreThanTheRows) {
  for (const std::int64_t rows : {1, 2, 63, 64, 65, 1000, 12544, 3211264}) {
    EXPECT_GE(batch_norm_parts(rows), 1) << rows;
    EXPECT_LE(batch_norm_parts(rows), rows);
  }
}

// Mean and variance of a column in two passes over its numbers.
struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(const NormInFp64& norm, std::size_t column, std::int64_t divisor) {
  Moments found;
  for (std::size_t i = column; i < norm.x.size(); i += norm.of(1)) found.mean += norm.x[i];
  found.mean /= static_cast<double>(norm.shape.rows);
  for (std::size_t i = column; i < norm.x.size(); i += norm.of(1))
    found.variance += (norm.x[i] - found.mean) * (norm.x[i] - found.mean);
  found.variance /= static_cast<double>(divisor);
  return found;
}

// How far y is from numbers normalised with a variance whose squares are divided by `divisor`.
double error_of_variance(NormInFp64& norm, std::int64_t divisor) {
  double worst = 0;
  for (std::size_t c = 0; c < norm.of(1); ++c) {
    const double variance = moments_of(norm, c, divisor).variance;
    const double reciprocal = 1 / std::sqrt(variance + norm.told.epsilon);
    worst = std::max(worst, std::abs(norm.statistics[norm.of(1) + c] / reciprocal - 1));
  }
  return worst;
}

TEST(BatchNorm, NormalisesByTheBiasedVariance) {
  std::mt19937_64 random(5);
  NormInFp64 norm({32, 9, 3}, random);
  norm.find_statistics();
  EXPECT_LT(error_of_variance(norm, 32), 1e-13);
  EXPECT_GT(error_of_variance(norm, 31), 0.01) << "an unbiased variance would go unnoticed";
}

TEST(BatchNorm, KeepsRunningMomentsWithTheUnbiasedVariance) {
  std::mt19937_64 random(6);
  NormInFp64 norm({32, 5, 2}, random);
  Moments running[5];
  for (Moments& of_column : running) of_column.variance = 1;
  for (int update = 0; update < 2; ++update) {
    norm.x = random_doubles(32 * 5, random);
    norm.find_statistics();
    for (std::size_t c = 0; c < 5; ++c) {
      const Moments now = moments_of(norm, c, 31);
      running[c].mean = 0.9 * running[c].mean + 0.1 * now.mean;
      running[c].variance = 0.9 * running[c].variance + 0.1 * now.variance;
    }
  }
  for (std::size_t c = 0; c < 5; ++c) {
    EXPECT_NEAR(norm.running_mean[c], running[c].mean, 1e-15);
    EXPECT_NEAR(norm.running_variance[c], running[c].variance, 1e-14);
  }
}

// The variance of 4096 numbers with mean 1000 and deviation 1, from fp32 sums of their differences
// from `first` and of the squares of these; returns how far it is off.
double error_far_from_zero(bool from_first_row) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(1000, 1);
  NormInFp64 direct({4096, 1, 8}, random);
  std::vector<float> x(4096), partials(2 * 8), statistics(4);
  for (float& number : x) number = normal(random);
  direct.x.assign(x.begin(), x.end());
  float one = 1, mean = 0, variance = 0, first = from_first_row ? x[0] : 0;
  if (from_first_row) {
    run_in_fp32<kernels::BatchNormSums>(direct.shape, {}, {x.data(), partials.data()});
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) {
      partials[i % 8 * 2] += x[i];
      partials[i % 8 * 2 + 1] += x[i] * x[i];
    }
  }
  run_in_fp32<kernels::BatchNormFinish>(
      direct.shape, {.epsilon = 0, .momentum = 1},
      {&first, partials.data(), &one, &one, &mean, &variance, statistics.data()});
  EXPECT_NEAR(mean, moments_of(direct, 0, 4096).mean, from_first_row ? 1e-4 : 0.1);
  return std::abs(variance - moments_of(direct, 0, 4095).variance);
}

TEST(BatchNorm, KeepsTheBitsOfADeviationFarBelowTheMean) {
  EXPECT_LT(error_far_from_zero(true), 1e-6);
  EXPECT_GT(error_far_from_zero(false), 1e-3) << "sums of x and its squares would go unnoticed";
}

// The bits of the values that are right.
template <class Right>
std::uint8_t bits_of(const std::array<double, 4>& values, Right right) {
  unsigned bits = 0;
  for (std::size_t c = 0; c < values.size(); ++c) bits |= right(values[c]) ? 1u << c : 0u;
  return static_cast<std::uint8_t>(bits);
}

// The third value is less than half of the smallest fp16 number.
TEST(BatchNormAddApply, MasksByTheSignBeforeRounding) {
  constexpr double tiny = 0x1p-14 + 0x1p-24;
  const double xs[] = {-1, 0, tiny, 1}, residuals[] = {0, 0, -0x1p-14, 0};
  float statistics[4][4] = {{}, {1, 1, 1, 1}, {1, 1, 1 - 0x1p-11f, 1}, {}};
  std::array<double, 4> values{}, stored{};
  std::uint16_t x[4], residual[4], y[4];
  std::uint8_t mask = 0xff;
  for (std::size_t c = 0; c < 4; ++c) {
    const auto column = static_cast<std::int64_t>(c);
    set_number(x, DType::fp16, column, xs[c]);
    set_number(residual, DType::fp16, column, residuals[c]);
    values[c] = xs[c] * statistics[2][c] + residuals[c];
  }
  void* const buffers[] = {x, statistics, residual, y, &mask};
  kernel("batch_norm_add_apply").reference({MatrixShape{1, 4}, DType::fp16, {}, buffers});
  for (std::size_t c = 0; c < 4; ++c)
    stored[c] = number_at(y, DType::fp16, static_cast<std::int64_t>(c));
  const auto is_positive = [](double value) { return value > 0; };
  EXPECT_EQ(mask, bits_of(values, is_positive));
  EXPECT_NE(mask, bits_of(stored, is_positive)) << "a mask of y would go unnoticed";
  EXPECT_NE(mask, bits_of(values, [](double value) { return value >= 0; }))
      << "a mask with values of zero would go unnoticed";
}

// The chain norm, addition and relu, whose mask decides.
struct AddChain {
  NormInFp64 norm;
  Doubles residual, y, outer, d_sum;
  Bytes mask;

  explicit AddChain(const PartsShape& shape, std::mt19937_64& random)
      : norm(shape, random),
        residual(random_doubles(shape.rows * shape.columns, random)),
        y(norm.x.size()),
        outer(random_doubles(shape.rows * shape.columns, random)),
        d_sum(norm.x.size()),
        mask(static_cast<std::size_t>(shape.rows * ((shape.columns + 7) / 8))) {}

  LossAndDecisions forward() {
    norm.find_statistics();
    run_in_fp64<kernels::BatchNormAddApply>(
        matrix(), {},
        {norm.x.data(), norm.statistics.data(), residual.data(), y.data(), mask.data()});
    return {loss(), mask};
  }
  LossAndDecisions forward_of_two(NormInFp64& shortcut) {
    norm.find_statistics();
    shortcut.find_statistics();
    run_in_fp64<kernels::BatchNormTwoApply>(
        matrix(), {},
        {norm.x.data(), norm.statistics.data(), shortcut.x.data(), shortcut.statistics.data(),
         y.data(), mask.data()});
    return {loss(), mask};
  }
  void backward() {
    run_in_fp64<kernels::BatchNormAddGradientSums>(
        norm.shape, {},
        {outer.data(), norm.x.data(), norm.statistics.data(), mask.data(), d_sum.data(),
         norm.partials.data()});
    norm.finish_gradient();
    run_in_fp64<kernels::BatchNormGradientApply>(
        matrix(), {},
        {d_sum.data(), norm.x.data(), norm.statistics.data(), norm.means.data(), norm.d_x.data()});
  }
  MatrixShape matrix() const { return {norm.shape.rows, norm.shape.columns}; }
  double loss() const {
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += outer[i] * y[i];
    return sum;
  }
};

std::vector<Compared> gradients_of(NormInFp64& norm) {
  return {{&norm.x, &norm.d_x}, {&norm.weight, &norm.d_weight}, {&norm.bias, &norm.d_bias}};
}

constexpr double close = 1e-7;

TEST(BatchNormGradients, FollowTheSlopesWithAndWithoutARelu) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const bool relu : {false, true}) {
    NormInFp64 norm({32, 11, 3}, random);
    Doubles y(norm.x.size()), outer = random_doubles(32 * 11, random);
    const auto forward = [&]() -> LossAndDecisions {
      norm.find_statistics();
      run_in_fp64<kernels::BatchNormApply>({32, 11}, {relu},
                                           {norm.x.data(), norm.statistics.data(), y.data()});
      LossAndDecisions loss;
      for (std::size_t i = 0; i < y.size(); ++i) {
        loss.value += outer[i] * y[i];
        loss.decisions.push_back(relu && y[i] > 0 ? 1 : 0);
      }
      return loss;
    };
    (void)forward();
    norm.find_gradients(outer, relu);
    EXPECT_LT(slope_error(gradients_of(norm), forward, random), close);
    norm.find_gradients(outer, !relu);
    EXPECT_GT(slope_error(gradients_of(norm), forward, random), 0.01)
        << "a relu that only one side computes would go unnoticed";
  }
}

TEST(BatchNormGradients, FollowTheSlopesOfAnAddition) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  AddChain chain({32, 11, 3}, random);
  (void)chain.forward();
  chain.backward();
  std::vector<Compared> all = gradients_of(chain.norm);
  all.push_back({&chain.residual, &chain.d_sum});
  EXPECT_LT(slope_error(
                all, [&] { return chain.forward(); }, random),
            close);
  const Bytes own = chain.mask;
  std::ranges::fill(chain.mask, std::uint8_t{0xff});
  chain.backward();
  EXPECT_GT(slope_error(
                all, [&] { return chain.forward(); }, random),
            0.01)
      << "a mask of another forward pass would go unnoticed";
  EXPECT_EQ(chain.mask, own);
}

TEST(BatchNormGradients, FollowTheSlopesOfTwoNorms) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  AddChain chain({32, 11, 3}, random);
  NormInFp64 shortcut({32, 11, 5}, random);
  (void)chain.forward_of_two(shortcut);
  chain.backward();
  shortcut.find_gradients(chain.d_sum, false);
  std::vector<Compared> all = gradients_of(chain.norm);
  for (const Compared& of_shortcut : gradients_of(shortcut)) all.push_back(of_shortcut);
  EXPECT_LT(slope_error(
                all, [&] { return chain.forward_of_two(shortcut); }, random),
            close);
}

}  // namespace
}  // namespace stepgate
