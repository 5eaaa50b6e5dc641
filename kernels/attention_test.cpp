// SPDX-License-Identifier: MIT
// Tests attention as one kernel and composed of GEMMs: host references against formulas written
// independently here, finite differences, and each other. kernels_cuda_test.cpp tests the CUDA
// side.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/catalogue.h"
#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "kernels/testing/expect_formulas.h"

namespace stepgate {
namespace {

// The position of a number in packed heads.
struct HeadPlace {
  std::int64_t part, sequence, head, token, column;
};

// The head, token and column of element i of rows of `parts` times C numbers.
template <class Shape>
HeadPlace place_in_rows(const Shape& shape, std::int64_t i, std::int64_t parts) {
  const std::int64_t columns = shape.columns, width = columns / shape.heads;
  const std::int64_t row = i / (parts * columns);
  return {i / columns % parts, row / shape.tokens, i % columns / width, row % shape.tokens,
          i % width};
}

std::int64_t index_in_matrices(const PackedHeadsShape& shape, const HeadPlace& p) {
  const auto [rows, columns, tokens, heads] = shape;
  const std::int64_t matrix = (p.part * (rows / tokens) + p.sequence) * heads + p.head;
  return (matrix * tokens + p.token) * (columns / heads) + p.column;
}

TEST(SplitHeads, PutsTheRowsOfEachHeadTogetherAndMergeHeadsTakesThemApart) {
  expect_formulas<kernels::MergeHeads>(
      {{1, [](const TrialOf<kernels::MergeHeads>& t, std::int64_t i) {
          const HeadPlace place = place_in_rows(t.shape, i, t.attributes.parts);
          return value_at(t, 0, index_in_matrices(t.shape, place));
        }}});
  const std::uint64_t seed = std::random_device{}();
  for (KernelTrial& trial : all_trials(trial_recipe("split_heads"), seed)) {
    SCOPED_TRACE(describe(trial, seed));
    run_reference(trial);
    const auto shape = trial.shape.as<kernels::SplitHeads>();
    const std::int64_t parts = trial.attributes.as<kernels::SplitHeads>().parts;
    for (std::int64_t i = 0; i < value_count(trial, 0); ++i) {
      ASSERT_EQ(value_at(trial, 0, i),
                value_at(trial, 1, index_in_matrices(shape, place_in_rows(shape, i, parts))))
          << "element " << i;
    }
  }
}

// A formula for the visible elements of a row: those up to the diagonal, or all. It uses a sum over
// them that is computed at the first element of the row.
using SoftmaxTrial = TrialOf<kernels::Softmax>;
using RowSum = double (*)(const SoftmaxTrial&, std::int64_t element);
using OfSum = double (*)(const SoftmaxTrial&, std::int64_t element, double sum);

FormulaOf<kernels::Softmax> of_visible_elements(bool causal, RowSum term, OfSum element) {
  return [=, sum = 0.0](const SoftmaxTrial& t, std::int64_t i) mutable {
    const std::int64_t size = t.shape.columns;
    const std::int64_t column = i % size, last = causal ? i / size % size : size - 1;
    if (column == 0) {
      sum = 0;
      for (std::int64_t c = 0; c <= last; ++c) sum += term(t, i + c);
    }
    return column <= last ? element(t, i, sum) : 0.0;
  };
}

FormulaOf<kernels::Softmax> probability(bool causal) {
  const RowSum exponential = [](const SoftmaxTrial& t, std::int64_t i) {
    return std::exp(t.attributes.scale * value_at(t, 0, i));
  };
  const OfSum quotient = [](const SoftmaxTrial& t, std::int64_t i, double sum) {
    return std::exp(t.attributes.scale * value_at(t, 0, i)) / sum;
  };
  return of_visible_elements(causal, exponential, quotient);
}

TEST(CausalSoftmax, DividesTheExponentialByTheSumUpToTheDiagonal) {
  expect_formulas<kernels::CausalSoftmax>({{1, probability(true)}});
}

TEST(Softmax, DividesTheExponentialByTheSumOfTheRow) {
  expect_formulas<kernels::Softmax>({{1, probability(false)}});
}

FormulaOf<kernels::Softmax> score_slope(bool causal) {
  const RowSum product = [](const SoftmaxTrial& t, std::int64_t i) {
    return value_at(t, 0, i) * value_at(t, 1, i);
  };
  // The Jacobian is diag(p) - p p^T.
  const OfSum slope = [](const SoftmaxTrial& t, std::int64_t i, double sum) {
    return t.attributes.scale * (value_at(t, 0, i) * value_at(t, 1, i) - value_at(t, 0, i) * sum);
  };
  return of_visible_elements(causal, product, slope);
}

constexpr double unit_of_slopes = 200;  // tolerance for terms of size 1

TEST(CausalSoftmaxGradient, IsTheProductWithTheJacobian) {
  expect_formulas<kernels::CausalSoftmaxGradient>({{2, score_slope(true)}}, unit_of_slopes);
}

TEST(SoftmaxGradient, IsTheProductWithTheJacobian) {
  expect_formulas<kernels::SoftmaxGradient>({{2, score_slope(false)}}, unit_of_slopes);
}

// The first number of a token's row of q | k | v.
std::int64_t row_of(const TrialOf<kernels::Attention>& t, HeadPlace query, std::int64_t token) {
  const auto [rows, columns, tokens, heads, kv_heads] = t.shape;
  return (query.sequence * tokens + token) * columns / heads * (heads + 2 * kv_heads);
}

// The first column, among those of the keys or of the values, of the head that the query meets.
std::int64_t shared_head(const TrialOf<kernels::Attention>& t, HeadPlace query) {
  const auto [rows, columns, tokens, heads, kv_heads] = t.shape;
  return query.head * kv_heads / heads * (columns / heads);
}

// exp(score) of two tokens of a head, for the query's weight of the key.
double attention_weight(const TrialOf<kernels::Attention>& t, HeadPlace query, std::int64_t key) {
  const std::int64_t width = t.shape.columns / t.shape.heads;
  double score = 0;
  for (std::int64_t d = 0; d < width; ++d) {
    score += value_at(t, 0, row_of(t, query, query.token) + query.head * width + d) *
             value_at(t, 0, row_of(t, query, key) + t.shape.columns + shared_head(t, query) + d);
  }
  return std::exp(score / std::sqrt(static_cast<double>(width)));
}

// How many keys a query sees, the first ones.
std::int64_t keys_of(const TrialOf<kernels::Attention>& t, std::int64_t query) {
  return t.attributes.causal ? query + 1 : t.shape.tokens;
}

TEST(Attention, AveragesTheValuesByTheExponentialsOfTheScores) {
  const FormulaOf<kernels::Attention> log_sum = [](const TrialOf<kernels::Attention>& t,
                                                   std::int64_t i) {
    const std::int64_t tokens = t.shape.tokens, heads = t.shape.heads;
    double sum = 0;
    for (std::int64_t key = 0; key < keys_of(t, i % tokens); ++key) {
      sum += attention_weight(t, {0, i / tokens / heads, i / tokens % heads, i % tokens, 0}, key);
    }
    return std::log(sum);
  };
  const FormulaOf<kernels::Attention> out = [weights = std::vector<double>()](
                                                const TrialOf<kernels::Attention>& t,
                                                std::int64_t i) mutable {
    const HeadPlace place = place_in_rows(t.shape, i, 1);
    if (place.column == 0) {
      weights.clear();
      for (std::int64_t key = 0; key < keys_of(t, place.token); ++key) {
        weights.push_back(attention_weight(t, place, key));
      }
    }
    const std::int64_t kv_columns = t.shape.columns / t.shape.heads * t.shape.kv_heads;
    const std::int64_t column = t.shape.columns + kv_columns + shared_head(t, place) + place.column;
    double sum = 0, all = 0;
    for (std::int64_t key = 0; key < keys_of(t, place.token); ++key) {
      sum += weights[key] * value_at(t, 0, row_of(t, place, key) + column);
      all += weights[key];
    }
    return sum / all;
  };
  expect_formulas<kernels::Attention>({{1, out}, {2, log_sum}});
}

using Numbers = std::vector<float>;

struct Heads {
  static constexpr PackedHeadsShape packed = {10, 12, 5, 4};  // two sequences of 5, four heads of 3
  static constexpr MatrixShape square = {40, 5};
  static constexpr std::int64_t elements = packed.rows * packed.columns;
  static constexpr double scale = 0.57735026918962576;  // 1 / sqrt(3)
  AttentionShape shape = {packed.rows, packed.columns, packed.tokens, packed.heads};
  Numbers qkv, direction = Numbers(elements), out = Numbers(elements);
  Numbers log_sums = Numbers(packed.rows * packed.heads);
  bool causal = true;

  explicit Heads(std::uint64_t seed, std::int64_t kv_heads = packed.heads) {
    shape.kv_heads = kv_heads;
    qkv.resize(static_cast<std::size_t>(shape.rows * qkv_columns(shape)));
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& number : qkv) number = uniform(random);
    for (float& number : direction) number = uniform(random);
  }

  void attend() {
    run_in_fp32<kernels::Attention>(shape, {causal}, {qkv.data(), out.data(), log_sums.data()});
  }

  // Projects the output on a random direction; d_out of the gradient is that direction.
  double project() {
    attend();
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += 1.0 * out[i] * direction[i];
    return sum;
  }

  Numbers gradient() {
    attend();
    Numbers d_qkv(qkv.size());
    std::vector<std::byte> scratch(attention_gradient_scratch_bytes(shape, DType::fp32, 0));
    run_in_fp32<kernels::AttentionGradient>(
        shape, {.causal = causal},
        {qkv.data(), out.data(), direction.data(), log_sums.data(), scratch.data(), d_qkv.data()});
    return d_qkv;
  }
};

TEST(AttentionGradient, AgreesWithFiniteDifferences) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const auto& [kv_heads, causal] :
       {std::pair{4, true}, {4, false}, {2, true}, {2, false}, {1, true}}) {
    Heads heads(seed, kv_heads);
    heads.causal = causal;
    const Numbers gradient = heads.gradient();
    for (std::size_t i = 0; i < heads.qkv.size(); ++i) {
      const float old = heads.qkv[i], above_at = old + 1.0f / 256, below_at = old - 1.0f / 256;
      heads.qkv[i] = above_at;
      const double above = heads.project();
      heads.qkv[i] = below_at;
      const double below = heads.project();
      heads.qkv[i] = old;
      EXPECT_NEAR(gradient[i], (above - below) / (1.0 * above_at - below_at), 3e-4)
          << "element " << i << " of keys of " << kv_heads << " heads"
          << (causal ? "" : " where a token sees all");
    }
  }
}

// Attention as a framework without a fused kernel computes it, and its gradient.
struct Materialised {
  Numbers heads = Numbers(3 * Heads::elements), probabilities = Numbers(200);
  Numbers of_heads = Numbers(Heads::elements), out = Numbers(Heads::elements);

  explicit Materialised(Numbers qkv) {
    run_in_fp32<kernels::SplitHeads>(Heads::packed, {.parts = 3}, {qkv.data(), heads.data()});
    run_in_fp32<kernels::Matmul>({5, 5, 3, 8}, {.transpose_b = true},
                                 {q(), k(), probabilities.data()});
    run_in_fp32<kernels::CausalSoftmax>(Heads::square, {.scale = Heads::scale},
                                        {probabilities.data(), probabilities.data()});
    run_in_fp32<kernels::Matmul>({5, 3, 5, 8}, {}, {probabilities.data(), v(), of_heads.data()});
    run_in_fp32<kernels::MergeHeads>(Heads::packed, {}, {of_heads.data(), out.data()});
  }

  float* q() { return heads.data(); }
  float* k() { return heads.data() + Heads::elements; }
  float* v() { return heads.data() + 2 * Heads::elements; }

  Numbers gradient(Numbers d_out) {
    Numbers d_of_heads(d_out.size()), d_heads(heads.size()), d_scores(200), d_qkv(heads.size());
    float* const d_q = d_heads.data();
    run_in_fp32<kernels::SplitHeads>(Heads::packed, {}, {d_out.data(), d_of_heads.data()});
    run_in_fp32<kernels::Matmul>(
        {5, 3, 5, 8}, {.transpose_a = true},
        {probabilities.data(), d_of_heads.data(), d_q + 2 * Heads::elements});
    run_in_fp32<kernels::Matmul>({5, 5, 3, 8}, {.transpose_b = true},
                                 {d_of_heads.data(), v(), d_scores.data()});
    run_in_fp32<kernels::CausalSoftmaxGradient>(
        Heads::square, {.scale = Heads::scale},
        {probabilities.data(), d_scores.data(), d_scores.data()});
    run_in_fp32<kernels::Matmul>({5, 3, 5, 8}, {}, {d_scores.data(), k(), d_q});
    run_in_fp32<kernels::Matmul>({5, 3, 5, 8}, {.transpose_a = true},
                                 {d_scores.data(), q(), d_q + Heads::elements});
    run_in_fp32<kernels::MergeHeads>(Heads::packed, {.parts = 3}, {d_heads.data(), d_qkv.data()});
    return d_qkv;
  }
};

TEST(Attention, AgreesWithItsMaterialisedTwinForwardAndBackward) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Heads heads(seed);
  const Numbers gradient = heads.gradient();
  Materialised materialised(heads.qkv);
  for (std::size_t i = 0; i < heads.out.size(); ++i) {
    EXPECT_NEAR(heads.out[i], materialised.out[i], 1e-6) << "output " << i;
  }
  const Numbers expected = materialised.gradient(heads.direction);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_NEAR(gradient[i], expected[i], 3e-6) << "gradient " << i;
  }
}

std::int64_t neighbours_share(std::int64_t head, const AttentionShape& shape) {
  return head / (shape.heads / shape.kv_heads);
}
std::int64_t every_other_shares(std::int64_t head, const AttentionShape& shape) {
  return head % shape.kv_heads;
}

// Attention of shared heads and its gradient by another way: every head of queries gets a copy of
// its keys and values, and the gradients of the copies are added up.
struct AttentionOfCopies {
  std::int64_t (*met_by)(std::int64_t head, const AttentionShape&) = neighbours_share;
  std::int64_t forgotten_head = -1;  // of queries; its copies' gradients are not added up

  // Visits each number of the copies: visit(its index, index of the original, head of queries).
  template <class Visit>
  void visit(const AttentionShape& shape, const Visit& visit) const {
    const std::int64_t heads = shape.heads, width = shape.columns / heads;
    for (std::int64_t i = 0; i < 3 * shape.rows * shape.columns; ++i) {
      const std::int64_t part = i / shape.columns % 3, head = i / width % heads;
      const std::int64_t before =
          part == 0 ? head : heads + (part - 1) * shape.kv_heads + met_by(head, shape);
      const std::int64_t row = i / (3 * shape.columns);
      visit(i, row * qkv_columns(shape) + before * width + i % width, part == 0 ? -2 : head);
    }
  }

  // Replaces what a trial in fp32 of attention's gradient has as out and log sums, and its result.
  void run(KernelTrial& trial) const {
    const auto shape = trial.shape.as<kernels::AttentionGradient>();
    const bool causal = trial.attributes.as<kernels::AttentionGradient>().causal;
    const AttentionShape copied{shape.rows, shape.columns, shape.tokens, shape.heads};
    Numbers rows(static_cast<std::size_t>(3 * elements_of(shape))), d_rows(rows.size());
    visit(shape, [&](auto copy, auto original, auto) {
      rows[copy] = static_cast<float>(value_at(trial, 0, original));
    });
    auto& operands = trial.operands;
    run_in_fp32<kernels::Attention>(copied, {causal},
                                    {rows.data(), operands[1].data(), operands[3].data()});
    run_in_fp32<kernels::AttentionGradient>(
        copied, {.causal = causal},
        {rows.data(), operands[1].data(), operands[2].data(), operands[3].data(),
         operands[4].data(), d_rows.data()});
    std::vector<double> sums(static_cast<std::size_t>(shape.rows * qkv_columns(shape)));
    visit(shape, [&](auto copy, auto original, auto head) {
      if (head != forgotten_head) sums[original] += d_rows[copy];
    });
    for (std::size_t i = 0; i < sums.size(); ++i)
      set_number(operands[5].data(), trial.dtype, static_cast<std::int64_t>(i), sums[i]);
  }

  std::string difference_from_reference(const KernelTrial& trial) const {
    KernelTrial expected = trial, got = trial;
    run_reference(expected);
    run(got);
    return difference(got, expected);
  }
};

// The comparison is that of trials on a GPU, so a kernel with such a fault is refused there too.
TEST(Attention, OfSharedHeadsIsThatOfTheirCopiesAndOfNoOthers) {
  const std::uint64_t seed = std::random_device{}();
  int groups = 0;
  for (const KernelTrial& trial : all_trials(trial_recipe("attention_gradient"), seed)) {
    const auto shape = trial.shape.as<kernels::AttentionGradient>();
    if (trial.dtype != DType::fp32 || shape.kv_heads == shape.heads) continue;
    SCOPED_TRACE(describe(trial, seed));
    EXPECT_EQ(AttentionOfCopies{}.difference_from_reference(trial), "");
    const AttentionOfCopies without_the_second{.forgotten_head = 1};
    EXPECT_NE(without_the_second.difference_from_reference(trial), "");
    if (shape.kv_heads == 1) continue;
    const AttentionOfCopies of_others{.met_by = every_other_shares};
    EXPECT_NE(of_others.difference_from_reference(trial), "");
    ++groups;
  }
  EXPECT_GT(groups, 0) << "no trial has several groups of heads";
}

}  // namespace
}  // namespace stepgate
