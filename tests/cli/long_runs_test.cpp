// SPDX-License-Identifier: MIT
// Tests the memory of a run that never decides, including its JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/cli/command_line.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t most_bytes = 200'000'000;

// Equal variants exactly at the limit, with up to a million rounds.
std::string at_the_limit(int variants, const std::string& kernel_us) {
  std::string text =
      "claim = \"a variant is as fast as itself\"\n"
      "model = { kind = \"spin\", kernels = 1, kernel_us = " +
      kernel_us + " }\nmeasure = { rounds = 1000000, max_seconds = 86400 }\n[variant.v0]\n";
  std::string expect = "[expect]\n";
  for (int variant = 1; variant < variants; ++variant) {
    const std::string name = "v" + std::to_string(variant);
    text += "[variant." + name + "]\n";
    expect += name + "_mean = \"" + name + ".samples_per_s >= 1 * v0.samples_per_s\"\n";
    expect += name + "_p95 = \"" + name + ".step_ms_p95 <= 1 * v0.step_ms_p95\"\n";
  }
  return text + expect;
}

class LongRuns : public CommandLine,
                 public testing::WithParamInterface<std::pair<int, std::string>> {};

TEST_P(LongRuns, AMillionRoundsStayBelowTwoHundredMegabytes) {
  if (sanitized) GTEST_SKIP() << "its memory is that of the program as released";
  const auto& [variants, kernel_us] = GetParam();
  write("long.toml", at_the_limit(variants, kernel_us));
  const Finished run = simulate({"long.toml", "--no-trace", "--json", "long.json"});
  EXPECT_TRUE(contains(run.out, "whose record takes the 128 MiB that are kept")) << run.out;
  EXPECT_LT(run.peak_bytes, most_bytes);
  EXPECT_GT(run.peak_bytes, 64 * mebibyte) << "there was something to bound";
  std::ifstream lines(place() / "long.json");
  std::string line;
  std::getline(lines, line);
  const auto report = nlohmann::json::parse(line);
  EXPECT_EQ(report["measurement"]["record_full"], true);
  EXPECT_GT(report["measurement"]["rounds"].size(), 500U);
}

// Tests many short steps per round, and few long ones with many variants and many assertions.
INSTANTIATE_TEST_SUITE_P(Shapes, LongRuns, testing::Values(std::pair(2, "2"), std::pair(8, "400")));

}  // namespace
}  // namespace stepgate
