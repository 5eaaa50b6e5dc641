// SPDX-License-Identifier: MIT
#include "kernels/device_limits.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

TEST(DeviceLimits, SayWhichOneIsAnotherOneNow) {
  const std::vector<DeviceLimit> before = {
      {.name = "stack", .value = 1024, .may_grow = true},
      {.name = "persisting L2", .value = 0},
      {.name = "cache preference", .value = 0, .unit = ""},
  };
  EXPECT_EQ(in_words(before), "stack 1024 B, persisting L2 0 B, cache preference 0");
  EXPECT_EQ(changed_limit(before, before), "");
  std::vector<DeviceLimit> now = before;
  now[1].value = 4096;
  now[2].value = 1;
  EXPECT_EQ(changed_limit(before, now), "persisting L2 was 0 B and is 4096 B");
  now[1].value = 0;
  EXPECT_EQ(changed_limit(before, now), "cache preference was 0 and is 1");
}

TEST(DeviceLimits, MayGrowWhereTheDeviceItselfRaisesThem) {
  const std::vector<DeviceLimit> before = {{.name = "stack", .value = 1024, .may_grow = true}};
  std::vector<DeviceLimit> now = before;
  now[0].value = 2048;
  EXPECT_EQ(changed_limit(before, now), "");
  now[0].value = 512;
  EXPECT_EQ(changed_limit(before, now), "stack was 1024 B and is 512 B");
}

TEST(DeviceLimits, AreNotComparedWhereOnlyOneIsKnown) {
  EXPECT_EQ(changed_limit(std::vector<DeviceLimit>{{.name = "heap", .value = 1}}, {}), "");
}

}  // namespace
}  // namespace stepgate
