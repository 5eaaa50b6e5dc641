// SPDX-License-Identifier: MIT
// The work that follows from a kernel's operands and its flops, against values worked out by hand.
// Also the storage formats that it rests on.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/catalogue.h"
#include "kernels/kernels.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

struct HandValue {
  std::string_view kernel;
  KernelShape shape;
  DType dtype;
  KernelAttributes attributes;
  KernelWork work;
};

TEST(Work, AgreesWithHandValues) {
  const HandValue values[] = {
      {"matmul", {64, 1024, 256}, DType::fp32, {}, {64 * 1024 + 1024 * 1024, 256 * 1024, 33554432}},
      {"matmul",
       {2, 3, 4},
       DType::bf16,
       kernels::Matmul::Attributes{false, false, true},
       {52, 12, 48}},
      {"matmul", {2, 3, 4, 5}, DType::fp16, {}, {200, 60, 240}},
      {"linear", {2, 3, 4}, DType::bf16, {}, {46, 12, 54}},
      {"repeat_heads",
       {6, 8, 1, 4},
       DType::bf16,
       kernels::RepeatHeads::Attributes{2},
       {6 * 16 * 2, 6 * 24 * 2, 0}},
      {"repeat_heads_gradient",
       {6, 8, 1, 4},
       DType::bf16,
       kernels::RepeatHeads::Attributes{1},
       {6 * 24 * 2, 6 * 12 * 2, 6 * 2 * 2 * 3}},
      {"split_heads", {6, 8, 3, 2}, DType::bf16, kernels::SplitHeads::Attributes{3}, {288, 288, 0}},
      {"merge_heads", {6, 8, 3, 2}, DType::fp32, kernels::MergeHeads::Attributes{1}, {192, 192, 0}},
      {"causal_softmax",
       {6, 3, 1, 2},
       DType::bf16,
       kernels::CausalSoftmax::Attributes{1},
       {36, 36, 60}},
      {"causal_softmax_gradient",
       {6, 3, 1, 2},
       DType::bf16,
       kernels::CausalSoftmaxGradient::Attributes{1},
       {72, 36, 60}},
      {"attention", {6, 8, 3, 2}, DType::bf16, {}, {288, 144, 384}},
      {"attention_gradient", {6, 8, 3, 2}, DType::bf16, {}, {528, 288, 960}},
      {"ingest", {2, 4, 9}, DType::bf16, {}, {72, 24, 24}},
      {"embedding_gradient", {4, 3, 10}, DType::bf16, {}, {16 + 24 + 24, 24, 12}},
      {"embedding_gradient", {4, 3, 2}, DType::fp32, {}, {16 + 48 + 24, 24, 12}},
      {"ingest_tokens",
       {2, 3, 9},
       DType::bf16,
       kernels::IngestTokens::Attributes{100},
       {72, 48, 26}},
      {"ingest_indices",
       {2, 3, 9},
       DType::bf16,
       kernels::IngestIndices::Attributes{100, 10},
       {72, 32, 26}},
      {"decode", {2, 3}, DType::bf16, {}, {6, 24, 12}},
      {"widen", {.columns = 6}, DType::bf16, {}, {12, 24, 0}},
      {"narrow", {.columns = 6}, DType::bf16, {}, {24, 12, 0}},
      {"embedding", {4, 3, 10, 2}, DType::bf16, {}, {16 + 24 + 12, 24, 12}},
      {"embedding", {4, 3, 2, 8}, DType::fp32, {}, {16 + 24 + 48, 48, 12}},
      {"token_embedding", {4, 3, 10, 2}, DType::bf16, {}, {16 + 24, 24, 0}},
      {"add", {2, 3}, DType::bf16, {}, {24, 12, 6}},
      {"swiglu", {2, 3}, DType::bf16, {}, {24, 12, 24}},
      {"swiglu_gradient", {2, 3}, DType::bf16, {}, {24 + 12, 24, 66}},
      {"rope", {4, 12, 2, 2}, DType::bf16, kernels::Rope::Attributes{4}, {64, 64, 96}},
      {"gelu", {2, 3}, DType::fp32, {}, {24, 24, 42}},
      {"gelu_gradient", {2, 3}, DType::bf16, {}, {24, 12, 90}},
      {"bias_gelu", {2, 3}, DType::bf16, {}, {18, 24, 48}},
      {"layer_norm", {2, 3}, DType::bf16, kernels::LayerNorm::Attributes{1e-5}, {24, 28, 48}},
      {"residual_bias_layer_norm",
       {2, 3},
       DType::bf16,
       kernels::ResidualBiasLayerNorm::Attributes{1e-5},
       {42, 40, 60}},
      {"residual_layer_norm",
       {2, 3},
       DType::bf16,
       kernels::ResidualLayerNorm::Attributes{1e-5},
       {36, 40, 54}},
      {"layer_norm_gradient",
       {4, 3, 2},
       DType::bf16,
       kernels::LayerNormGradient::Attributes{false},
       {48 + 6 + 32, 24 + 48, 156}},
      {"layer_norm_gradient",
       {4, 3, 2},
       DType::fp32,
       kernels::LayerNormGradient::Attributes{true},
       {144 + 12 + 32, 48 + 48, 168}},
      {"layer_norm_gradient",
       {4, 3, 2},
       DType::fp32,
       kernels::LayerNormGradient::Attributes{true, true},
       {144 + 12 + 32, 48 + 72, 180}},
      {"rms_norm", {2, 3}, DType::bf16, kernels::RmsNorm::Attributes{1e-5}, {18, 20, 24}},
      {"residual_bias_rms_norm",
       {2, 3},
       DType::fp32,
       kernels::ResidualBiasRmsNorm::Attributes{1e-5},
       {72, 56, 36}},
      {"residual_rms_norm",
       {2, 3},
       DType::fp32,
       kernels::ResidualRmsNorm::Attributes{1e-5},
       {60, 56, 30}},
      {"rms_norm_gradient",
       {4, 3, 2},
       DType::bf16,
       kernels::RmsNormGradient::Attributes{true},
       {72 + 6 + 16, 24 + 24, 120}},
      {"rms_norm_gradient",
       {4, 3, 2},
       DType::bf16,
       kernels::RmsNormGradient::Attributes{false, true},
       {48 + 6 + 16, 24 + 48, 120}},
      {"sum_parts", {1, 3, 5}, DType::bf16, kernels::SumParts::Attributes{true}, {66, 6, 15}},
      {"bias_activation",
       {2, 3},
       DType::fp32,
       kernels::BiasActivation::Attributes{true},
       {36, 24, 12}},
      {"bias_activation",
       {2, 3},
       DType::fp32,
       kernels::BiasActivation::Attributes{false},
       {36, 24, 6}},
      {"relu_gradient", {2, 3}, DType::bf16, {}, {24, 12, 6}},
      {"bias_gradient", {2, 3}, DType::fp32, kernels::BiasGradient::Attributes{true}, {36, 12, 6}},
      {"column_parts", {4, 3, 2}, DType::bf16, {}, {24, 24, 12}},
      {"cross_entropy", {2, 3}, DType::bf16, {}, {20, 20, 30}},
      {"scaled_cross_entropy", {2, 3}, DType::bf16, {}, {24, 20, 30}},
      {"report_loss", {8}, DType::fp32, kernels::ReportLoss::Attributes{16}, {40, 40, 8}},
      {"accumulate_loss", {}, DType::fp32, {}, {8, 4, 1}},
      {"mean_loss", {}, DType::fp32, kernels::MeanLoss::Attributes{4}, {4, 8, 1}},
      {"sgd", {2, 3}, DType::tf32, kernels::Sgd::Attributes{0.1}, {48, 24, 12}},
      {"adamw", {2, 3}, DType::bf16, {}, {80, 60, 96}},
      {"square_sums", {1, 10, 2}, DType::bf16, {}, {20, 8, 20}},
      {"clip", {1, 1, 3}, DType::fp32, {}, {44, 32, 3}},
      {"adamw_master", {2, 3}, DType::bf16, {}, {116, 84, 102}},
      {"adamw_clipped", {2, 3}, DType::bf16, {}, {104, 60, 102}},
      {"foreach_unscale", {2, 3}, DType::fp16, {}, {44, 12, 6}},
      {"foreach_decay", {2, 3}, DType::fp32, {}, {56, 24, 6}},
      {"foreach_lerp", {2, 3}, DType::bf16, {}, {68, 24, 18}},
      {"foreach_mul", {2, 3}, DType::bf16, {}, {56, 24, 6}},
      {"foreach_addcmul", {2, 3}, DType::bf16, {}, {68, 24, 18}},
      {"foreach_sqrt", {2, 3}, DType::bf16, {}, {24, 24, 6}},
      {"foreach_div", {2, 3}, DType::bf16, {}, {56, 24, 6}},
      {"foreach_add", {2, 3}, DType::bf16, {}, {24, 24, 6}},
      {"foreach_addcdiv", {2, 3}, DType::bf16, {}, {92, 12, 18}},
      {"strided_scale",
       {4, 8, 16},
       DType::fp32,
       kernels::StridedScale::Attributes{2, 6, 6},
       {128, 128, 32}},
      {"strided_scale",
       {4, 8, 1},
       DType::bf16,
       kernels::StridedScale::Attributes{2, 1, 6},
       {64, 64, 32}},
      {"chase", {1, 128}, DType::fp32, kernels::Chase::Attributes{20}, {84, 8, 0}},
      {"chase", {1, 128}, DType::bf16, kernels::Chase::Attributes{200}, {516, 8, 0}},
      {"spin", {}, DType::fp32, kernels::Spin::Attributes{10}, {4, 4, 0}},
  };
  for (const HandValue& value : values) {
    const KernelWork work =
        work_of(kernel(value.kernel), value.shape, value.dtype, value.attributes);
    EXPECT_EQ(work.bytes_read, value.work.bytes_read) << value.kernel;
    EXPECT_EQ(work.bytes_written, value.work.bytes_written) << value.kernel;
    EXPECT_EQ(work.flops, value.work.flops) << value.kernel;
  }
}

TEST(NumberFormat, RoundsToTheNearestBf16WithTiesToEven) {
  EXPECT_EQ(bf16_from_float(1.0f), 0x3f80);
  EXPECT_EQ(bf16_from_float(1.0f + 0x1p-8f), 0x3f80);      // tie, even below
  EXPECT_EQ(bf16_from_float(1.0f + 3 * 0x1p-8f), 0x3f82);  // tie, even above
  EXPECT_EQ(bf16_from_float(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
  EXPECT_EQ(bf16_from_float(-std::numeric_limits<float>::infinity()), 0xff80);
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::nanf("")))));
}

TEST(NumberFormat, RoundsADoubleToBf16Once) {
  // Just beside a tie, by less than float can say: float alone would see the tie.
  EXPECT_EQ(bf16_from_double(1 + 0x1p-8 + 0x1p-40), 0x3f81);
  EXPECT_EQ(bf16_from_double(1 + 0x1p-8 - 0x1p-40), 0x3f80);
  EXPECT_EQ(bf16_from_double(1 + 3 * 0x1p-8 - 0x1p-40), 0x3f81);
  EXPECT_EQ(bf16_from_double(-1 - 0x1p-8 - 0x1p-40), 0xbf81);
  EXPECT_EQ(bf16_from_double(1 + 0x1p-8), 0x3f80);
}

TEST(NumberFormat, KeepsEveryBf16ThroughFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = float_from_bf16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(bf16_from_float(value), bits);
    ASSERT_EQ(bf16_from_double(value), bits);
  }
}

TEST(NumberFormat, KeepsEveryFp16ThroughFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = float_from_fp16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(fp16_from_double(value), bits);
  }
}

TEST(NumberFormat, RoundsToTheNearestFp16WithTiesToEven) {
  // Between every two neighbours of one sign, infinity among them: the middle goes to the even
  // one, what lies beside it to the nearer one.
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double below = float_from_fp16(static_cast<std::uint16_t>(bits));
    const double above =
        bits == 0x7bff ? 65536 : float_from_fp16(static_cast<std::uint16_t>(bits + 1));
    const double middle = (below + above) / 2;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(fp16_from_double(middle), even);
    ASSERT_EQ(fp16_from_double(std::nextafter(middle, 0)), bits);
    ASSERT_EQ(fp16_from_double(std::nextafter(middle, 1e6)), bits + 1);
    ASSERT_EQ(fp16_from_double(-middle), even | 0x8000u);
  }
  EXPECT_EQ(fp16_from_double(-std::numeric_limits<double>::infinity()), 0xfc00);
  EXPECT_EQ(fp16_from_double(1e300), 0x7c00);
  EXPECT_EQ(fp16_from_double(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_TRUE(std::isnan(float_from_fp16(fp16_from_double(std::nan("")))));
}

// Functions that device code calls must not need the host's library.
static_assert(fp16_from_double(-1.5) == 0xbe00 && bf16_from_double(-1.5) == 0xbfc0);

}  // namespace
}  // namespace stepgate
