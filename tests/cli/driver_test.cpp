// SPDX-License-Identifier: MIT
// Tests the program with CUDA on a machine whose driver fails. The driver is fake, so no GPU is
// needed.
#include <algorithm>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

class Driver : public CommandLine {
 protected:
  Driver() { write("a.toml", holding); }

  static void expect_one_assertion(const Finished& run, const std::vector<std::string>& words) {
    EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    for (const std::string& word : words) EXPECT_TRUE(contains(run.err, word)) << word << run.err;
  }

 private:
  EnvironmentVariable before_the_machines_own_{"LD_LIBRARY_PATH", STEPGATE_FAKE_DRIVER};
};

TEST_F(Driver, OlderThanTheBuildIsOneSentenceWithBothVersions) {
  const EnvironmentVariable old("FAKE_DRIVER_CUDA", "12040");
  const std::vector<std::string> words{"supports CUDA up to 12.4", "this build is of CUDA 13.",
                                       "update the driver, or build with the toolkit of CUDA 12.4"};
  expect_one_assertion(stepgate({"run", "a.toml"}), words);
  expect_one_assertion(stepgate({"run", "a.toml", "--device", "cuda"}), words);
  expect_one_assertion(stepgate({"accept", "a.toml"}), words);
  const EnvironmentVariable visible("CUDA_VISIBLE_DEVICES", "0");  // which is no reason for it
  expect_one_assertion(stepgate({"run", "a.toml"}), words);
}

TEST_F(Driver, OfTwoVersionsSaysSo) {
  const EnvironmentVariable mixed("FAKE_DRIVER_STARTS", "803");
  expect_one_assertion(stepgate({"run", "a.toml"}),
                       {"is not of the same version as its library", "CUDA 13.0", "restart"});
}

TEST_F(Driver, ThatTheGpuDoesNotTakeSaysSo) {
  const EnvironmentVariable mixed("FAKE_DRIVER_STARTS", "804");
  expect_one_assertion(stepgate({"run", "a.toml"}), {"forward compatibility", "LD_LIBRARY_PATH"});
}

TEST_F(Driver, WithoutAGpuIsAMachineWithoutOne) {
  const EnvironmentVariable none("FAKE_DRIVER_STARTS", "100");
  const Finished run = stepgate({"run", "a.toml"});
  EXPECT_EQ(run.exit_code, 4) << run.err;
}

}  // namespace
}  // namespace stepgate
