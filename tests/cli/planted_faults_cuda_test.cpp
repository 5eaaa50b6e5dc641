// SPDX-License-Identifier: MIT
// Five faults that a verdict must not pass, planted on a real GPU: slower GEMMs, stalls, a slowdown
// that begins late, a tail, and work that is rarer than what was measured.
#include <fmt/format.h>

#include <string>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

const std::string small_steps =
    "claim = \"steps of a fraction of a millisecond that wait for the device\"\n"
    "model = { kind = \"mlp\", layers = 4, hidden = 1024 }\nbatch.size = 256\n"
    "transfer.host = \"resident\"\nsync.where = \"step\"\n[variant.baseline]\n";

class PlantedFaults : public CommandLine {
 protected:
  PlantedFaults() {
    write("a.toml", small_steps + "[expect]\nwaits = \"baseline.host_waits_per_step == 1\"\n");
  }

  void head(const std::string& commands) const {
    write("head", "#!/bin/sh\n" + commands);
    std::filesystem::permissions(place() / "head", std::filesystem::perms::owner_all);
  }
  // From so many steps of a work on, the system stops the worker for so long, so often.
  void head_that_stalls(double period_ms, double length_ms, int after_steps) const {
    head(fmt::format("exec python3 {}/tests/workers/stalling.py {} {} {} {} \"$@\"\n",
                     STEPGATE_SOURCE_DIR, STEPGATE_PROGRAM, period_ms, length_ms, after_steps));
  }
  Finished gate(std::vector<std::string> more) const {
    more.insert(more.begin(), {"gate", "a.toml", "--head", "./head", "--seed", "5"});
    return stepgate(more);
  }
  Finished against_base() const {
    return gate({"--base", STEPGATE_PROGRAM, "--no-sentences", "--budget", "60"});
  }
};

TEST_F(PlantedFaults, NoneIsFoundWhereThereIsNone) {
  head("exec " STEPGATE_PROGRAM " \"$@\"\n");
  const Finished run = against_base();
  EXPECT_NE(run.exit_code, 1) << run.out << run.err;
  EXPECT_NE(run.exit_code, 3) << run.out << run.err;
}

TEST_F(PlantedFaults, SlowerGemmsBlock) {
  head(
      "case \" $* \" in *\" worker \"*) set -- \"$@\" --injected repeated_products:20% ;; esac\n"
      "exec " STEPGATE_PROGRAM " \"$@\"\n");
  const Finished run = against_base();
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_NE(run.out.find("blocks "), std::string::npos) << run.out;
}

// Stalls take 8 % of the time each: many short ones, and few long ones, which a typical launch has
// not.
TEST_F(PlantedFaults, StallsDoNotPass) {
  for (const auto& [period, length] : {std::pair(50.0, 4.0), std::pair(600.0, 60.0)}) {
    head_that_stalls(period, length, 0);
    const Finished run = against_base();
    EXPECT_TRUE(run.exit_code == 1 || run.exit_code == 77) << run.out << run.err;
  }
}

TEST_F(PlantedFaults, WhatBeginsLateFailsTheSoak) {
  head_that_stalls(10, 3, 3000);
  const Finished slower = gate({"--soak"});
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  head_that_stalls(10, 3, 1'000'000'000);
  const Finished steady = gate({"--soak"});
  EXPECT_EQ(steady.exit_code, 0) << steady.out << steady.err;
}

TEST_F(PlantedFaults, ATailThatIsTwiceAsLongIsRefuted) {
  write("tail.toml", small_steps +
                         "[variant.fix]\neval = { every = 25, batches = 2 }\n"
                         "[expect]\ntail = \"fix.step_ms_p99 <= 1.1 * baseline.step_ms_p99\"\n");
  const Finished run = stepgate({"run", "tail.toml", "--seed", "6"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
}

TEST_F(PlantedFaults, WhatIsRarerThanTheRoundsNeverHolds) {
  write("restarts.toml",
        "claim = \"a loader that starts anew every 5000 batches, for a second\"\n"
        "model = { kind = \"spin\", kernels = 3, kernel_us = 300 }\n"
        "loader = { wait_us = 100, depth = 2 }\n[variant.baseline]\n"
        "[variant.fix]\nloader = { restart_every = 5000, start_us = 1000000 }\n"
        "[expect]\nas_fast = \"fix.step_ms_mean <= 1.1 * baseline.step_ms_mean\"\n");
  const Finished run = stepgate({"run", "restarts.toml", "--seed", "6"});
  EXPECT_TRUE(run.exit_code == 1 || run.exit_code == 77) << run.out << run.err;
}

}  // namespace
}  // namespace stepgate
