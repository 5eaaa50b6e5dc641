// SPDX-License-Identifier: MIT
// Tests the built program from outside, where a test needs more than a call with its output, or
// where the output depends on the build. tests/scripts/cli tests the other calls.
#include <gtest/gtest.h>

#include <regex>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

TEST_F(CommandLine, PrintsItsHelp) {
  const Finished help = stepgate({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* verb :
       {"list", "check", "plan", "fields", "new", "devices", "run", "gate", "worker"}) {
    EXPECT_TRUE(contains(help.out, std::string("\n  ") + verb + " ")) << help.out;
  }
  EXPECT_EQ(help.err, "");
}

TEST_F(CommandLine, PrintsTheVersionOfTheProjectAndTheCommitAndForWhichGpusItIs) {
  const Finished version = stepgate({"--version"});
  EXPECT_EQ(version.exit_code, 0);
#ifdef STEPGATE_WITH_CUDA
  const std::string gpus = ", for GPUs of (native|[0-9]+.*)";
#else
  const std::string gpus;
#endif
  const std::regex expected(
      "stepgate " STEPGATE_VERSION ", commit ([0-9a-f]{12}(-dirty)?|unknown)" + gpus + "\n");
  EXPECT_TRUE(std::regex_match(version.out, expected)) << version.out;
}

TEST_F(CommandLine, ListsDevicesAndSaysWhyOneIsMissing) {
  const Finished devices = stepgate({"devices"});
  EXPECT_EQ(devices.exit_code, 0) << devices.err;
  EXPECT_TRUE(contains(devices.out, "simulated:nvidia-h200")) << devices.out;
  EXPECT_TRUE(contains(devices.out, "reference")) << devices.out;
#ifndef STEPGATE_WITH_CUDA
  EXPECT_TRUE(contains(devices.out, "not available: this build has no CUDA device"));
#endif
}

// Every option that is a number has the same parser, which takes what a scenario may say.
TEST_F(CommandLine, RefusesNumbersThatAreNoneInWords) {
  write("a.toml", holding);
  const std::vector<std::string> never{"-1",   "0x",     "0x10",
                                       "0x1g", "1e-308", "99999999999999999999"};
  for (const auto& [verb, option] :
       {std::pair{"run", "--seed"},  {"run", "--ranks"},         {"run", "--stall-seconds"},
        {"run", "--budget"},         {"gate", "--seed"},         {"gate", "--pairs"},
        {"gate", "--run-seconds"},   {"gate", "--gates"},        {"gate", "--trial-gates"},
        {"gate", "--stall-seconds"}, {"gate", "--budget"},       {"accept", "--runs"},
        {"accept", "--seed"},        {"mutate", "--seed"},       {"worker", "--seed"},
        {"worker", "--noise-seed"},  {"attach", "--skip-steps"}, {"attach", "--steps"},
        {"attach", "--timeout"},     {"read", "--skip-steps"},   {"read", "--steps"},
        {"devices", "--seed"}}) {
    for (const std::string& number : never) {
      // Reports have seeds in this form.
      if (number == "0x10" && std::string_view(option).ends_with("seed")) continue;
      const Finished run =
          stepgate({verb, std::string(option) + "=" + number, "--json=j.json", "a.toml"});
      EXPECT_EQ(run.exit_code, 2) << verb << option << number;
      EXPECT_TRUE(contains(run.err, ": must be a ")) << verb << option << number << run.err;
      EXPECT_FALSE(exists("j.json"));
    }
  }
  for (const char* seed : {"0", "18446744073709551615", "0x10", "0xfeDCba9876543210"})
    EXPECT_EQ(stepgate({"run", "a.toml", "--device", "simulated", "--seed", seed}).exit_code, 0);
  EXPECT_EQ(
      stepgate({"run", "a.toml", "--device", "simulated", "--stall-seconds", "1e1"}).exit_code, 0);
}

// Minutes without output look like a hang. A fake cmake replaces the real one.
TEST_F(CommandLine, SaysWhatItsFrontDoorsAreDoing) {
  std::filesystem::create_directory(place() / "build");
  const auto build = [&](const std::string& cmake) {
    const std::string script = "set -euo pipefail; . " STEPGATE_SOURCE_DIR
                               "/ci/packages.sh; cmake() { " +
                               cmake + "; }; configure_and_build host stepgate";
    return ChildProcess("/bin/bash", {"-c", script}, place()).wait();
  };
  const Finished good = build("echo '[1/2] something'");
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, "");
  EXPECT_EQ(good.err,
            "-- configuring build/host\n-- building stepgate in build/host; minutes from scratch, "
            "details in build/host.build.log\n");
  const Finished bad = build("echo a fault; [ $1 != --build ]");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_EQ(bad.out, "a fault\n");
}

// Output that could not be written must not end with success.
TEST_F(CommandLine, FailsWhereItsOutputCannotBeWritten) {
  write("a.toml", holding);
  const std::string program = STEPGATE_PROGRAM;
  for (const std::string& call :
       {std::string("list a.toml"), std::string("check a.toml"), std::string("plan a.toml"),
        std::string("fields"), std::string("devices"), std::string("--help"),
        std::string("--version"), std::string("run a.toml --device simulated"),
        "gate --base " + program + " --head " + program + " a.toml --device simulated"}) {
    const Finished full =
        ChildProcess("/bin/sh", {"-c", program + " " + call + " >/dev/full"}, place()).wait();
    EXPECT_EQ(full.exit_code, 2) << call;
    EXPECT_TRUE(contains(full.err, "standard output cannot be written")) << full.err;
  }
  // A worse error still determines the exit code.
  write("r.toml", fails);
  EXPECT_EQ(ChildProcess("/bin/sh", {"-c", program + " run r.toml --device simulated >/dev/full"},
                         place())
                .wait()
                .exit_code,
            1);
}

}  // namespace
}  // namespace stepgate
