// SPDX-License-Identifier: MIT
#include "device/reference/stream_queues.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

using enum StreamName;
using Streams = std::vector<StreamName>;

void nothing() {}

TEST(StreamQueues, KeepTheOrderOfOneStream) {
  StreamQueues queues;
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) queues.issue(side, [&order, i] { order.push_back(i); });
  while (!queues.idle()) queues.run_next(side);
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST(StreamQueues, LetComputeAndSidePassEachOther) {
  StreamQueues queues;
  queues.issue(compute, nothing);
  queues.issue(side, nothing);
  EXPECT_EQ(queues.ready(), (Streams{compute, side}));
}

TEST(StreamQueues, HoldLegacyWorkUntilEarlierComputeWorkIsDone) {
  StreamQueues queues;
  queues.issue(compute, nothing);
  queues.issue(legacy, nothing);
  EXPECT_EQ(queues.ready(), Streams{compute});
  queues.run_next(compute);
  EXPECT_EQ(queues.ready(), Streams{legacy});
}

TEST(StreamQueues, HoldComputeWorkUntilEarlierLegacyWorkIsDone) {
  StreamQueues queues;
  queues.issue(legacy, nothing);
  queues.issue(compute, nothing);
  EXPECT_EQ(queues.ready(), Streams{legacy});
}

TEST(StreamQueues, OrderSideWorkWithNoLegacyWork) {
  StreamQueues queues;
  queues.issue(legacy, nothing);
  queues.issue(side, nothing);
  EXPECT_EQ(queues.ready(), (Streams{side, legacy}));
}

TEST(StreamQueues, HoldWorkUntilTheMarkThatItWaitsFor) {
  StreamQueues queues;
  const SharedMark mark = queues.issue(compute, nothing);
  queues.issue(side, nothing, mark);
  EXPECT_EQ(queues.ready(), Streams{compute});
  queues.run_next(compute);
  EXPECT_TRUE(mark->done);
  EXPECT_EQ(queues.ready(), Streams{side});
}

TEST(StreamQueues, KnowHowFarAStreamIs) {
  StreamQueues queues;
  queues.issue(compute, nothing);
  queues.issue(compute, nothing);
  queues.run_next(compute);
  EXPECT_TRUE(queues.reached(compute, 1));
  EXPECT_FALSE(queues.reached(compute, 2));
  EXPECT_FALSE(queues.idle());
}

}  // namespace
}  // namespace stepgate
