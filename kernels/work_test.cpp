// SPDX-License-Identifier: MIT
// Tests the work that follows from a kernel's operands and flops against values worked out by hand,
// and the storage formats on which it depends.
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

template <class Kernel>
HandValue hand(const typename Kernel::Shape& shape, DType dtype,
               const typename Kernel::Attributes& attributes, const KernelWork& work) {
  return {Kernel::name, shape, dtype, attributes, work};
}

TEST(Work, AgreesWithHandValues) {
  using kernels::Adamw, kernels::Foreach;
  const HandValue values[] = {
      hand<kernels::Matmul>({64, 1024, 256}, DType::fp32, {},
                            {64 * 1024 + 1024 * 1024, 256 * 1024, 33554432}),
      hand<kernels::Matmul>({2, 3, 4}, DType::bf16, {false, false, true}, {52, 12, 48}),
      hand<kernels::Matmul>({2, 3, 4, 5}, DType::fp16, {}, {200, 60, 240}),
      hand<kernels::Linear>({2, 3, 4}, DType::bf16, {}, {46, 12, 54}),
      hand<kernels::LinearGelu>({2, 8, 4}, DType::bf16, {}, {16 + 64 + 16, 64, 16 * (8 + 8)}),
      hand<kernels::MatmulGeluGradient>({2, 8, 4}, DType::bf16, {},
                                        {16 + 64 + 32, 32, 16 * (8 + 8)}),
      hand<kernels::MatmulFp8>({2, 3, 4}, DType::bf16, {}, {8 + 12 + 8, 12, 48}),
      hand<kernels::MatmulFp8>({2, 3, 4}, DType::bf16, {true, true}, {8 + 12 + 8 + 12, 12, 48}),
      hand<kernels::LinearFp8>({2, 3, 4}, DType::bf16, {}, {8 + 12 + 8 + 6, 12, 54}),
      hand<kernels::AmaxParts>({6, 2}, DType::bf16, {}, {12, 8, 6}),
      hand<kernels::QuantizeFp8>({2, 3, 5}, DType::bf16, {}, {12 + 20, 6 + 6 + 4, 6}),
      hand<kernels::QuantizeFp8Delayed>({2, 3}, DType::bf16, {}, {12 + 68, 68 + 6 + 6 + 4, 12}),
      hand<kernels::MoveAmaxHistories>({2}, DType::bf16, {}, {136, 136, 0}),
      hand<kernels::RepeatHeads>({6, 8, 4}, DType::bf16, {2}, {6 * 16 * 2, 6 * 24 * 2, 0}),
      hand<kernels::RepeatHeadsGradient>({6, 8, 4}, DType::bf16, {1},
                                         {6 * 24 * 2, 6 * 12 * 2, 6 * 2 * 2 * 3}),
      hand<kernels::SplitHeads>({6, 8, 3, 2}, DType::bf16, {3}, {288, 288, 0}),
      hand<kernels::MergeHeads>({6, 8, 3, 2}, DType::fp32, {1}, {192, 192, 0}),
      hand<kernels::CausalSoftmax>({6, 3}, DType::bf16, {1}, {36, 36, 60}),
      hand<kernels::CausalSoftmaxGradient>({6, 3}, DType::bf16, {1}, {72, 36, 60}),
      hand<kernels::Attention>({6, 8, 3, 2}, DType::bf16, {}, {288, 144, 384}),
      hand<kernels::AttentionGradient>({6, 8, 3, 2}, DType::bf16, {}, {528, 288, 960}),
      hand<kernels::Attention>({6, 8, 3, 2}, DType::bf16, {false}, {288, 144, 576}),
      hand<kernels::AttentionGradient>({6, 8, 3, 2}, DType::bf16, {.causal = false},
                                       {528, 288, 1440}),
      hand<kernels::Attention>({6, 8, 3, 4, 1}, DType::bf16, {}, {6 * 12 * 2, 192, 384}),
      hand<kernels::AttentionGradient>({6, 8, 3, 4, 1}, DType::bf16, {},
                                       {6 * 12 * 2 + 2 * 96 + 96, 6 * 12 * 2, 960}),
      hand<kernels::Ingest>({2, 4, 9}, DType::bf16, {}, {72, 24, 24}),
      hand<kernels::EmbeddingGradient>({4, 3, 10}, DType::bf16, {}, {16 + 24 + 24, 24, 12}),
      hand<kernels::EmbeddingGradient>({4, 3, 2}, DType::fp32, {}, {16 + 48 + 24, 24, 12}),
      hand<kernels::IngestTokens>({2, 3, 9}, DType::bf16, {100}, {72, 48, 26}),
      hand<kernels::IngestIndices>({2, 3, 9}, DType::bf16, {100, 10}, {72, 32, 26}),
      hand<kernels::DecodeImages>({2, 4, 9}, DType::bf16, {}, {18, 24, 2 * (2 * 9 + 8 + 4)}),
      hand<kernels::Decode>({2, 3}, DType::bf16, {}, {6, 24, 12}),
      hand<kernels::Widen>({6}, DType::bf16, {}, {12, 24, 0}),
      hand<kernels::Narrow>({6}, DType::bf16, {}, {24, 12, 0}),
      hand<kernels::AddNoise>({2, 6}, DType::bf16, {}, {24 + 8 + 8, 48, 108}),
      hand<kernels::TimeEmbedding>({2, 6}, DType::bf16, {}, {8, 24, 36}),
      hand<kernels::SquaredError>({2, 3}, DType::bf16, {}, {24, 20, 24}),
      hand<kernels::Softmax>({2, 3}, DType::bf16, {1}, {12, 12, 30}),
      hand<kernels::SoftmaxGradient>({2, 3}, DType::bf16, {1}, {24, 12, 30}),
      hand<kernels::Embedding>({4, 3, 10, 2}, DType::bf16, {}, {16 + 24 + 12, 24, 12}),
      hand<kernels::Embedding>({4, 3, 2, 8}, DType::fp32, {}, {16 + 24 + 48, 48, 12}),
      hand<kernels::TokenEmbedding>({4, 3, 10}, DType::bf16, {}, {16 + 24, 24, 0}),
      hand<kernels::Add>({2, 3}, DType::bf16, {}, {24, 12, 6}),
      hand<kernels::Swiglu>({2, 3}, DType::bf16, {}, {24, 12, 24}),
      hand<kernels::SwigluGradient>({2, 3}, DType::bf16, {}, {24 + 12, 24, 66}),
      hand<kernels::Rope>({4, 12, 2, 2}, DType::bf16, {4}, {64, 64, 96}),
      hand<kernels::Gelu>({2, 3}, DType::fp32, {}, {24, 24, 42}),
      hand<kernels::GeluGradient>({2, 3}, DType::bf16, {}, {24, 12, 90}),
      hand<kernels::BiasGelu>({2, 3}, DType::bf16, {}, {18, 24, 48}),
      hand<kernels::LayerNorm>({2, 3}, DType::bf16, {1e-5}, {24, 28, 48}),
      hand<kernels::ResidualBiasLayerNorm>({2, 3}, DType::bf16, {1e-5}, {42, 40, 60}),
      hand<kernels::ResidualLayerNorm>({2, 3}, DType::bf16, {1e-5}, {36, 40, 54}),
      hand<kernels::LayerNormGradient>({4, 3, 2}, DType::bf16, {false},
                                       {48 + 6 + 32, 24 + 48, 156}),
      hand<kernels::LayerNormGradient>({4, 3, 2}, DType::fp32, {true},
                                       {144 + 12 + 32, 48 + 48, 168}),
      hand<kernels::LayerNormGradient>({4, 3, 2}, DType::fp32, {true, true},
                                       {144 + 12 + 32, 48 + 72, 180}),
      hand<kernels::RmsNorm>({2, 3}, DType::bf16, {1e-5}, {18, 20, 24}),
      hand<kernels::ResidualBiasRmsNorm>({2, 3}, DType::fp32, {1e-5}, {72, 56, 36}),
      hand<kernels::ResidualRmsNorm>({2, 3}, DType::fp32, {1e-5}, {60, 56, 30}),
      hand<kernels::RmsNormGradient>({4, 3, 2}, DType::bf16, {true}, {72 + 6 + 16, 24 + 24, 120}),
      hand<kernels::RmsNormGradient>({4, 3, 2}, DType::bf16, {false, true},
                                     {48 + 6 + 16, 24 + 48, 120}),
      hand<kernels::BatchNormSums>({6, 9, 2}, DType::bf16, {}, {108, 144, 216}),
      hand<kernels::BatchNormFinish>({6, 9, 2}, DType::bf16, {}, {270, 216, 189}),
      hand<kernels::BatchNormApply>({6, 9}, DType::bf16, {}, {252, 108, 162}),
      hand<kernels::BatchNormApply>({6, 9}, DType::bf16, {true}, {252, 108, 216}),
      hand<kernels::BatchNormAddApply>({6, 9}, DType::bf16, {}, {360, 120, 270}),
      hand<kernels::BatchNormTwoApply>({6, 9}, DType::bf16, {}, {504, 120, 432}),
      hand<kernels::BatchNormGradientSums>({6, 9, 2}, DType::bf16, {}, {360, 144, 270}),
      hand<kernels::BatchNormGradientSums>({6, 9, 2}, DType::bf16, {true}, {360, 144, 432}),
      hand<kernels::BatchNormAddGradientSums>({6, 9, 2}, DType::bf16, {}, {372, 252, 270}),
      hand<kernels::BatchNormGradientFinish>({6, 9, 2}, DType::bf16, {}, {144, 108, 54}),
      hand<kernels::BatchNormGradientFinish>({6, 9, 2}, DType::bf16, {true}, {180, 108, 54}),
      hand<kernels::BatchNormGradientApply>({6, 9}, DType::bf16, {}, {432, 108, 324}),
      hand<kernels::BatchNormGradientApply>({6, 9}, DType::bf16, {true}, {432, 108, 486}),
      hand<kernels::GroupNormSums>({2, 3, 4, 2, 3, 2}, DType::bf16, {}, {72, 48 + 192, 144}),
      hand<kernels::GroupNormFinish>({2, 3, 4, 2, 3, 2}, DType::bf16, {}, {240, 48, 180}),
      hand<kernels::GroupNormApply>({2, 3, 4, 2, 3}, DType::bf16, {}, {144, 72, 144}),
      hand<kernels::GroupNormApply>({2, 3, 4, 2, 3}, DType::bf16, {true}, {144, 72, 288}),
      hand<kernels::GroupNormGradientSums>({2, 3, 4, 2, 3, 2}, DType::bf16, {true},
                                           {216, 192, 540}),
      hand<kernels::GroupNormGradientFinish>({2, 3, 4, 2, 3, 2}, DType::bf16, {true},
                                             {192 + 12 + 24, 24 + 48, 120}),
      hand<kernels::GroupNormGradientApply>({2, 3, 4, 2, 3}, DType::bf16, {true, false},
                                            {264, 72, 612}),
      hand<kernels::GroupNormGradientApply>({2, 3, 4, 2, 3}, DType::bf16, {false, true},
                                            {336, 72, 288}),
      hand<kernels::ChangeLayout>({2, 3, 5}, DType::bf16, {}, {60, 60, 0}),
      hand<kernels::ChangeLayout>({2, 3, 5}, DType::fp32, {}, {120, 120, 0}),
      hand<kernels::Upsample>({2, 3, 4, 5}, DType::bf16, {}, {240, 960, 0}),
      hand<kernels::UpsampleGradient>({2, 3, 4, 5}, DType::bf16, {}, {960, 240, 360}),
      hand<kernels::SumPixels>({2, 3, 5}, DType::bf16, {}, {60, 20, 30}),
      hand<kernels::TimeBias>({2, 3, 5}, DType::bf16, {}, {60 + 10 + 20, 60, 60}),
      hand<kernels::ResidualBias>({2, 3, 5}, DType::bf16, {}, {60 + 10 + 60, 60, 60}),
      hand<kernels::Silu>({2, 3}, DType::bf16, {}, {12, 12, 24}),
      hand<kernels::SiluGradient>({2, 3}, DType::bf16, {}, {24, 12, 48}),
      hand<kernels::NormPool>({2, 4, 5, 3}, DType::bf16, {3, 2, 1}, {288, 180, 804}),
      hand<kernels::MaxPool>({2, 4, 5, 3}, DType::bf16, {3, 2, 1}, {240, 108, 324}),
      hand<kernels::MaxPoolGradient>({2, 4, 5, 3}, DType::bf16, {3, 2, 1}, {108, 240, 36}),
      hand<kernels::NormPoolGradient>({2, 4, 5, 3}, DType::bf16, {3, 2, 1}, {420, 240, 1116}),
      hand<kernels::MeanPool>({2, 3, 5}, DType::bf16, {}, {60, 20, 40}),
      hand<kernels::MeanPoolGradient>({2, 3, 5}, DType::bf16, {}, {20, 60, 30}),
      hand<kernels::SumParts>({3, 5}, DType::bf16, {true}, {66, 6, 15}),
      hand<kernels::BiasActivation>({2, 3}, DType::fp32, {true}, {36, 24, 12}),
      hand<kernels::BiasActivation>({2, 3}, DType::fp32, {false}, {36, 24, 6}),
      hand<kernels::Relu>({2, 3}, DType::bf16, {}, {12, 12, 6}),
      hand<kernels::ReluGradient>({2, 3}, DType::bf16, {}, {24, 12, 6}),
      hand<kernels::BiasGradient>({2, 3}, DType::fp32, {true}, {36, 12, 6}),
      hand<kernels::ColumnParts>({4, 3, 2}, DType::bf16, {}, {24, 24, 12}),
      hand<kernels::CrossEntropy>({2, 3}, DType::bf16, {}, {20, 20, 30}),
      hand<kernels::ScaledCrossEntropy>({2, 3}, DType::bf16, {}, {24, 20, 30}),
      hand<kernels::ReportLoss>({8}, DType::fp32, {16}, {40, 40, 8}),
      hand<kernels::AccumulateLoss>({}, DType::fp32, {}, {8, 4, 1}),
      hand<kernels::MeanLoss>({}, DType::fp32, {4}, {4, 8, 1}),
      hand<kernels::Sgd>({2, 3}, DType::tf32, {0.1}, {48, 24, 12}),
      hand<kernels::MovingAverage>({2, 3}, DType::bf16, {0.9}, {36, 24, 18}),
      hand<kernels::Adamw>({2, 3}, DType::bf16, {}, {80, 60, 96}),
      hand<kernels::SquareSums>({10, 2}, DType::bf16, {}, {20, 8, 20}),
      hand<kernels::Clip>({3}, DType::fp32, {}, {44, 32, 3}),
      hand<UpdateKernel<Adamw, UpdateKind::master>>({2, 3}, DType::bf16, {}, {116, 84, 102}),
      hand<UpdateKernel<Adamw, UpdateKind::clipped>>({2, 3}, DType::bf16, {}, {104, 60, 102}),
      hand<Foreach<ForeachPass::unscale>>({2, 3}, DType::fp16, {}, {44, 12, 6}),
      hand<Foreach<ForeachPass::decay>>({2, 3}, DType::fp32, {}, {56, 24, 6}),
      hand<Foreach<ForeachPass::lerp>>({2, 3}, DType::bf16, {}, {68, 24, 18}),
      hand<Foreach<ForeachPass::mul>>({2, 3}, DType::bf16, {}, {56, 24, 6}),
      hand<Foreach<ForeachPass::addcmul>>({2, 3}, DType::bf16, {}, {68, 24, 18}),
      hand<Foreach<ForeachPass::sqrt>>({2, 3}, DType::bf16, {}, {24, 24, 6}),
      hand<Foreach<ForeachPass::div>>({2, 3}, DType::bf16, {}, {56, 24, 6}),
      hand<Foreach<ForeachPass::add>>({2, 3}, DType::bf16, {}, {24, 24, 6}),
      hand<Foreach<ForeachPass::addcdiv>>({2, 3}, DType::bf16, {}, {92, 12, 18}),
      hand<kernels::StridedScale>({4, 8, 16}, DType::fp32, {2, 6, 6}, {128, 128, 32}),
      hand<kernels::StridedScale>({4, 8, 1}, DType::bf16, {2, 1, 6}, {64, 64, 32}),
      hand<kernels::Chase>({128}, DType::fp32, {20}, {84, 8, 0}),
      hand<kernels::Chase>({128}, DType::bf16, {200}, {516, 8, 0}),
      hand<kernels::Spin>({}, DType::fp32, {10}, {4, 4, 0}),
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
  // The double is so close to a tie that rounding to float first would make it one.
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
  // Tests every two fp16 neighbours of one sign, including infinity. Their middle rounds to the
  // even one, and a number beside the middle to the nearer one.
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
