// SPDX-License-Identifier: MIT
// Tests which steps may be interleaved with those of another plan.
#include <gtest/gtest.h>

#include "plan/count/facts_of.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

template <class Set>
std::string reason_with(Set set) {
  Knobs knobs = small_mlp();
  set(knobs);
  return facts_of(plan_of(knobs)).against_interleaving;
}

TEST(Interleaving, AllowsStepsThatOnlyQueueWorkAndKeepTheHostBusy) {
  EXPECT_EQ(reason_with([](Knobs&) {}), "");
  EXPECT_EQ(reason_with([](Knobs& knobs) { knobs.host.step_us = 100; }), "");
  EXPECT_EQ(reason_with([](Knobs& knobs) { knobs.launch.via = LaunchVia::graph; }), "");
  EXPECT_EQ(reason_with([](Knobs& knobs) { knobs.memory.zero_grad = ZeroGrad::memset; }), "");
}

TEST(Interleaving, RefusesWhatWaitsOrWorksBesideTheComputeStream) {
  EXPECT_NE(reason_with([](Knobs& knobs) {
              knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device};
            }).find("waits for the device"),
            std::string::npos);
  EXPECT_NE(reason_with([](Knobs& knobs) {
              knobs.transfer.host = HostMemory::pageable;
            }).find("keeps the host in the call"),
            std::string::npos);
  EXPECT_NE(reason_with([](Knobs& knobs) {
              knobs.transfer = {
                  .host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
            }).find("acts for another step"),
            std::string::npos);
  EXPECT_NE(reason_with([](Knobs& knobs) {
              knobs.loader = {.wait_us = 100, .depth = 2};
              knobs.transfer.host = HostMemory::pinned;
            }).find("a loader that goes on meanwhile"),
            std::string::npos);
  EXPECT_NE(reason_with([](Knobs& knobs) {
              knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = {}};
            }).find("asks the driver for memory"),
            std::string::npos);
}

// Whether a short segment contains such a step is random.
TEST(Interleaving, RefusesWhatHappensInSomeStepsOnly) {
  EXPECT_NE(reason_with([](Knobs& knobs) {
              knobs.log = {.every = 10, .via = LogVia::mean_on_device};
            }).find("not in every step"),
            std::string::npos);
  EXPECT_NE(reason_with([](Knobs& knobs) {
              knobs.loader = {.depth = 2, .restart_every = 500, .start_us = 1000};
              knobs.transfer.host = HostMemory::pinned;
            }).find("'start of the loader's workers' of 'only' is not in every step"),
            std::string::npos);
}

}  // namespace
}  // namespace stepgate
