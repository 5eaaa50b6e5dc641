// SPDX-License-Identifier: MIT
// Plants five faults on a real GPU that must not pass: slower GEMMs, stalls, a slowdown that begins
// late, a tail, and work that is rarer than the measured steps.
#include <fmt/format.h>

#include <string>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

const std::string small_steps =
    "claim = \"steps of a fraction of a millisecond that wait for the device\"\n"
    "model = { kind = \"mlp\", layers = 4, hidden = 1024 }\nbatch.size = 256\n"
    "transfer.host = \"resident\"\nsync.where = \"step\"\n[variant.baseline]\n";
constexpr int never = 1'000'000'000;

class PlantedFaults : public CommandLine {
 protected:
  PlantedFaults() {
    write("a.toml", small_steps + "[expect]\nwaits = \"baseline.host_waits_per_step == 1\"\n");
  }

  // Without more arguments, HEAD is BASE.
  void head_with(const std::string& more_of_a_worker) const {
    script("if [ \"$3\" = worker ]; then " + adding(more_of_a_worker) +
           "fi\nexec " STEPGATE_PROGRAM " \"$@\"\n");
  }
  // Stops the worker repeatedly after this number of steps of a workload, for this length and at
  // this period.
  void head_that_stalls(double period_ms, double length_ms, int after_steps) const {
    script(fmt::format("exec python3 {}/tests/workers/stalling.py {} {} {} {} \"$@\"\n",
                       STEPGATE_SOURCE_DIR, STEPGATE_PROGRAM, period_ms, length_ms, after_steps));
  }
  Finished gate(std::vector<std::string> more) const {
    more.insert(more.begin(), {"gate", "a.toml", "--head", "./head", "--seed", "5"});
    return stepgate(more);
  }
  Finished against_base() const {
    return gate(
        {"--base", STEPGATE_PROGRAM, "--only", "counts", "--only", "time", "--margin", "10%"});
  }
  Finished run(const std::string& file) const { return stepgate({"run", file, "--seed", "6"}); }

 private:
  void script(const std::string& commands) const {
    write("head", "#!/bin/sh\n" + commands);
    std::filesystem::permissions(place() / "head", std::filesystem::perms::owner_all);
  }
};

TEST_F(PlantedFaults, SlowerGemmsBlock) {
  head_with("");
  const Finished same = against_base();
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  head_with("--injected repeated_products:50%");
  const Finished slower = against_base();
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  EXPECT_NE(slower.out.find("blocks "), std::string::npos) << slower.out;
}

// Stalls take a third of the time. There are many short stalls, or few long ones that a typical
// launch does not have.
TEST_F(PlantedFaults, StallsDoNotPass) {
  for (const auto& [period, length] : {std::pair(12.0, 6.0), std::pair(600.0, 300.0)}) {
    head_that_stalls(period, length, never);
    const Finished steady = against_base();
    EXPECT_EQ(steady.exit_code, 0) << steady.out << steady.err;
    head_that_stalls(period, length, 0);
    const Finished stalled = against_base();
    EXPECT_TRUE(stalled.exit_code == 1 ||
                (stalled.exit_code == 77 && stalled.out.find("total time") != std::string::npos))
        << stalled.out << stalled.err;
  }
}

TEST_F(PlantedFaults, ASlowdownThatBeginsLateFailsTheSoak) {
  head_that_stalls(10, 3, never);
  const Finished steady = gate({"--soak"});
  EXPECT_EQ(steady.exit_code, 0) << steady.out << steady.err;
  head_that_stalls(10, 3, 3000);
  const Finished slower = gate({"--soak"});
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
}

TEST_F(PlantedFaults, ATailThatIsTwiceAsLongFails) {
  for (const int batches : {0, 8}) {
    const std::string evaluates = fmt::format("eval = {{ every = 25, batches = {} }}\n", batches);
    write("tail.toml", small_steps + "[variant.fix]\n" + (batches > 0 ? evaluates : "") +
                           "[expect]\ntail = \"fix.step_ms_p99 <= 1.5 * baseline.step_ms_p99\"\n");
    const Finished finished = run("tail.toml");
    EXPECT_EQ(finished.exit_code, batches > 0 ? 1 : 0) << finished.out << finished.err;
  }
}

TEST_F(PlantedFaults, WorkThatIsRarerThanTheRoundsNeverPasses) {
  for (const bool restarts : {false, true}) {
    write("restarts.toml",
          std::string("claim = \"a loader that starts anew every 5000 batches, for a second\"\n"
                      "model = { kind = \"spin\", kernels = 3, kernel_us = 300 }\n"
                      "loader = { wait_us = 100, depth = 2 }\n[variant.baseline]\n"
                      "[variant.fix]\n") +
              (restarts ? "loader = { restart_every = 5000, start_us = 1000000 }\n" : "") +
              "[expect]\nas_fast = \"fix.step_ms_mean <= 1.1 * baseline.step_ms_mean\"\n");
    const Finished finished = run("restarts.toml");
    EXPECT_EQ(finished.exit_code, restarts ? 77 : 0) << finished.out << finished.err;
    const bool is_named = finished.out.find("happens every 5000 steps") != std::string::npos;
    EXPECT_EQ(is_named, restarts) << finished.out;
  }
}

}  // namespace
}  // namespace stepgate
