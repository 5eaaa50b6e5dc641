// SPDX-License-Identifier: MIT
// Tests the memory of a run that never decides, including its JSON.
#include <fmt/format.h>
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

// `variants` of 10,000 kernels each.
std::string many_kernels(int variants) {
  std::string text =
      "claim = \"large\"\nmodel = { kind = \"spin\", kernels = 10000, kernel_us = 1 }\n";
  for (int variant = 0; variant < variants; ++variant)
    text += fmt::format("[variant.v{}]\nhost.step_us = {}\n", variant, variant + 1);
  return text + "[expect]\nline = \"v1.host_waits_per_step == 0\"\n";
}

TEST_F(CommandLine, RefusesMorePlansThanThereIsRoomForWithTheKnobsThatMakeThem) {
  write("large.toml", many_kernels(256));
  const Finished refused = stepgate({"check", "large.toml"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "its first 100 of 256 variants have more than 1000000"))
      << refused.err;
  EXPECT_TRUE(contains(refused.err, "model.kernels = 10000")) << refused.err;
  EXPECT_TRUE(sanitized || refused.peak_bytes < 800 * mebibyte) << refused.peak_bytes;
}

TEST_F(CommandLine, RefusesMoreValuesOfASweepThanThereIsRoomFor) {
  write("swept.toml", many_kernels(50) + "[sweep]\nbatch.size = [1, 2, 3, 4, 5, 6, 7, 8]\n");
  for (const char* verb : {"check", "plan"}) {
    const Finished refused = stepgate({verb, "swept.toml"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_TRUE(contains(
        refused.err, "the first 2 of the 8 values of 'sweep.batch.size' have more than 1000000"))
        << refused.err;
    EXPECT_TRUE(sanitized || refused.peak_bytes < 800 * mebibyte) << refused.peak_bytes;
  }
}

TEST_F(CommandLine, TracesManyVariantsWithoutKeepingAllTheirTraces) {
  write("many.toml", many_kernels(30));
  const Finished run = simulate({"many.toml", "--report", "many.html"});
  EXPECT_TRUE(contains(run.out,
                       "no timelines are kept: the traces of 30 variants take more than "
                       "128 MiB"))
      << run.out;
  EXPECT_EQ(run.exit_code, 0) << "which needs the traces' counts";
  EXPECT_TRUE(sanitized || run.peak_bytes < 700 * mebibyte) << run.peak_bytes;
}

TEST_F(CommandLine, RefusesMutationsThatWouldTakeHours) {
  write("many.toml", many_kernels(60));
  const Finished refused = stepgate({"mutate", "many.toml"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "has 60 overrides in variants whose steps have "))
      << refused.err;
}

// Tests many short steps per round, and few long ones with many variants and many assertions.
INSTANTIATE_TEST_SUITE_P(Shapes, LongRuns, testing::Values(std::pair(2, "2"), std::pair(8, "400")));

}  // namespace
}  // namespace stepgate
