// SPDX-License-Identifier: MIT
// Host references of the kernels that only a transformer has, against formulas written
// independently here. Norms are norm_test.cpp's.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "kernels/testing/expect_formulas.h"
#include "kernels/testing/kernel_trial.h"

namespace stepgate {
namespace {

// --- tokens and tables ---------------------------------------------------------------------------

double token_of_words(const KernelTrial& t, std::int64_t sample, std::int64_t position) {
  std::uint32_t folded = 0;
  for (std::int64_t word = 0; word < t.shape.depth; ++word) {
    if (word % (t.shape.columns + 1) != position) continue;
    folded ^= static_cast<std::uint32_t>(value_at(t, 0, sample * t.shape.depth + word));
  }
  // The fractional part of the word times the golden ratio, spread over the vocabulary.
  const double fraction = folded * 0x9e3779b1u;
  return std::floor(
      fraction * static_cast<double>(t.attributes.as<kernels::IngestTokens>().vocabulary) / 0x1p32);
}

TEST(IngestTokens, FoldsTheWordsOfEachPositionAndLabelsItWithTheNextToken) {
  expect_formulas("ingest_tokens",
                  {{1,
                    [](const KernelTrial& t, std::int64_t i) {
                      return token_of_words(t, i / t.shape.columns, i % t.shape.columns);
                    }},
                   {2, [](const KernelTrial& t, std::int64_t i) {
                      return token_of_words(t, i / t.shape.columns, i % t.shape.columns + 1);
                    }}});
}

TEST(Embedding, AddsTheRowOfTheTokenAndThatOfThePosition) {
  const Formula x = [](const KernelTrial& t, std::int64_t i) {
    const std::int64_t row = i / t.shape.columns, column = i % t.shape.columns;
    const auto token = static_cast<std::int64_t>(value_at(t, 0, row));
    return value_at(t, 1, token * t.shape.columns + column) +
           value_at(t, 2, (row % t.shape.groups) * t.shape.columns + column);
  };
  expect_formulas("embedding", {{3, x}});
}

TEST(EmbeddingGradient, AddsTheRowsOfEachTokenToItsRowOfTheTable) {
  const Formula d_table = [](const KernelTrial& t, std::int64_t i) {
    double sum = value_at(t, 2, i);
    for (std::int64_t row = t.shape.rows - 1; row >= 0; --row) {
      if (static_cast<std::int64_t>(value_at(t, 0, row)) != i / t.shape.columns) continue;
      sum += value_at(t, 1, row * t.shape.columns + i % t.shape.columns);
    }
    return sum;
  };
  expect_formulas("embedding_gradient", {{2, d_table}});
}

// --- element by element --------------------------------------------------------------------------

TEST(Add, AddsElementByElement) {
  expect_formulas("add", {{2, [](const KernelTrial& t, std::int64_t i) {
                             return value_at(t, 0, i) + value_at(t, 1, i);
                           }}});
}

// The logistic function at 2 u, which is (1 + tanh(u)) / 2.
double logistic_of_inner(double x) {
  const double inner = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * std::pow(x, 3));
  return 1 / (1 + std::exp(-2 * inner));
}

TEST(Gelu, IsTheLogisticFormOfTheTanhApproximation) {
  expect_formulas("gelu", {{1, [](const KernelTrial& t, std::int64_t i) {
                              return value_at(t, 0, i) * logistic_of_inner(value_at(t, 0, i));
                            }}});
}

TEST(GeluGradient, IsTheSlopeOfGelu) {
  const Formula dx = [](const KernelTrial& t, std::int64_t i) {
    const auto gelu = [](double x) { return x * logistic_of_inner(x); };
    // A difference of fourth order: off by the fifth derivative times distance^4 / 30.
    constexpr double distance = 1e-3;
    const double x = value_at(t, 0, i);
    const double slope = (8 * (gelu(x + distance) - gelu(x - distance)) -
                          (gelu(x + 2 * distance) - gelu(x - 2 * distance))) /
                         (12 * distance);
    return value_at(t, 1, i) * slope;
  };
  expect_formulas("gelu_gradient", {{2, dx}}, 10);
}

TEST(BiasGelu, TakesTheGeluOfTheSumAsItIsStored) {
  const auto sum = [](const KernelTrial& t, std::int64_t i) {
    return value_at(t, 0, i) + value_at(t, 1, i % t.shape.columns);
  };
  const auto stored = [=](const KernelTrial& t, std::int64_t i) {
    return stored_number(t.dtype, sum(t, i));
  };
  expect_formulas("bias_gelu", {{2, sum}, {3, [=](const KernelTrial& t, std::int64_t i) {
                                             const double pre = stored(t, i);
                                             return pre * logistic_of_inner(pre);
                                           }}});
}

}  // namespace
}  // namespace stepgate
