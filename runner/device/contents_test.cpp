// SPDX-License-Identifier: MIT
#include "device/contents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include <cmath>

#include "base/random.h"
#include "kernels/number_format.h"
#include "kernels/probes/probes.h"

namespace stepgate {
namespace {

std::vector<float> contents(const Buffer& buffer, std::int64_t slot, std::uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.bytes), std::byte{0xff});
  fill_contents(buffer, slot, seed, bytes);
  return floats_of(bytes.data(), buffer.dtype, buffer.bytes / bytes_of(buffer.dtype));
}

Buffer buffer_of(Content content, std::int64_t bytes, DType dtype = DType::fp32) {
  return {
      .name = "layer 0 weights", .bytes = bytes, .content = content, .dtype = dtype, .scale = 0.25};
}

TEST(Contents, AreZeroWhereZerosAreAskedFor) {
  for (const float value : contents(buffer_of(Content::zeros, 1001 * 4), 0, 1)) {
    ASSERT_EQ(value, 0);
  }
}

TEST(Contents, OfWeightsAreUniformWithinTheScale) {
  const auto values = contents(buffer_of(Content::weights, 400'000), 0, 7);
  double sum = 0, squares = 0;
  for (const float value : values) {
    ASSERT_GE(value, -0.25f);
    ASSERT_LT(value, 0.25f);
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0, 0.002);
  EXPECT_NEAR(squares / count, 0.25 * 0.25 / 3, 0.0003);
}

TEST(Contents, OfWeightsInBf16AreThoseInFp32Rounded) {
  const auto wide = contents(buffer_of(Content::weights, 1000 * 4), 0, 3);
  const auto narrow = contents(buffer_of(Content::weights, 1000 * 2, DType::bf16), 0, 3);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    ASSERT_EQ(narrow[i], float_from_bf16(bf16_from_float(wide[i])));
  }
}

TEST(Contents, DependOnSeedAndNameForWeightsButNotOnTheSlot) {
  Buffer buffer = buffer_of(Content::weights, 4096);
  const auto values = contents(buffer, 0, 1);
  EXPECT_EQ(values, contents(buffer, 5, 1));
  EXPECT_NE(values, contents(buffer, 0, 2));
  buffer.name = "layer 1 weights";
  EXPECT_NE(values, contents(buffer, 0, 1));
}

TEST(Contents, DependOnSeedAndSlotForPayloadsButNotOnTheName) {
  Buffer buffer = buffer_of(Content::payload, 4096);
  const auto values = contents(buffer, 0, 1);
  EXPECT_NE(values, contents(buffer, 1, 1));
  EXPECT_NE(values, contents(buffer, 0, 2));
  buffer.name = "another batch";
  EXPECT_EQ(values, contents(buffer, 0, 1));
}

TEST(Contents, OfAChainLeadThroughAllLinesAndBack) {
  constexpr std::int64_t bytes = 64 << 20;
  Buffer buffer{.name = "chain", .bytes = bytes, .content = Content::chain};
  std::vector<std::byte> filled(bytes, std::byte{0xa5});
  fill_contents(buffer, 0, 3, filled);
  std::vector<std::uint32_t> words(bytes / 4);
  std::memcpy(words.data(), filled.data(), bytes);
  std::uint32_t line = 0;
  std::int64_t steps = 0;
  do {
    line = words[line * chase_line_words];
    ++steps;
  } while (line != 0 && steps <= bytes / chase_line_bytes);
  EXPECT_EQ(steps, bytes / chase_line_bytes);
  for (std::size_t word = 0; word < words.size(); ++word) {
    if (word % chase_line_words == 0) continue;
    ASSERT_EQ(words[word], 0u) << word;
  }
  std::vector<std::byte> other(bytes);
  fill_contents(buffer, 0, 4, other);
  EXPECT_NE(filled, other) << "of another seed";
}

TEST(Contents, DoNotDependOnHowManyThreadsFilledThem) {
  // Large enough for several chunks; every element is its own function of the index.
  const auto large = contents(buffer_of(Content::payload, 16 << 20), 2, 9);
  const auto small = contents(buffer_of(Content::payload, 64 << 10), 2, 9);
  for (std::size_t i = 0; i < small.size(); ++i) ASSERT_EQ(large[i], small[i]);
  for (const float value : large) ASSERT_TRUE(value >= -1 && value < 1);
  EXPECT_NE(large.back(), 0);
}

TEST(Contents, OfPartsAreDrawnByTheirPlaceInTheWholeBuffer) {
  Buffer buffer = buffer_of(Content::weights, 6 * 4);
  buffer.parts = {{2, 0, 0.5}, {0, 9, 9}, {1, 1, 0}, {2, -3, 0.25}};
  const DrawnContent drawn = drawn_content(buffer, 0, 4);
  const auto uniform = [&](std::uint64_t place) { return uniform_signed(drawn.seed, place); };
  const auto values = contents(buffer, 0, 4);
  const std::vector<double> expected = {0.5 * uniform(0),       0.5 * uniform(1),       1,
                                        -3 + 0.25 * uniform(3), -3 + 0.25 * uniform(4), 0};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(values[i], static_cast<float>(expected[i])) << i;
  }
}

TEST(ContentsCache, GivesWhatFillContentsWrites) {
  ContentsCache cache;
  for (const Content content : {Content::weights, Content::payload, Content::zeros}) {
    for (const std::int64_t slot : {0, 1}) {
      for (const std::uint64_t seed : {3, 4}) {
        for (const double scale : {0.5, 2.0}) {
          const Buffer buffer{
              .name = "weights", .bytes = 4096, .slots = 2, .content = content, .scale = scale};
          std::vector<std::byte> expected(4096);
          fill_contents(buffer, slot, seed, expected);
          for (int time = 0; time < 2; ++time) {
            const auto cached = cache.of(buffer, slot, seed);
            EXPECT_TRUE(std::equal(cached.begin(), cached.end(), expected.begin(), expected.end()));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepgate
