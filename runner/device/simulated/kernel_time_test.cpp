// SPDX-License-Identifier: MIT
// Tests the simulated times of kernels against arithmetic done by hand and against times measured
// on an H200.
#include "device/simulated/kernel_time.h"

#include <gtest/gtest.h>

#include "kernels/attention/attention.h"
#include "kernels/catalogue.h"
#include "kernels/convolution/convolution.h"
#include "kernels/gemm/gemm.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

// Memory so fast that only arithmetic takes time, unless a test says otherwise.
DeviceProfile arithmetic_only() {
  DeviceProfile profile;
  profile.multiprocessors = 100;
  profile.compute.memory_bytes_per_second = 1e18;
  profile.compute.fp32_flops_per_second = 1e12;
  profile.compute.tf32_flops_per_second = 1e13;
  profile.compute.bf16_flops_per_second = 2e13;
  profile.compute.memory_latency_nanoseconds = 0;
  return profile;
}

LaunchKernel launch_of(std::string_view kernel, const KernelShape& shape,
                       DType dtype = DType::bf16) {
  LaunchKernel launch;
  launch.kernel = kernel;
  launch.shape = shape;
  launch.dtype = dtype;
  return launch;
}

double seconds(const DeviceProfile& profile, const LaunchKernel& launch) {
  return static_cast<double>(kernel_time(profile, launch, 0)) / 1e9;
}

double share_of(std::string_view name) {
  return kernel(name).cost.share_of_rate;
}

double flops(const LaunchKernel& launch) {
  return static_cast<double>(work_of(launch).flops);
}

TEST(KernelTime, OfAGemmIsThatOfItsFullWaves) {
  const DeviceProfile profile = arithmetic_only();
  const LaunchKernel full =
      launch_of("matmul", kernels::Matmul::Shape{1280, 1280, 512});  // 100 tiles
  const LaunchKernel one_more =
      launch_of("matmul", kernels::Matmul::Shape{1280, 1281, 512});  // 110
  EXPECT_NEAR(seconds(profile, full), flops(full) / 2e13 / share_of("matmul"), 1e-9);
  EXPECT_NEAR(seconds(profile, one_more), 2 * seconds(profile, full), 1e-8);
}

TEST(KernelTime, OfAGemmInFp8IsShorterByTheRateOfItsFactors) {
  const DeviceProfile profile = arithmetic_only();
  constexpr kernels::Matmul::Shape shape{1280, 1280, 512};
  EXPECT_NEAR(seconds(profile, launch_of("matmul", shape)) /
                  seconds(profile, launch_of("matmul_fp8", shape)),
              2, 1e-3);
}

TEST(KernelTime, OfAttentionsGradientIsShorterWhereItsSumsHaveAnyOrder) {
  LaunchKernel gradient =
      launch_of("attention_gradient", kernels::AttentionGradient::Shape{1024, 256, 512, 4});
  const auto time_in = [&](bool any_order) {
    gradient.attributes = kernels::AttentionGradient::Attributes{.any_order = any_order};
    return seconds(arithmetic_only(), gradient);
  };
  EXPECT_NEAR(time_in(false) / time_in(true), 0.34 / 0.25, 1e-3);
}

TEST(KernelTime, OfAGemmThatSparesMultiprocessorsIsThatOfItsWavesOnTheOthers) {
  const DeviceProfile profile = arithmetic_only();
  LaunchKernel sparing = launch_of(
      "matmul", kernels::Matmul::Shape{1280, 1152, 512});  // 90 tiles for 100 multiprocessors
  const double alone = seconds(profile, sparing);
  sparing.attributes = kernels::Matmul::Attributes{.spare_multiprocessors = 10};
  EXPECT_NEAR(seconds(profile, sparing), alone, 1e-9);
  sparing.attributes = kernels::Matmul::Attributes{.spare_multiprocessors = 11};
  EXPECT_NEAR(seconds(profile, sparing), 2 * alone, 1e-8);
}

TEST(KernelTime, CountsTheTilesOfAllGemmsOfABatch) {
  const DeviceProfile profile = arithmetic_only();
  const double alone =  // on small tiles, four a GEMM
      seconds(profile, launch_of("matmul", kernels::Matmul::Shape{128, 128, 512}));
  EXPECT_NEAR(seconds(profile, launch_of("matmul", kernels::Matmul::Shape{128, 128, 512, 25})),
              alone, 1e-9);
  EXPECT_NEAR(seconds(profile, launch_of("matmul", kernels::Matmul::Shape{128, 128, 512, 26})),
              2 * alone, 1e-9);
}

TEST(KernelTime, SplitsTheDepthOfAGemmWithFewTiles) {
  DeviceProfile h200 = arithmetic_only();
  h200.multiprocessors = 132;
  h200.compute.memory_bytes_per_second = 4.14e12;
  h200.compute.bf16_flops_per_second = 8.15e14;
  // An H200 took 61 us (2026-11-22) where it split the depth, and 721 us with one part per tile.
  EXPECT_NEAR(seconds(h200, launch_of("matmul", kernels::Matmul::Shape{768, 768, 32768})), 61e-6,
              6e-6);
}

TEST(KernelTime, OfAGemmWithBiasIsThatOfTheGemmAndItsAdditions) {
  const DeviceProfile profile = arithmetic_only();
  const double gemm =
      seconds(profile, launch_of("matmul", kernels::Matmul::Shape{1280, 1281, 512}));
  const double linear =
      seconds(profile, launch_of("linear", kernels::Matmul::Shape{1280, 1281, 512}));
  EXPECT_GT(linear, gemm);
  EXPECT_LT(linear, 1.002 * gemm);
}

TEST(KernelTime, OfAttentionIsWhatAnH200TookWithinThoseSpeeds) {
  DeviceProfile h200 = arithmetic_only();
  h200.compute.bf16_flops_per_second = 8.15e14;
  const AttentionShape shape{.rows = 32768, .columns = 768, .tokens = 1024, .heads = 12};
  const LaunchKernel forward = launch_of("attention", shape);
  const LaunchKernel backward = launch_of("attention_gradient", shape);
  const double forward_rate = flops(forward) / seconds(h200, forward);
  const double backward_rate = flops(backward) / seconds(h200, backward);
  EXPECT_GT(forward_rate, 230e12);
  EXPECT_LT(forward_rate, 480e12);
  EXPECT_GT(backward_rate, 175e12);
  EXPECT_LT(backward_rate, 240e12);
}

TEST(KernelTime, OfAttentionInTf32IsThatInFp32) {
  const DeviceProfile profile = arithmetic_only();
  const AttentionShape shape{.rows = 1024, .columns = 64, .tokens = 256, .heads = 1};
  for (const auto* name : {"attention", "attention_gradient"}) {
    EXPECT_EQ(seconds(profile, launch_of(name, shape, DType::tf32)),
              seconds(profile, launch_of(name, shape, DType::fp32)));
    EXPECT_LT(seconds(profile, launch_of(name, shape, DType::bf16)),
              seconds(profile, launch_of(name, shape, DType::tf32)));
  }
}

TEST(KernelTime, OfWhatMemoryLimitsIsThatOfItsBytes) {
  DeviceProfile profile = arithmetic_only();
  profile.compute.memory_bytes_per_second = 1e12;
  const LaunchKernel gelu = launch_of("gelu", MatrixShape{.rows = 1000, .columns = 1000});
  const std::int64_t floor = 1500;
  EXPECT_EQ(kernel_time(profile, gelu, floor), floor + 4000);  // 2 MB in, 2 MB out
}

TEST(KernelTime, HasTheLatencyOfMemoryFourTimesAndInEveryWaveOfAGemmTwice) {
  DeviceProfile profile = arithmetic_only();
  const LaunchKernel small = launch_of("gelu", MatrixShape{.rows = 1, .columns = 8});
  const LaunchKernel gemm =
      launch_of("matmul", kernels::Matmul::Shape{1280, 2560, 512});  // two waves
  const double without = seconds(profile, gemm);
  profile.compute.memory_latency_nanoseconds = 300;
  EXPECT_EQ(kernel_time(profile, small, 1000), 1000 + 4 * 300);
  EXPECT_NEAR(seconds(profile, gemm), without + (4 + 2 * 2) * 300e-9 / share_of("matmul"), 2e-9);
}

TEST(KernelTime, BeginsWithThePauseBeforeTheKernelUnlessItIsTold) {
  const LaunchKernel gelu = launch_of("gelu", MatrixShape{.rows = 1, .columns = 8});
  EXPECT_EQ(pause_before(gelu, 1700, 5000, false), 1700);
  EXPECT_EQ(pause_before(gelu, 1700, 3000, false), 1500);
  EXPECT_EQ(pause_before(gelu, 900, 5000, true), 450);
  EXPECT_EQ(pause_before(launch_of("spin", MatrixShape{}), 1700, 5000, false), 0);
}

TEST(KernelTime, OfAKernelBelowTheDevicesSpeedIsLongerInLatencyAndInBytes) {
  DeviceProfile profile = arithmetic_only();
  profile.compute.memory_bytes_per_second = 1e12;
  profile.compute.memory_latency_nanoseconds = 300;
  const LaunchKernel softmax = launch_of("softmax", MatrixShape{.rows = 1000, .columns = 1000});
  EXPECT_NEAR(seconds(profile, softmax), (4 * 300e-9 + 4e-6) / share_of("softmax"), 2e-9);
  EXPECT_LT(share_of("softmax"), 0.5);
}

TEST(KernelTime, OfAConvolutionIsThatOfItsWholeDepth) {
  const DeviceProfile profile = arithmetic_only();
  const kernels::Convolution::Shape shape{
      .height = 8, .width = 8, .channels = 1024, .outputs = 128, .window = 3, .padding = 1};
  const double deep = seconds(profile, launch_of("matmul", kernels::Matmul::Shape{64, 128, 9216}));
  EXPECT_GT(seconds(profile, launch_of("convolution", shape)), 2 * deep);
}

}  // namespace
}  // namespace stepgate
