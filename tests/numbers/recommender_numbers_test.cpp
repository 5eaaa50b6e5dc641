// SPDX-License-Identifier: MIT
// Compares a recommender's losses and gradients with naive loops in double that start from the
// words of its batch. Also tests that lookups and updates of all kinds agree, and that the model
// learns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "device/contents.h"
#include "device/reference/reference_device.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

constexpr std::size_t layers = 2, tables = 3, table_rows = 7, columns = 8, samples = 5;
constexpr std::size_t width = tables * columns;
constexpr std::size_t of_layer = width * width + width;

// A sample has more words than indices, so some words are folded.
Knobs small_recommender(Fuse fuse, std::size_t words = tables + 1) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::recommender, .layers = layers, .hidden = columns};
  knobs.model.tables = tables;
  knobs.model.vocab = table_rows;
  knobs.batch = {.size = samples, .sample_bytes = static_cast<std::int64_t>(words * 4)};
  knobs.launch.fuse = fuse;
  return knobs;
}

template <class Number>
std::vector<Number> initial(const StepPlan& plan, Content content) {
  const auto buffer = std::ranges::find(plan.buffers, content, &Buffer::content);
  std::vector<std::byte> bytes(static_cast<std::size_t>(buffer->bytes));
  fill_contents(*buffer, 0, plan.seed, bytes);
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Computes the first step, one sample and one weight after another.
struct Textbook {
  explicit Textbook(const StepPlan& plan)
      : weights(initial<float>(plan, Content::weights)), gradients(weights.size()) {
    const auto words = initial<std::uint32_t>(plan, Content::payload);
    const std::size_t of_sample = words.size() / samples;
    for (std::size_t sample = 0; sample < samples; ++sample)
      add_sample({words.begin() + sample * of_sample, words.begin() + (sample + 1) * of_sample});
  }

  std::vector<float> weights;
  std::vector<double> gradients;
  double loss = 0;

 private:
  // Returns the fractional part of the folded words times the golden ratio, scaled to the number of
  // values.
  static std::size_t index_of(const std::vector<std::uint32_t>& words, std::size_t place,
                              std::size_t values) {
    std::uint32_t folded = 0;
    for (std::size_t word = place; word < words.size(); word += tables + 1) folded ^= words[word];
    const double fraction = folded * 0x9e3779b1u;
    return static_cast<std::size_t>(std::floor(fraction * static_cast<double>(values) / 0x1p32));
  }

  void add_sample(const std::vector<std::uint32_t>& words) {
    std::vector<std::size_t> found;  // the first number of each row
    for (std::size_t table = 0; table < tables; ++table) {
      const std::size_t row = table * table_rows + index_of(words, table, table_rows);
      found.push_back(layers * of_layer + row * columns);
    }
    const std::size_t label = index_of(words, tables, width);
    std::vector<std::vector<double>> outputs(1);
    for (const std::size_t first : found)
      for (std::size_t c = 0; c < columns; ++c) outputs[0].push_back(weights[first + c]);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const std::size_t weight = layer * of_layer, bias = weight + width * width;
      std::vector<double> out(width);
      for (std::size_t to = 0; to < width; ++to) {
        out[to] = weights[bias + to];
        for (std::size_t from = 0; from < width; ++from)
          out[to] += weights[weight + to * width + from] * outputs[layer][from];
        if (layer + 1 < layers) out[to] = std::max(out[to], 0.0);
      }
      outputs.push_back(out);
    }
    const std::vector<double>& logits = outputs.back();
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    loss += (std::log(sum) - logits[label]) / samples;
    std::vector<double> gradient(width);
    for (std::size_t i = 0; i < width; ++i)
      gradient[i] = (std::exp(logits[i]) / sum - (i == label ? 1 : 0)) / samples;
    for (std::size_t layer = layers; layer-- > 0;) {
      const std::size_t weight = layer * of_layer, bias = weight + width * width;
      std::vector<double> below(width);
      for (std::size_t to = 0; to < width; ++to) {
        gradients[bias + to] += gradient[to];
        for (std::size_t from = 0; from < width; ++from) {
          gradients[weight + to * width + from] += gradient[to] * outputs[layer][from];
          if (layer == 0 || outputs[layer][from] > 0)
            below[from] += gradient[to] * weights[weight + to * width + from];
        }
      }
      gradient = below;
    }
    for (std::size_t table = 0; table < tables; ++table)
      for (std::size_t c = 0; c < columns; ++c)
        gradients[found[table] + c] += gradient[table * columns + c];
  }
};

// fp32 rounds a loss of about 3 and gradients below one half.
TEST(RecommenderNumbers, AreThoseOfATextbook) {
  for (const Fuse fuse : {Fuse::none, Fuse::pointwise, Fuse::attention}) {
    for (const std::size_t words : {tables + 1, 4 * tables}) {
      SCOPED_TRACE(testing::Message()
                   << "fuse " << static_cast<int>(fuse) << ", " << words << " words");
      const StepPlan plan = plan_of(small_recommender(fuse, words));
      const StepResult result = make_reference_device(1)->load(plan)->run({0, 1, true});
      const Textbook textbook(plan);
      EXPECT_NEAR(result.losses.at(0), textbook.loss, 2e-6);
      const std::vector<float>& gradients = result.tensors.at(1).values;
      ASSERT_EQ(gradients.size(), layers * of_layer + tables * table_rows * columns);
      ASSERT_EQ(gradients.size(), textbook.gradients.size());
      double largest = 0;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        ASSERT_NEAR(gradients[i], textbook.gradients[i], 3e-7) << i;
        if (i >= layers * of_layer) largest = std::max(largest, std::abs(textbook.gradients[i]));
      }
      EXPECT_GT(largest, 1e-3) << "of a table";
    }
  }
}

std::vector<float> losses_of(const Knobs& knobs, std::int64_t steps) {
  return make_reference_device(7)->load(plan_of(knobs))->run({.steps = steps}).losses;
}

TEST(RecommenderNumbers, AreTheSameHoweverTablesAreLookedUpAndUpdated) {
  for (const OptimKind kind :
       {OptimKind::sgd, OptimKind::adamw, OptimKind::lion, OptimKind::momentum}) {
    Knobs knobs = small_recommender(Fuse::attention);
    knobs.optim.kind = kind;
    const std::vector<float> expected = losses_of(knobs, 20);
    for (const OptimImpl impl : {OptimImpl::fused, OptimImpl::per_tensor})
      for (const Fuse fuse : {Fuse::none, Fuse::attention}) {
        knobs.optim.impl = impl;
        knobs.launch.fuse = fuse;
        EXPECT_EQ(losses_of(knobs, 20), expected);
      }
  }
}

// Foreach passes round values that one kernel keeps in registers.
TEST(RecommenderNumbers, AreNearlyTheSameInPasses) {
  Knobs knobs = small_recommender(Fuse::attention);
  knobs.optim = {.kind = OptimKind::adamw, .impl = OptimImpl::fused};
  const std::vector<float> expected = losses_of(knobs, 20);
  knobs.optim.impl = OptimImpl::foreach;
  const std::vector<float> losses = losses_of(knobs, 20);
  knobs.optim.impl = OptimImpl::operations;
  EXPECT_EQ(losses_of(knobs, 20), losses) << "tensor by tensor";
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses[step], expected[step], 1e-5 * expected[step]) << step;
}

TEST(RecommenderNumbers, FallAsItLearnsItsFewBatches) {
  for (const OptimKind kind :
       {OptimKind::sgd, OptimKind::adamw, OptimKind::lion, OptimKind::momentum}) {
    Knobs knobs = small_recommender(Fuse::attention);
    knobs.optim.kind = kind;
    const std::vector<float> losses = losses_of(knobs, 2000);
    const double first = std::accumulate(losses.begin(), losses.begin() + 400, 0.0);
    const double last = std::accumulate(losses.end() - 400, losses.end(), 0.0);
    EXPECT_LT(last, 0.75 * first) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace stepgate
