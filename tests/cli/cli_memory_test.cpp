// SPDX-License-Identifier: MIT
// Tests the built program from outside, with a scenario that plans alone decide.
// tests/scripts/cli/memory.txt has more such scenarios, and refused memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

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
  const Finished refused =
      stepgate({"accept", "churn.toml", "--device", "simulated:round-numbers"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "'churn' is tagged no_gpu: its plans decide it"))
      << refused.err;
}

TEST_F(CommandLine, WritesWhatAnAllocatorDoesAsALineForEachVariantThatHasOne) {
  write("churn.toml", churn);
  const Finished plan = stepgate({"plan", "churn.toml", "--memory", "--json", "m.json"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_TRUE(contains(plan.out, "baseline")) << plan.out;
  std::istringstream file(text_of(place() / "m.json"));
  for (const std::string variant : {"baseline", "fix"}) {
    std::string line;
    ASSERT_TRUE(std::getline(file, line)) << variant;
    const auto memory = nlohmann::json::parse(line);
    EXPECT_EQ(memory["schema"], "stepgate.memory/1");
    EXPECT_EQ(memory["scenario"], "churn");
    EXPECT_EQ(memory["variant"], variant);
    std::map<std::string, int> actions;
    for (const auto& event : memory["events"]) ++actions[event["action"]];
    EXPECT_GT(actions["take_segment"], 0) << variant;
    EXPECT_GT(actions["release"], 0) << variant;
    EXPECT_EQ(actions["refuse"] > 0, variant == "baseline") << "which is capped";
    const auto& first = *std::ranges::find(memory["events"], "allocate", [](const auto& event) {
      return event["action"].template get<std::string>();
    });
    EXPECT_GT(first["bytes"], 0);
    EXPECT_LT(first["buffer"], memory["buffers"].size());
  }
  write("static.toml", holding);
  const Finished none = stepgate({"plan", "static.toml", "--memory", "--json", "n.json"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.err, "no variant has an allocator of its own")) << none.err;
  EXPECT_FALSE(exists("n.json"));
  EXPECT_EQ(stepgate({"plan", "churn.toml", "--json", "n.json"}).exit_code, 2) << "not of memory";
}

}  // namespace
}  // namespace stepgate
