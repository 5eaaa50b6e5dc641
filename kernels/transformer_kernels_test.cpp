// SPDX-License-Identifier: MIT
// Host references of the kernels that only a transformer has, against formulas written
// independently here. Norms are norm_test.cpp's.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/expect_formulas.h"
#include "kernels/kernel_trial.h"

namespace stepgate {
namespace {

// --- tokens and tables ---------------------------------------------------------------------------

double token_of_words(const Trial& t, std::int64_t sample, std::int64_t position) {
  std::uint32_t folded = 0;
  for (std::int64_t word = 0; word < t.shape.depth; ++word) {
    if (word % (t.shape.columns + 1) != position) continue;
    folded ^= static_cast<std::uint32_t>(value_at(t, 0, sample * t.shape.depth + word));
  }
  return std::fmod(folded, t.scalars[0]);
}

TEST(IngestTokens, FoldsTheWordsOfEachPositionAndLabelsItWithTheNextToken) {
  expect_formulas("ingest_tokens",
                  {{1,
                    [](const Trial& t, std::int64_t i) {
                      return token_of_words(t, i / t.shape.columns, i % t.shape.columns);
                    }},
                   {2, [](const Trial& t, std::int64_t i) {
                      return token_of_words(t, i / t.shape.columns, i % t.shape.columns + 1);
                    }}});
}

TEST(Embedding, AddsTheRowOfTheTokenAndThatOfThePosition) {
  const Formula x = [](const Trial& t, std::int64_t i) {
    const std::int64_t row = i / t.shape.columns, column = i % t.shape.columns;
    const auto token = static_cast<std::int64_t>(value_at(t, 0, row));
    return value_at(t, 1, token * t.shape.columns + column) +
           value_at(t, 2, (row % t.shape.groups) * t.shape.columns + column);
  };
  expect_formulas("embedding", {{3, x}});
}

}  // namespace
}  // namespace stepgate
