// SPDX-License-Identifier: MIT
// Compares host references of the norms, their gradients and the sums of parts with formulas
// written independently here. They use moments rather than differences, and the Jacobian for the
// gradient of x.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/catalogue.h"
#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "kernels/testing/expect_formulas.h"
#include "kernels/trial/kernel_trial.h"

namespace stepgate {
namespace {

enum class Norm { layer, rms };

using Element = std::function<double(const TrialOf<kernels::LayerNorm>&, std::int64_t)>;

struct Row {
  double mean = 0, scale = 0;
};

// Mean and scale of a row; `x` returns its elements.
Row row_of(const TrialOf<kernels::LayerNorm>& t, std::int64_t row, const Element& x, Norm norm) {
  double sum = 0, squares = 0;
  for (std::int64_t c = t.shape.columns - 1; c >= 0; --c) {
    const double value = x(t, row * t.shape.columns + c);
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(t.shape.columns);
  const double mean = norm == Norm::layer ? sum / count : 0;
  return {mean, std::pow(squares / count - mean * mean + t.attributes.epsilon, -0.5)};
}

double first_operand(const TrialOf<kernels::LayerNorm>& t, std::int64_t i) {
  return value_at(t, 0, i);
}

double stored_sum_of_two(const TrialOf<kernels::LayerNorm>& t, std::int64_t i) {
  return stored_number(t.trial.dtype, value_at(t, 0, i) + value_at(t, 1, i));
}

double stored_sum_of_three(const TrialOf<kernels::LayerNorm>& t, std::int64_t i) {
  const double bias = value_at(t, 2, i % t.shape.columns);
  return stored_number(t.trial.dtype, value_at(t, 0, i) + value_at(t, 1, i) + bias);
}

// `weight` is the index of the operand weight; in a layer norm the bias is the next operand.
FormulaOf<kernels::LayerNorm> normed(Norm norm, Element x, std::size_t weight) {
  return [=, row = Row{}](const TrialOf<kernels::LayerNorm>& t, std::int64_t i) mutable {
    const std::int64_t column = i % t.shape.columns;
    if (column == 0) row = row_of(t, i / t.shape.columns, x, norm);
    const double shift = norm == Norm::layer ? value_at(t, weight + 1, column) : 0;
    return shift + value_at(t, weight, column) * (x(t, i) - row.mean) * row.scale;
  };
}

FormulaOf<kernels::LayerNorm> statistics(Norm norm, Element x) {
  return [=](const TrialOf<kernels::LayerNorm>& t, std::int64_t i) {
    if (norm == Norm::rms) return row_of(t, i, x, norm).scale;
    const Row row = row_of(t, i / 2, x, norm);
    return i % 2 == 0 ? row.mean : row.scale;
  };
}

// Where the deviation is almost 0, the rounding error of the moments is multiplied by up to
// epsilon^-3/2.
constexpr double unit_of_moments = 1e4;

TEST(LayerNorm, TakesMeanAndDeviationOfEachRow) {
  expect_formulas<kernels::LayerNorm>(
      {{3, normed(Norm::layer, first_operand, 1)}, {4, statistics(Norm::layer, first_operand)}},
      unit_of_moments);
}

TEST(ResidualLayerNorm, AddsTheBranchBeforeItRounds) {
  expect_formulas<kernels::ResidualLayerNorm>({{4, stored_sum_of_two},
                                               {5, normed(Norm::layer, stored_sum_of_two, 2)},
                                               {6, statistics(Norm::layer, stored_sum_of_two)}},
                                              unit_of_moments);
}

TEST(ResidualBiasLayerNorm, AddsTheBranchsBiasBeforeItRounds) {
  expect_formulas<kernels::ResidualBiasLayerNorm>(
      {{5, stored_sum_of_three},
       {6, normed(Norm::layer, stored_sum_of_three, 3)},
       {7, statistics(Norm::layer, stored_sum_of_three)}},
      unit_of_moments);
}

TEST(RmsNorm, DividesByTheRootMeanSquareOfEachRow) {
  expect_formulas<kernels::RmsNorm>(
      {{2, normed(Norm::rms, first_operand, 1)}, {3, statistics(Norm::rms, first_operand)}});
}

TEST(ResidualRmsNorm, AddsTheBranchBeforeItRounds) {
  expect_formulas<kernels::ResidualRmsNorm>({{3, stored_sum_of_two},
                                             {4, normed(Norm::rms, stored_sum_of_two, 2)},
                                             {5, statistics(Norm::rms, stored_sum_of_two)}});
}

TEST(ResidualBiasRmsNorm, AddsTheBranchsBiasBeforeItRounds) {
  expect_formulas<kernels::ResidualBiasRmsNorm>({{4, stored_sum_of_three},
                                                 {5, normed(Norm::rms, stored_sum_of_three, 3)},
                                                 {6, statistics(Norm::rms, stored_sum_of_three)}});
}

// Indices of the operands of the gradients.
enum : std::size_t { d_y, x, weight, statistics_of_rows, d_x, partials };

double scale_of(const TrialOf<kernels::LayerNormGradient>& t, Norm norm, std::int64_t row) {
  return value_at(t, statistics_of_rows, norm == Norm::rms ? row : 2 * row + 1);
}

double normalised(const TrialOf<kernels::LayerNormGradient>& t, Norm norm, std::int64_t row,
                  std::int64_t column) {
  const double mean = norm == Norm::rms ? 0 : value_at(t, statistics_of_rows, 2 * row);
  return (value_at(t, x, row * t.shape.columns + column) - mean) * scale_of(t, norm, row);
}

// Sums d_y[j] weight[j] times the Jacobian of the normalised x over j. The derivative of the
// normalised x[j] with respect to x[c] is scale ((j == c) - 1/C - n[j] n[c] / C); in rms without
// 1/C. The two sums over a row are computed once, at its first column.
FormulaOf<kernels::LayerNormGradient> gradient_of_x(Norm norm) {
  return [=, sum = 0.0, projection = 0.0](const TrialOf<kernels::LayerNormGradient>& t,
                                          std::int64_t i) mutable {
    const std::int64_t row = i / t.shape.columns, column = i % t.shape.columns;
    const auto weighed = [&](std::int64_t j) {
      return value_at(t, d_y, row * t.shape.columns + j) * value_at(t, weight, j);
    };
    if (column == 0) {
      sum = projection = 0;
      for (std::int64_t j = t.shape.columns - 1; j >= 0; --j) {
        sum += norm == Norm::layer ? weighed(j) : 0;
        projection += weighed(j) * normalised(t, norm, row, j);
      }
    }
    const auto count = static_cast<double>(t.shape.columns);
    const double spread = (sum + normalised(t, norm, row, column) * projection) / count;
    const double old = t.attributes.accumulate ? value_at(t, d_x, i) : 0;
    return old + scale_of(t, norm, row) * (weighed(column) - spread);
  };
}

// All gradients of x, in the order of the elements. They are computed once, since each takes time
// proportional to a row.
std::vector<double> gradients_of_x(Norm norm, const TrialOf<kernels::LayerNormGradient>& t) {
  const FormulaOf<kernels::LayerNormGradient> gradient = gradient_of_x(norm);
  std::vector<double> all;
  for (std::int64_t i = 0; i < t.shape.rows * t.shape.columns; ++i) all.push_back(gradient(t, i));
  return all;
}

FormulaOf<kernels::LayerNormGradient> parts(Norm norm) {
  return [=, d_xs = std::vector<double>()](const TrialOf<kernels::LayerNormGradient>& t,
                                           std::int64_t i) mutable {
    const std::int64_t width = (norm == Norm::layer ? 2 : 1) * t.shape.columns;
    const std::int64_t column = i % t.shape.columns;
    const std::int64_t of_parameters = t.shape.parts * width;
    if (i == of_parameters) d_xs = gradients_of_x(norm, t);
    if (i >= of_parameters) {
      double sum = 0;
      for (std::int64_t row = (i - of_parameters) / t.shape.columns; row < t.shape.rows;
           row += t.shape.parts) {
        sum += d_xs[static_cast<std::size_t>(row * t.shape.columns + column)];
      }
      return sum;
    }
    const bool of_bias = i % width >= t.shape.columns;
    double sum = 0;
    for (std::int64_t row = i / width; row < t.shape.rows; row += t.shape.parts) {
      const double factor = of_bias ? 1 : normalised(t, norm, row, column);
      sum += value_at(t, d_y, row * t.shape.columns + column) * factor;
    }
    return sum;
  };
}

TEST(LayerNormGradient, FollowsTheSlopesOfTheNorm) {
  expect_formulas<kernels::LayerNormGradient>(
      {{d_x, gradient_of_x(Norm::layer)}, {partials, parts(Norm::layer)}}, 100);
}

TEST(RmsNormGradient, FollowsTheSlopesOfTheNorm) {
  expect_formulas<kernels::RmsNormGradient>(
      {{d_x, gradient_of_x(Norm::rms)}, {partials, parts(Norm::rms)}}, 100);
}

// Compares the gradients with central differences of the norm's own reference, with the statistics
// that it returns.
TEST(LayerNormGradient, AgreesWithFiniteDifferencesOfTheNorm) {
  constexpr std::int64_t columns = 6;
  float x_row[columns] = {0.3f, -0.7f, 0.1f, 0.9f, -0.2f, 0.5f};
  float weights[columns] = {0.5f, 1.5f, -1.0f, 0.8f, 0.2f, 1.1f}, biases[columns] = {};
  float outer[columns] = {1.0f, -0.5f, 0.25f, 2.0f, -1.0f, 0.75f};
  float y[columns], pair[2], slope[columns], sums[2 * columns];
  const auto loss = [&] {
    void* const buffers[] = {x_row, weights, biases, y, pair};
    kernel("layer_norm")
        .reference({MatrixShape{1, columns}, DType::fp32, NormAttributes{1e-5}, buffers});
    double sum = 0;
    for (std::int64_t c = 0; c < columns; ++c) sum += static_cast<double>(outer[c]) * y[c];
    return sum;
  };
  loss();
  void* const buffers[] = {outer, x_row, weights, pair, slope, sums};
  kernel("layer_norm_gradient").reference({PartsShape{1, columns}, DType::fp32, {}, buffers});
  for (std::int64_t c = 0; c < columns; ++c) {
    const float old = x_row[c];
    x_row[c] = old + 0x1p-7f;
    const double above = loss();
    x_row[c] = old - 0x1p-7f;
    const double below = loss();
    x_row[c] = old;
    EXPECT_NEAR(slope[c], (above - below) / 0x1p-6, 2e-3) << "column " << c;
  }
}

TEST(ColumnParts, SumsEveryPartsRowsOfEachColumn) {
  const FormulaOf<kernels::ColumnParts> sum = [](const TrialOf<kernels::ColumnParts>& t,
                                                 std::int64_t i) {
    double total = 0;
    for (std::int64_t row = t.shape.rows - 1; row >= 0; --row) {
      if (row % t.shape.parts != i / t.shape.columns) continue;
      total += value_at(t, 0, row * t.shape.columns + i % t.shape.columns);
    }
    return total;
  };
  expect_formulas<kernels::ColumnParts>({{1, sum}});
}

// The plan uses these numbers of parts, and no part may be empty.
TEST(Parts, AreAtLeastOneAndNeverMoreThanTheRows) {
  for (const std::int64_t rows : {1, 2, 7, 8, 31, 32, 1000, 16384, 32768}) {
    for (const std::int64_t count : {norm_parts(rows), column_parts(rows, 1),
                                     column_parts(rows, 768), column_parts(rows, 1 << 20)}) {
      EXPECT_GE(count, 1) << rows;
      EXPECT_LE(count, rows);
    }
  }
}

TEST(SumParts, SumsEachColumnOfTheParts) {
  const FormulaOf<kernels::SumParts> sum = [](const TrialOf<kernels::SumParts>& t,
                                              std::int64_t column) {
    double total = t.attributes.accumulate ? value_at(t, 1, column) : 0;
    for (std::int64_t part = t.shape.parts - 1; part >= 0; --part) {
      total += value_at(t, 0, part * t.shape.columns + column);
    }
    return total;
  };
  expect_formulas<kernels::SumParts>({{1, sum}});
}

}  // namespace
}  // namespace stepgate
