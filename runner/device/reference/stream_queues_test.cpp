// SPDX-License-Identifier: MIT
#include "device/reference/stream_queues.h"

#include <gtest/gtest.h>

#include "device/reference/small_plans.h"

namespace stepgate {
namespace {

using Streams = std::vector<int>;

constexpr int compute = compute_stream;
constexpr int side = small_plan_stream::side;
constexpr int legacy = small_plan_stream::legacy;
const std::vector<Stream> three = small_plan_streams();

void nothing() {}

TEST(StreamQueues, KeepTheOrderOfOneStream) {
  StreamQueues queues(three);
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) queues.issue(side, [&order, i] { order.push_back(i); });
  while (!queues.idle()) queues.run_next(side);
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST(StreamQueues, LetComputeAndSidePassEachOther) {
  StreamQueues queues(three);
  queues.issue(compute, nothing);
  queues.issue(side, nothing);
  EXPECT_EQ(queues.ready(), (Streams{compute, side}));
}

TEST(StreamQueues, HoldLegacyWorkUntilEarlierComputeWorkIsDone) {
  StreamQueues queues(three);
  queues.issue(compute, nothing);
  queues.issue(legacy, nothing);
  EXPECT_EQ(queues.ready(), Streams{compute});
  queues.run_next(compute);
  EXPECT_EQ(queues.ready(), Streams{legacy});
}

TEST(StreamQueues, HoldComputeWorkUntilEarlierLegacyWorkIsDone) {
  StreamQueues queues(three);
  queues.issue(legacy, nothing);
  queues.issue(compute, nothing);
  EXPECT_EQ(queues.ready(), Streams{legacy});
}

TEST(StreamQueues, OrderSideWorkWithNoLegacyWork) {
  StreamQueues queues(three);
  queues.issue(legacy, nothing);
  queues.issue(side, nothing);
  EXPECT_EQ(queues.ready(), (Streams{side, legacy}));
}

TEST(StreamQueues, OrderEveryBlockingStreamWithTheLegacyStreamAndNotWithEachOther) {
  std::vector<Stream> streams = three;
  streams.push_back({.name = "another", .kind = StreamKind::blocking});
  const int another = 3;
  StreamQueues queues(streams);
  queues.issue(compute, nothing);
  queues.issue(another, nothing);
  queues.issue(legacy, nothing);
  queues.issue(another, nothing);
  EXPECT_EQ(queues.ready(), (Streams{compute, another}));
  queues.run_next(another);
  EXPECT_EQ(queues.ready(), Streams{compute}) << "the legacy stream waits for both";
  queues.run_next(compute);
  EXPECT_EQ(queues.ready(), Streams{legacy}) << "and the other waits for the legacy stream";
}

TEST(StreamQueues, HoldWorkUntilTheMarkThatItWaitsFor) {
  StreamQueues queues(three);
  const SharedMark mark = queues.issue(compute, nothing);
  queues.issue(side, nothing, mark);
  EXPECT_EQ(queues.ready(), Streams{compute});
  queues.run_next(compute);
  EXPECT_TRUE(mark->done);
  EXPECT_EQ(queues.ready(), Streams{side});
}

TEST(StreamQueues, KnowHowFarAStreamIs) {
  StreamQueues queues(three);
  queues.issue(compute, nothing);
  queues.issue(compute, nothing);
  queues.run_next(compute);
  EXPECT_TRUE(queues.reached(compute, 1));
  EXPECT_FALSE(queues.reached(compute, 2));
  EXPECT_FALSE(queues.idle());
}

}  // namespace
}  // namespace stepgate
