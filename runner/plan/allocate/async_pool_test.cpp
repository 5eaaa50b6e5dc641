// SPDX-License-Identifier: MIT
// Expects the results of a probe of cudaMallocFromPoolAsync on an H100 with driver 580: growth by
// 32 MiB, nothing given back before a wait, and then everything beyond the threshold at once.
#include "plan/allocate/async_pool.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

TEST(AsyncPool, GrowsByChunksAndServesFromThem) {
  AsyncPool pool(0);
  EXPECT_TRUE(pool.allocate(4 * mib));
  EXPECT_EQ(pool.held_bytes(), 32 * mib);
  EXPECT_FALSE(pool.allocate(28 * mib));
  EXPECT_TRUE(pool.allocate(1));
  EXPECT_EQ(pool.held_bytes(), 64 * mib);
  EXPECT_TRUE(pool.allocate(100 * mib));
  EXPECT_EQ(pool.held_bytes(), 160 * mib);
  EXPECT_EQ(pool.live_bytes(), 132 * mib + 1);
}

TEST(AsyncPool, GivesBackAtAWaitWhatIsBeyondItsThreshold) {
  AsyncPool pool(70 * mib);
  pool.allocate(150 * mib);
  pool.release(50 * mib);
  EXPECT_FALSE(pool.allocate(50 * mib)) << "what was released is still there";
  pool.release(150 * mib);
  EXPECT_EQ(pool.wait(), 3) << "of 160 MiB, 64 may stay";
  EXPECT_EQ(pool.held_bytes(), 64 * mib);
  EXPECT_EQ(pool.wait(), 0) << "the first wait gave it back";
}

TEST(AsyncPool, KeepsWhatIsLiveWhateverItsThreshold) {
  AsyncPool pool(0);
  pool.allocate(40 * mib);
  EXPECT_EQ(pool.wait(), 0);
  EXPECT_EQ(pool.held_bytes(), 64 * mib);
  pool.release(40 * mib);
  EXPECT_EQ(pool.wait(), 2);
}

TEST(AsyncPool, WithoutAThresholdGivesNothingBack) {
  AsyncPool pool(std::nullopt);
  pool.allocate(100 * mib);
  pool.release(100 * mib);
  EXPECT_EQ(pool.wait(), 0);
  EXPECT_EQ(pool.held_bytes(), 128 * mib);
}

}  // namespace
}  // namespace stepgate
