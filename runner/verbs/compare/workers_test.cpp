// SPDX-License-Identifier: MIT
#include "verbs/compare/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/process/run_program.h"

namespace stepgate {
namespace {

TEST(Workers, ASideHasItsOwnKnobsBesideThoseOfBoth) {
  Arguments arguments;
  arguments.files = {"step.toml"};
  arguments.overrides = {"batch.size=8"};
  arguments.gate.base = arguments.gate.head = path_of_this_program().string();
  EXPECT_TRUE(run_same_program(arguments));
  arguments.gate.head_overrides = {"kernels.layer_norm=mine.so:fast"};
  EXPECT_FALSE(run_same_program(arguments));
  const auto knobs = [&](ComparisonSide side) {
    const Command command = worker_command(arguments, side);
    std::vector<std::string> found;
    for (auto word = std::ranges::find(command, "--"); word != command.begin(); --word) {
      if (*(word - 1) == "--set") found.push_back(*word);
    }
    std::ranges::sort(found);
    return found;
  };
  EXPECT_EQ(knobs(ComparisonSide::base), std::vector<std::string>{"batch.size=8"});
  EXPECT_EQ(knobs(ComparisonSide::head),
            (std::vector<std::string>{"batch.size=8", "kernels.layer_norm=mine.so:fast"}));
}

}  // namespace
}  // namespace stepgate
