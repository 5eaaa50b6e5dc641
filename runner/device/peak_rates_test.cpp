// SPDX-License-Identifier: MIT
#include "device/peak_rates.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

std::optional<double> peak_of(const std::string& gpu, DType dtype) {
  DeviceIdentity device;
  device.name = gpu;
  return peak_flops_per_second(device, dtype);
}

TEST(PeakRates, AreThoseOfTheDataSheetByDtype) {
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA H200", DType::bf16).value(), 989.4e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA H200", DType::fp16).value(), 989.4e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA H200", DType::tf32).value(), 494.7e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA H200", DType::fp32).value(), 66.9e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA A100-SXM4-80GB", DType::bf16).value(), 312e12);
}

TEST(PeakRates, AreNotGuessedForAGpuThatTheTableDoesNotName) {
  EXPECT_EQ(peak_of("NVIDIA H300", DType::bf16), std::nullopt);
  EXPECT_EQ(peak_of("NVIDIA H200 MIG 1g.18gb", DType::bf16), std::nullopt);
  EXPECT_EQ(peak_of("", DType::bf16), std::nullopt);
}

}  // namespace
}  // namespace stepgate
