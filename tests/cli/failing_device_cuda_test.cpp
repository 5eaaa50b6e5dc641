// SPDX-License-Identifier: MIT
// Tests the real program on a real GPU that fails: a kernel traps in the middle of a suite, or
// another process holds the memory.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

// The scenario has enough rounds that a fault can happen during them.
const std::string long_one =
    "claim = \"a variant is as fast as itself\"\n"
    "model = { kind = \"spin\", kernels = 10, kernel_us = 20 }\n"
    "measure = { rounds = 10000, max_seconds = 30 }\n"
    "[variant.baseline]\n[variant.fix]\n"
    "[expect]\nline = \"fix.samples_per_s >= 1 * baseline.samples_per_s\"\n"
    "other = \"fix.samples_per_s <= 1 * baseline.samples_per_s\"\n";
const std::string by_plan =
    "claim = \"fewer kernels are fewer launches\"\ntags = [\"no_gpu\"]\n"
    "model = { kind = \"spin\" }\n"
    "[variant.baseline]\nmodel.kernels = 20\n[variant.fix]\nmodel.kernels = 10\n"
    "[expect]\nline = \"fix.launches_per_step < baseline.launches_per_step\"\n";
// Weights and gradients take 4 GiB each.
const std::string large =
    "claim = \"it is large\"\n"
    "model = { kind = \"mlp\", layers = 4, hidden = 16384, dtype = \"fp32\" }\nbatch.size = 8\n"
    "[variant.baseline]\n[variant.fix]\n"
    "[expect]\nline = \"fix.samples_per_s >= 0.5 * baseline.samples_per_s\"\n";

class FailingDevice : public CommandLine {
 protected:
  std::vector<Json> lines(const std::string& file) const {
    std::vector<Json> objects;
    std::istringstream text(text_of(place() / file));
    for (std::string line; std::getline(text, line);) objects.push_back(Json::parse(line));
    return objects;
  }
  std::string text(const std::string& file) const { return text_of(place() / file); }
};

std::ptrdiff_t times(const std::string& text, const std::string& words) {
  std::ptrdiff_t found = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++found;
  return found;
}

TEST_F(FailingDevice, ThatIsLostInTheMiddleKeepsWhatWasBeforeAndSaysOnceWhatWasNotRun) {
  write("1_before.toml", holding);
  write("2_lost.toml", long_one);
  write("3_after.toml", holding);
  write("4_after.toml", holding);
  write("5_by_plan.toml", by_plan);
  const EnvironmentVariable preload("LD_PRELOAD", STEPGATE_TRAP);
  const EnvironmentVariable file("TRAP_AFTER_LINES_OF", (place() / "r.json").string());
  const EnvironmentVariable count("TRAP_AFTER_LINES", "1");
  const EnvironmentVariable after("TRAP_AFTER_MILLISECONDS", "5000");
  const auto begin = std::chrono::steady_clock::now();
  const Finished run = stepgate(
      {"run", ".", "--device", "cuda", "--no-trace", "--json", "r.json", "--junit", "j.xml"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 40s);
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_TRUE(contains(run.out, "1_before: passes")) << run.out;
  EXPECT_TRUE(contains(run.out, "2_lost: the device failed: round ")) << run.out;
  EXPECT_TRUE(contains(run.out, "variant '")) << run.out;
  EXPECT_TRUE(contains(run.out, "compute-sanitizer")) << run.out;
  EXPECT_EQ(times(run.out, "cudaError"), 1) << run.out;
  EXPECT_EQ(times(run.out, "the device failed"), 1) << run.out;
  EXPECT_TRUE(contains(
      run.out, "5 scenarios, 1 device failed (2_lost), 2 not run (3_after, 4_after), 2 pass"))
      << run.out;
  const std::vector<Json> reports = lines("r.json");
  ASSERT_EQ(reports.size(), 6U);  // including the suite
  EXPECT_EQ(reports[0].at("outcome"), "passes");
  EXPECT_TRUE(contains(reports[1].at("failed"), "cudaError"));
  for (const std::size_t unrun : {2, 3}) {
    EXPECT_TRUE(reports[unrun].at("not_run"));
    EXPECT_TRUE(contains(reports[unrun].at("failed"), "lost at '2_lost'"));
  }
  EXPECT_EQ(reports[4].at("outcome"), "passes");
  EXPECT_EQ(times(text("j.xml"), "type=\"not run\""), 2) << text("j.xml");
}

TEST_F(FailingDevice, WhoseMemoryAnotherProcessPassesSaysSoAndGoesOn) {
  write("1_large.toml", large);
  write("2_small.toml", holding);
  std::filesystem::create_directories(place() / "beside");
  const ChildProcess holder(STEPGATE_HOLD_MEMORY, {"2560"}, place() / "beside");
  ASSERT_TRUE(holder.says("held", 30s));
  const Finished run = stepgate({"run", ".", "--device", "cuda", "--no-trace", "--json", "r.json"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "1_large: the device failed: variant ")) << run.out;
  EXPECT_TRUE(contains(run.out, " MiB are free; ")) << run.out;
  EXPECT_TRUE(contains(run.out, "other processes")) << run.out;
  // The run is measured, but another process may compute too, so that its times decide nothing.
  EXPECT_TRUE(contains(run.out, "had the GPU open too; measured, but not to be trusted"))
      << run.out;
  EXPECT_TRUE(
      contains(run.out, "2 scenarios, 1 device failed (1_large), 1 undecided (2_small.line)"))
      << run.out;
  EXPECT_EQ(lines("r.json").size(), 3U);
}

TEST_F(FailingDevice, WithoutRoomForCudaItselfIsOneSentence) {
  write("a.toml", holding);
  std::filesystem::create_directories(place() / "beside");
  const ChildProcess holder(STEPGATE_HOLD_MEMORY, {"0"}, place() / "beside");
  ASSERT_TRUE(holder.says("held", 30s));
  const Finished run = stepgate({"run", "a.toml", "--device", "cuda", "--no-trace"});
  EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
  const std::string told = run.out + run.err;
  EXPECT_EQ(times(told, "the device failed"), 1) << told;
  EXPECT_TRUE(contains(told, "process")) << told;
}

}  // namespace
}  // namespace stepgate
