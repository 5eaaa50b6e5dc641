// SPDX-License-Identifier: MIT
// Tests the reasons why a launch of attention does not use cuDNN. open_cudnn_test.cpp and, with a
// GPU, cudnn_attention_test.cpp test launches that do.
#include "kernels/attention/cudnn/choose_cudnn.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

constexpr std::int64_t plenty = std::int64_t{1} << 40;
// Two samples of 256 tokens, 4 heads of 64 columns.
constexpr AttentionShape suitable{.rows = 512, .columns = 256, .tokens = 256, .heads = 4};

std::vector<KernelChoice> choices_of(const AttentionShape& shape, DType dtype,
                                     std::int64_t most_scratch = plenty,
                                     SumOrder order = SumOrder::fixed) {
  std::vector<KernelChoice> choices;
  const LaunchContext context{.cudnn_unavailable_reason = "nobody has one", .choices = &choices};
  EXPECT_FALSE(attention_by_cudnn(shape, dtype, context));
  EXPECT_FALSE(attention_gradient_by_cudnn(shape, dtype, most_scratch, order, context));
  return choices;
}

// The choice of the project's own kernels in both directions.
std::vector<KernelChoice> ours(const std::string& reason, const std::string& of_gradient) {
  return {{.kernel = "attention", .library = {}, .reason = reason},
          {.kernel = "attention_gradient", .library = {}, .reason = of_gradient}};
}

TEST(ChooseCudnn, SaysWhyThereIsNone) {
  const auto expected = ours("nobody has one", "nobody has one");
  EXPECT_EQ(choices_of(suitable, DType::bf16), expected);
  EXPECT_EQ(choices_of(suitable, DType::fp16), expected);
}

TEST(ChooseCudnn, SaysWhatOfTheShapeDoesNotSuit) {
  constexpr AttentionShape part{.rows = 400, .columns = 256, .tokens = 200, .heads = 4};
  const std::string tokens =
      "cuDNN is asked for samples of whole tiles of 128 tokens only, and these have 200";
  EXPECT_EQ(choices_of(part, DType::bf16), ours(tokens, tokens));
  constexpr AttentionShape wide{.rows = 512, .columns = 512, .tokens = 256, .heads = 2};
  const std::string columns =
      "cuDNN is asked for heads of at most 128 columns only, and these have 256";
  EXPECT_EQ(choices_of(wide, DType::bf16), ours(columns, columns));
}

TEST(ChooseCudnn, SaysWhatWorkspaceTheGradientLacks) {
  EXPECT_EQ(choices_of(suitable, DType::bf16, 0),
            ours("nobody has one", "model.attention_workspace is 0 B"));
  // The scratch has 256 x 256 scores of 2 B, 256 row sums of 4 B, and 256 B.
  constexpr std::int64_t one_head = 256 * 256 * 2 + 256 * 4 + 256;
  EXPECT_EQ(choices_of(suitable, DType::bf16, one_head - 1),
            ours("nobody has one",
                 "model.attention_workspace is 132351 B, and cuDNN's gradient of one sample's head "
                 "takes 132352 B"));
  EXPECT_EQ(choices_of(suitable, DType::bf16, one_head), ours("nobody has one", "nobody has one"));
}

TEST(ChooseCudnn, AsksForNoScoresWhereSumsHaveAnyOrder) {
  // The scratch has a sum of 4 B for each of 64 columns of 256 rows, row sums, and 256 B.
  constexpr std::int64_t one_head = 256 * 64 * 4 + 256 * 4 + 256;
  EXPECT_EQ(choices_of(suitable, DType::bf16, one_head - 1, SumOrder::any)[1].reason,
            "model.attention_workspace is 66815 B, and cuDNN's gradient of one sample's head takes "
            "66816 B");
  EXPECT_EQ(choices_of(suitable, DType::bf16, one_head, SumOrder::any),
            ours("nobody has one", "nobody has one"));
}

TEST(ChooseCudnn, AsksForTheGradientsOfSharedHeadsBeforeTheyAreAddedUp) {
  AttentionShape shared = suitable;
  shared.kv_heads = 2;
  // Two heads share one of keys. Keys and values each have 4 B for each of 2 x 64 columns of 256
  // rows, beside what the scratch has without sharing.
  constexpr std::int64_t two_heads = 2 * 256 * 256 * 2 + 2 * 256 * 4 + 2 * 256 * 128 * 4 + 256;
  EXPECT_EQ(choices_of(shared, DType::bf16, two_heads - 1)[1].reason,
            "model.attention_workspace is 526591 B, and cuDNN's gradient of one sample's 2 heads "
            "of equal keys takes 526592 B");
  EXPECT_EQ(choices_of(shared, DType::bf16, two_heads), ours("nobody has one", "nobody has one"));
}

TEST(ChooseCudnn, HasNothingToChooseForNumbersOf32Bits) {
  EXPECT_TRUE(choices_of(suitable, DType::fp32).empty());
  EXPECT_TRUE(choices_of(suitable, DType::tf32).empty());
}

TEST(ChooseCudnn, SaysTheSameThingOnceAndNothingWhereNobodyAsks) {
  std::vector<KernelChoice> choices;
  const LaunchContext context{.cudnn_unavailable_reason = "nobody has one", .choices = &choices};
  for (int layer = 0; layer < 3; ++layer) {
    EXPECT_FALSE(attention_by_cudnn(suitable, DType::bf16, context));
  }
  EXPECT_EQ(choices.size(), 1U);
  EXPECT_FALSE(attention_by_cudnn(suitable, DType::bf16, {}));
}

}  // namespace
}  // namespace stepgate
