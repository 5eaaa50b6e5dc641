// SPDX-License-Identifier: MIT
// Snapshots of memory, and the pickles that they are. The bytes that are expected here were read
// back with Python's pickle and pickletools.
#include "report/trace/write_snapshot.h"

#include <gtest/gtest.h>

#include "report/trace/pickle.h"

namespace stepgate {
namespace {

TEST(Pickle, WritesWhatPythonReads) {
  Pickle pickle;
  pickle.begin_dict();
  pickle.text("a").begin_list().number(1).number(-2).truth(true).truth(false).end_list();
  pickle.text("\xc3\xa9").pair(3, 4);
  pickle.text("top").address(0xffffffffffffffffU);
  pickle.end_dict();
  using namespace std::string_literals;
  EXPECT_EQ(pickle.finish(),
            "\x80\x02}("s  // a dict
            "X\x01\0\0\0"s
            "a]("s  // "a": [
            "\x8a\x08\x01\0\0\0\0\0\0\0"s
            "\x8a\x08\xfe\xff\xff\xff\xff\xff\xff\xff"s  // 1, -2
            "\x88\x89"s
            "e"s                    // True, False]
            "X\x02\0\0\0\xc3\xa9"s  // "e" with an accent
            "\x8a\x08\x03\0\0\0\0\0\0\0"s
            "\x8a\x08\x04\0\0\0\0\0\0\0"s
            "\x86"s  // (3, 4)
            "X\x03\0\0\0top"s
            "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"s  // 2**64 - 1
            "u."s);
}

StepPlan small_plan() {
  StepPlan plan;
  plan.scenario = "churn";
  plan.variant = "baseline";
  plan.buffers = {{.name = "logits", .bytes = 1000}};
  plan.operations.push_back({.name = "allocate logits", .action = Allocate{0}});
  return plan;
}

TEST(WriteSnapshot, NamesTheOperationOfAnAllocationAndTheReasonOfARefusal) {
  const MemoryHistory history{
      .events = {{.action = MemoryAction::take_segment, .address = 4096, .bytes = 2 << 20},
                 {.action = MemoryAction::allocate,
                  .address = 4096,
                  .bytes = 1000,
                  .buffer = 0,
                  .operation = 0,
                  .step = 17},
                 {.action = MemoryAction::refuse, .bytes = 5000, .buffer = 0, .operation = 0}},
      .segments = {{.address = 4096,
                    .bytes = 2 << 20,
                    .blocks = {{4096, 1024, 1000, BlockUse::live},
                               {5120, (2 << 20) - 1024, 0, BlockUse::free}}}}};
  const std::string text = snapshot_pickle(small_plan(), history);
  for (const char* word :
       {"segments", "device_traces", "segment_alloc", "alloc", "oom", "device_free",
        "allocate logits", "step 17", "active_allocated", "inactive", "small", "is_expandable"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(text.find("free_requested"), std::string::npos);
}

TEST(WriteSnapshot, HasAFileOfItsOwnForEveryVariant) {
  EXPECT_EQ(snapshot_file("out/m.pickle", small_plan()), "out/m.churn.baseline.pickle");
  EXPECT_EQ(snapshot_file("m", small_plan()), "m.churn.baseline.pickle");
}

}  // namespace
}  // namespace stepgate
