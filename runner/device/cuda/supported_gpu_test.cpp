// SPDX-License-Identifier: MIT
#include "device/cuda/supported_gpu.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

TEST(SupportedGpu, IsRefusedWithAWayOut) {
  EXPECT_EQ(reason_against({"NVIDIA L4", 8.9}, "89-real"), std::nullopt);
  EXPECT_EQ(reason_against({"NVIDIA A100", 8.0}, "80-real"), std::nullopt);
  EXPECT_EQ(reason_against({"Tesla T4", 7.5}, "80-real"),
            "Tesla T4 has compute capability 7.5; stepgate needs 8.0 (A100, RTX 30 series) or "
            "newer");
  EXPECT_EQ(reason_against({"NVIDIA A100", 8.0, false}, "90"),
            "this build has code for '90', none for NVIDIA A100, compute capability 8.0; build "
            "with -DCMAKE_CUDA_ARCHITECTURES=80");
}

}  // namespace
}  // namespace stepgate
