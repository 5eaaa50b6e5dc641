// SPDX-License-Identifier: MIT
#include "device/cuda/gpu_index.h"

#include <gtest/gtest.h>

#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

TEST(GpuIndex, IsTheNumberBehindTheColon) {
  EXPECT_EQ(gpu_index_in("cuda"), 0);
  EXPECT_EQ(gpu_index_in("cuda:0"), 0);
  EXPECT_EQ(gpu_index_in("cuda:1"), 1);
  EXPECT_EQ(gpu_index_in("cuda:12"), 12);
}

TEST(GpuIndex, IsNoneOfOtherDevices) {
  for (const char* spec : {"", "simulated", "simulated:cuda:1", "reference", "cuda1", "CUDA:1"})
    EXPECT_FALSE(gpu_index_in(spec)) << spec;
}

TEST(GpuIndex, RefusesWhatIsNoNumber) {
  for (const char* spec : {"cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda: 1", "cuda:99999999999"})
    EXPECT_THROW((void)gpu_index_in(spec), RequestError) << spec;
}

TEST(GpuIndex, IsWrittenAsItIsRead) {
  for (const int index : {0, 1, 7}) EXPECT_EQ(gpu_index_in(spec_of_gpu(index)), index);
}

TEST(GpuIndex, OfAGpuThatIsNotThereSaysHowManyThereAre) {
  EXPECT_FALSE(reason_against_index(0, 1));
  EXPECT_FALSE(reason_against_index(3, 4));
  const auto of_one = reason_against_index(1, 1).value();
  EXPECT_EQ(of_one.reason, "there is no GPU 1: one is visible");
  EXPECT_EQ(of_one.way_out, "say --device cuda");
  const auto of_four = reason_against_index(4, 4).value();
  EXPECT_EQ(of_four.reason, "there is no GPU 4: 4 are visible");
  EXPECT_EQ(of_four.way_out, "say one of cuda:0 to cuda:3");
}

}  // namespace
}  // namespace stepgate
