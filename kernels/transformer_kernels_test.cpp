// SPDX-License-Identifier: MIT
// Compares host references of kernels that only a transformer needs with formulas written
// independently here. norm_test.cpp tests the norms.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "kernels/testing/expect_formulas.h"
#include "kernels/trial/kernel_trial.h"

namespace stepgate {
namespace {

double token_of_words(const TrialOf<kernels::IngestTokens>& t, std::int64_t sample,
                      std::int64_t position) {
  std::uint32_t folded = 0;
  for (std::int64_t word = 0; word < t.shape.words; ++word) {
    if (word % (t.shape.positions + 1) != position) continue;
    folded ^= static_cast<std::uint32_t>(value_at(t, 0, sample * t.shape.words + word));
  }
  // The token is the fractional part of the word times the golden ratio, scaled to the vocabulary.
  const double fraction = folded * 0x9e3779b1u;
  return std::floor(fraction * static_cast<double>(t.attributes.vocabulary) / 0x1p32);
}

TEST(IngestTokens, FoldsTheWordsOfEachPositionAndLabelsItWithTheNextTokenUnlessItIsPadding) {
  expect_formulas<kernels::IngestTokens>(
      {{1,
        [](const TrialOf<kernels::IngestTokens>& t, std::int64_t i) {
          return token_of_words(t, i / t.shape.positions, i % t.shape.positions);
        }},
       {2, [](const TrialOf<kernels::IngestTokens>& t, std::int64_t i) {
          const std::int64_t length = t.attributes.length;
          if (length > 0 && i % t.shape.positions >= length) return -1.0;
          return token_of_words(t, i / t.shape.positions, i % t.shape.positions + 1);
        }}});
}

TEST(Embedding, AddsTheRowOfTheTokenAndThatOfThePosition) {
  const FormulaOf<kernels::Embedding> x = [](const TrialOf<kernels::Embedding>& t, std::int64_t i) {
    const std::int64_t row = i / t.shape.columns, column = i % t.shape.columns;
    const auto token = static_cast<std::int64_t>(value_at(t, 0, row));
    return value_at(t, 1, token * t.shape.columns + column) +
           value_at(t, 2, (row % t.shape.positions) * t.shape.columns + column);
  };
  expect_formulas<kernels::Embedding>({{3, x}});
}

TEST(TokenEmbedding, IsTheRowOfTheToken) {
  const FormulaOf<kernels::TokenEmbedding> x = [](const TrialOf<kernels::TokenEmbedding>& t,
                                                  std::int64_t i) {
    const auto token = static_cast<std::int64_t>(value_at(t, 0, i / t.shape.columns));
    return value_at(t, 1, token * t.shape.columns + i % t.shape.columns);
  };
  expect_formulas<kernels::TokenEmbedding>({{2, x}});
}

TEST(EmbeddingGradient, AddsTheRowsOfEachTokenToItsRowOfTheTable) {
  const FormulaOf<kernels::EmbeddingGradient> d_table =
      [](const TrialOf<kernels::EmbeddingGradient>& t, std::int64_t i) {
        double sum = value_at(t, 2, i);
        for (std::int64_t row = t.shape.rows - 1; row >= 0; --row) {
          if (static_cast<std::int64_t>(value_at(t, 0, row)) != i / t.shape.columns) continue;
          sum += value_at(t, 1, row * t.shape.columns + i % t.shape.columns);
        }
        return sum;
      };
  expect_formulas<kernels::EmbeddingGradient>({{2, d_table}});
}

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

// A difference of fourth order, with an error of the fifth derivative times distance^4 / 30.
double slope_of_gelu(double x) {
  const auto gelu = [](double at) { return at * logistic_of_inner(at); };
  constexpr double distance = 1e-3;
  return (8 * (gelu(x + distance) - gelu(x - distance)) -
          (gelu(x + 2 * distance) - gelu(x - 2 * distance))) /
         (12 * distance);
}

TEST(GeluGradient, IsTheSlopeOfGelu) {
  const Formula dx = [](const KernelTrial& t, std::int64_t i) {
    return value_at(t, 1, i) * slope_of_gelu(value_at(t, 0, i));
  };
  expect_formulas("gelu_gradient", {{2, dx}}, 10);
}

TEST(LinearGelu, StoresTheSumsAndTheirGelu) {
  const auto sum = [](const TrialOf<kernels::LinearGelu>& t, std::int64_t i) {
    const std::int64_t row = i / t.shape.columns, column = i % t.shape.columns;
    double of = value_at(t, 2, column);
    for (std::int64_t inner = 0; inner < t.shape.depth; ++inner) {
      of += value_at(t, 0, row * t.shape.depth + inner) *
            value_at(t, 1, column * t.shape.depth + inner);
    }
    return of;
  };
  const FormulaOf<kernels::LinearGelu> up = sum, y = [=](const auto&t, std::int64_t i) {
    return sum(t, i) * logistic_of_inner(sum(t, i));
  };
  expect_formulas<kernels::LinearGelu>({{3, up}, {4, y}}, 100);
}

TEST(MatmulGeluGradient, ScalesTheProductByTheSlopeAtWhatTheGeluRead) {
  const FormulaOf<kernels::MatmulGeluGradient> d_up =
      [](const TrialOf<kernels::MatmulGeluGradient>& t, std::int64_t i) {
        const std::int64_t row = i / t.shape.columns, column = i % t.shape.columns;
        double sum = 0;
        for (std::int64_t inner = 0; inner < t.shape.depth; ++inner) {
          sum += value_at(t, 0, row * t.shape.depth + inner) *
                 value_at(t, 1, inner * t.shape.columns + column);
        }
        return sum * slope_of_gelu(value_at(t, 2, i));
      };
  expect_formulas<kernels::MatmulGeluGradient>({{3, d_up}}, 1000);
}

// Computes silu(gate) up with tanh instead of an exponential.
double gated(double gate, double up) {
  return gate * (1 + std::tanh(gate / 2)) / 2 * up;
}

// Gate and up of element i of rows of F numbers, in rows of F gates and F ups.
double gate_of(const TrialOf<kernels::Swiglu>& t, std::int64_t i) {
  const std::int64_t columns = t.shape.columns;
  return value_at(t, 0, i / columns * 2 * columns + i % columns);
}
double up_of(const TrialOf<kernels::Swiglu>& t, std::int64_t i) {
  const std::int64_t columns = t.shape.columns;
  return value_at(t, 0, (i / columns * 2 + 1) * columns + i % columns);
}

TEST(Swiglu, GatesTheSecondHalfOfARowByTheSiluOfTheFirst) {
  expect_formulas<kernels::Swiglu>({{1, [](const TrialOf<kernels::Swiglu>& t, std::int64_t i) {
                                       return gated(gate_of(t, i), up_of(t, i));
                                     }}});
}

TEST(SwigluGradient, IsTheSlopeOfSwigluInItsGateAndInItsUp) {
  const FormulaOf<kernels::SwigluGradient> dx = [](const TrialOf<kernels::SwigluGradient>& t,
                                                   std::int64_t i) {
    const std::int64_t columns = t.shape.columns;
    const std::int64_t element = i / (2 * columns) * columns + i % columns;
    const double gate = gate_of(t, element), up = up_of(t, element);
    const double d_y = value_at(t, 1, element);
    if (i / columns % 2 == 1) return d_y * gated(gate, 1);
    // This is a difference of fourth order, with an error of the fifth derivative times distance^4
    // / 30.
    constexpr double distance = 1e-3;
    const auto difference = [&](double width) {
      return gated(gate + width, up) - gated(gate - width, up);
    };
    return d_y * (8 * difference(distance) - difference(2 * distance)) / (12 * distance);
  };
  expect_formulas<kernels::SwigluGradient>({{2, dx}}, 10);
}

TEST(BiasGelu, TakesTheGeluOfTheSumAsItIsStored) {
  const auto sum = [](const TrialOf<kernels::BiasGelu>& t, std::int64_t i) {
    return value_at(t, 0, i) + value_at(t, 1, i % t.shape.columns);
  };
  const auto stored = [=](const TrialOf<kernels::BiasGelu>& t, std::int64_t i) {
    return stored_number(t.trial.dtype, sum(t, i));
  };
  expect_formulas<kernels::BiasGelu>(
      {{2, sum}, {3, [=](const TrialOf<kernels::BiasGelu>& t, std::int64_t i) {
                    const double pre = stored(t, i);
                    return pre * logistic_of_inner(pre);
                  }}});
}

TEST(Rope, TurnsThePairsOfTheFirstHeadsAsComplexNumbersOfTheHalves) {
  const FormulaOf<kernels::Rope> turned = [](const TrialOf<kernels::Rope>& t, std::int64_t i) {
    const auto rope = t.attributes;
    const std::int64_t column = i % t.shape.columns, half = rope.width / 2;
    if (column >= t.shape.heads * rope.width) return value_at(t, 0, i);
    const std::int64_t pair = column % half;
    const bool second = column % rope.width >= half;
    const std::int64_t first = second ? i - half : i;
    const auto position = static_cast<double>(i / t.shape.columns % t.shape.tokens);
    const double frequency =
        std::exp(-std::log(rope.base) * static_cast<double>(pair) / static_cast<double>(half));
    const std::complex<double> number(value_at(t, 0, first), value_at(t, 0, first + half));
    const std::complex<double> result =
        number * std::polar(1.0, (rope.inverse ? -position : position) * frequency);
    return second ? result.imag() : result.real();
  };
  expect_formulas<kernels::Rope>({{0, turned}},
                                 10);  // angles of thousands have rounding errors
}

// The inverse turns the gradient because R' R = 1, and (R x) y = x (R' y).
TEST(Rope, BackIsItsInverseAndItsTranspose) {
  constexpr PackedHeadsShape shape{.rows = 21, .columns = 3 * 48, .tokens = 7, .heads = 6};
  constexpr std::size_t count = 21 * 3 * 48;
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(count), y(count);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = uniform(random);
    y[i] = uniform(random);
  }
  const auto turn = [&](std::vector<float> rows, bool inverse) {
    run_in_fp32<kernels::Rope>(shape, {.width = 16, .inverse = inverse}, {rows.data()});
    return rows;
  };
  const auto product = [](const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
  };
  const std::vector<float> turned = turn(x, false);
  EXPECT_NE(turned, x);
  const std::vector<float> back = turn(turned, true);
  for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(back[i], x[i], 3e-7) << "number " << i;
  EXPECT_NEAR(product(turned, y), product(x, turn(y, true)), 1e-5);
}

// The position of a number in a row of queries, keys and values: its part, its head, and its index
// within the head.
struct HeadNumber {
  std::int64_t row, part, head, within;
};

// The index of the number in rows of `heads` heads of queries and `kv_heads` of keys and of values.
std::int64_t index_of(const HeadNumber& number, std::int64_t heads, std::int64_t kv_heads,
                      std::int64_t width) {
  const std::int64_t before = number.part == 0 ? 0 : heads + (number.part - 1) * kv_heads;
  return (number.row * (heads + 2 * kv_heads) + before + number.head) * width + number.within;
}

HeadNumber number_of(std::int64_t index, std::int64_t heads, std::int64_t kv_heads,
                     std::int64_t width) {
  const std::int64_t in_row = index / width % (heads + 2 * kv_heads);
  HeadNumber number{index / width / (heads + 2 * kv_heads), 0, in_row, index % width};
  if (in_row >= heads) {
    number.part = 1 + (in_row - heads) / kv_heads;
    number.head = (in_row - heads) % kv_heads;
  }
  return number;
}

TEST(RepeatHeads, GivesEveryHeadOfQueriesTheKeysAndValuesOfItsGroup) {
  expect_formulas<kernels::RepeatHeads>(
      {{1, [](const TrialOf<kernels::RepeatHeads>& t, std::int64_t i) {
          const std::int64_t heads = t.shape.heads, width = t.shape.columns / heads;
          const std::int64_t kv_heads = t.attributes.kv_heads;
          HeadNumber number = number_of(i, heads, heads, width);
          if (number.part > 0) number.head = number.head * kv_heads / heads;
          return value_at(t, 0, index_of(number, heads, kv_heads, width));
        }}});
}

TEST(RepeatHeadsGradient, AddsUpWhatTheHeadsOfAGroupSend) {
  expect_formulas<kernels::RepeatHeadsGradient>(
      {{1,
        [](const TrialOf<kernels::RepeatHeadsGradient>& t, std::int64_t i) {
          const std::int64_t heads = t.shape.heads, width = t.shape.columns / heads;
          const std::int64_t kv_heads = t.attributes.kv_heads;
          const HeadNumber number = number_of(i, heads, kv_heads, width);
          double sum = 0;
          for (std::int64_t head = heads - 1; head >= 0; --head) {
            HeadNumber repeated = number;
            repeated.head = head;
            const std::int64_t sent_to = number.part == 0 ? head : head * kv_heads / heads;
            if (sent_to == number.head)
              sum += value_at(t, 0, index_of(repeated, heads, heads, width));
          }
          return sum;
        }}},
      10);
}

}  // namespace
}  // namespace stepgate
