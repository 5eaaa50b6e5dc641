// SPDX-License-Identifier: MIT
// The built program from outside: a scenario that its plans decide. tests/scripts/cli/memory.txt
// has more of them, and memory that is refused.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

const std::string churn =
    "claim = \"a cap refuses the larger batch\"\ntags = [\"no_gpu\"]\n"
    "model = { layers = 2, hidden = 512 }\nbatch = { sizes = [256, 8192] }\n"
    "transfer.host = \"resident\"\nalloc = { with = \"caching\", when = \"op\" }\n"
    "[variant.baseline]\nalloc.cap = \"140 MiB\"\n[variant.fix]\n"
    "[expect]\nline = \"fix.ooms == 0\"\n";

TEST_F(CommandLine, MeasuresNothingWherePlansDecide) {
  write("churn.toml", churn);
  for (const char* verb : {"accept", "certify"}) {
    const Finished refused = stepgate({verb, "churn.toml", "--device", "simulated:round-numbers"});
    EXPECT_EQ(refused.exit_code, 2) << verb;
    EXPECT_TRUE(contains(refused.err, "'churn' is tagged no_gpu: its plans decide it"))
        << refused.err;
  }
}

TEST_F(CommandLine, WritesWhatAnAllocatorDoesForAMemoryViewer) {
  write("churn.toml", churn);
  const Finished plan = stepgate({"plan", "churn.toml", "--memory-snapshot", "m.pickle"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  for (const char* file : {"m.churn.baseline.pickle", "m.churn.fix.pickle"}) {
    std::ifstream written(place() / file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(written), {}};
    ASSERT_FALSE(bytes.empty()) << file;
    EXPECT_EQ(bytes.front(), '\x80');
    EXPECT_EQ(bytes.back(), '.');
  }
  write("static.toml", holding);
  const Finished none = stepgate({"plan", "static.toml", "--memory-snapshot", "m.pickle"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.err, "no variant has an allocator of its own")) << none.err;
}

}  // namespace
}  // namespace stepgate
