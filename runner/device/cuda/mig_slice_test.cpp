// SPDX-License-Identifier: MIT
#include "device/cuda/mig_slice.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

TEST(MigSlice, IsKnownByItsName) {
  EXPECT_EQ(mig_slice_of("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), "1g.10gb");
  EXPECT_EQ(mig_slice_of("NVIDIA A100-SXM4-40GB MIG 2c.3g.20gb"), "2c.3g.20gb");
  EXPECT_EQ(mig_slice_of("NVIDIA H200"), std::nullopt);
  EXPECT_EQ(mig_slice_of(""), std::nullopt);
}

TEST(MigSlice, SaysWhatIsNotItsOwn) {
  EXPECT_EQ(gpu_in_words("NVIDIA H200"), "NVIDIA H200");
  EXPECT_EQ(gpu_in_words("NVIDIA H100 80GB HBM3 MIG 1g.10gb"),
            "NVIDIA H100 80GB HBM3 MIG 1g.10gb, a MIG slice: its memory, kernels and measured "
            "profile are its own; clocks, power and temperature are those of the whole GPU, and "
            "what other slices do to them is not seen");
}

}  // namespace
}  // namespace stepgate
