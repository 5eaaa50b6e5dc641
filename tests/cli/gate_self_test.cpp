// SPDX-License-Identifier: MIT
// Tests `stepgate gate --self-test` from outside: its output for a correct program, and that errors
// never pass. BASE is this build, or a script that runs it differently.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <regex>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

const std::string program = STEPGATE_PROGRAM;

class GateSelfTest : public CommandLine {
 protected:
  void SetUp() override {
    write("small.toml",
          "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 10 }\n"
          "[variant.baseline]\n[variant.fix]\n"
          "[expect]\nno_waits = \"fix.host_waits_per_step == 0\"\n");
  }

  // BASE whose workers run `worker` instead.
  void base_script(const std::string& worker) const {
    const auto file = place() / "base";
    std::ofstream(file) << "#!/bin/sh\n" << worker << "\nexec " << program << " \"$@\"\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  static std::vector<std::string> words(const std::vector<std::string>& more) {
    std::vector<std::string> all{"--baselines",
                                 STEPGATE_SOURCE_DIR "/tests/baselines",
                                 "gate",
                                 "--self-test",
                                 "small.toml",
                                 "--device",
                                 "simulated:round-numbers",
                                 "--workload",
                                 "small/fix",
                                 "--seed",
                                 "1",
                                 "--pairs",
                                 "10",
                                 "--budget",
                                 "60"};  // pairs end a gate on a busy machine too
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Finished self_test(const std::vector<std::string>& more) const { return stepgate(words(more)); }
};

TEST_F(GateSelfTest, PassesAProgramThatDoesAsItIsTold) {
  const Finished tested = self_test({"--gates", "20", "--trial-gates", "5"});
  EXPECT_EQ(tested.exit_code, 0) << tested.out << tested.err;
  EXPECT_EQ(tested.out.find("self-test of the gate: " + program + " (stepgate "), 0U);
  for (const char* line :
       {"\n  identical  +[-+]0\\.\\d\\d %     20       0          20          0 ",
        "\n  1 % slower  +[-+]\\d\\.\\d\\d %      5       0 ",
        "\n  5 % slower  +\\+[45]\\.\\d\\d %      5       5           0          0 ",
        "\n  5 % faster  +-[45]\\.\\d\\d %      5       0           5          0 ",
        "\n  one more wait  +", "\ngates of identical programs differ by 0\\.",
        "\nSIMULATED, nothing was measured: small/fix passes: identical programs block 0 of 20 "
        "gates, a rate below 14 % with 95 % confidence; slowdowns of 5 % and more are found\n$"})
    EXPECT_TRUE(std::regex_search(tested.out, std::regex(line))) << line << '\n' << tested.out;
  EXPECT_FALSE(contains(tested.out, "small/baseline"));
}

TEST_F(GateSelfTest, FailsAProgramThatDoesNotCarryOutWhatIsInjected) {
  base_script(
      "if [ \"$3\" = worker ]; then\n  n=$#\n  while [ $n -gt 0 ]; do n=$((n-1))\n"
      "    if [ \"$1\" = --injected ]; then shift 2; n=$((n-1)); else set -- \"$@\" \"$1\"; shift; "
      "fi\n  done\nfi");
  const Finished tested = self_test({"--base", "./base", "--gates", "1", "--trial-gates", "2"});
  EXPECT_EQ(tested.exit_code, 1) << tested.out << tested.err;
  EXPECT_TRUE(std::regex_search(
      tested.out,
      std::regex("small/fix fails: no power: 5 % slower \\(seen [-+]0\\.\\d\\d %\\) ends "
                 "as not slower in 2 of 2 gates, a rate above 22 % with 95 % "
                 "confidence, where 5 % is promised; see that BASE ")))
      << tested.out;
}

TEST_F(GateSelfTest, IsUndecidedOfFewGates) {
  const Finished few = self_test({"--gates", "1", "--trial-gates", "1"});
  EXPECT_EQ(few.exit_code, 77) << few.out << few.err;
  EXPECT_TRUE(contains(few.out, "small/fix undecided: no power is shown: 5 % slower (seen "))
      << few.out;
  EXPECT_TRUE(contains(few.out,
                       " in 1 of 1 gates, a rate above 5 % with 95 % confidence; say more "
                       "--trial-gates\n"))
      << few.out;
}

TEST_F(GateSelfTest, StartsNoGateAtAMarginThatNoTrialIsBeyond) {
  const Finished wide = self_test({"--margin", "5%"});
  EXPECT_EQ(wide.exit_code, 77) << wide.err;
  EXPECT_FALSE(contains(wide.out, "identical")) << wide.out;
  EXPECT_TRUE(contains(wide.out,
                       "small/fix undecided: no power can be shown: no trial is slower by "
                       "more than the margin, 5 %; narrow it\n"))
      << wide.out;
  // A variant's own margin counts as in a gate.
  EXPECT_EQ(self_test({"--set", "gate.margin=6%"}).exit_code, 77);
}

TEST_F(GateSelfTest, NamesTheWorkerThatDiesAndLeavesTheTrialsThatHadEnded) {
  base_script("case \"$*\" in *--injected*) echo out of coffee >&2; exit 7;; esac");
  const Finished died = self_test({"--base", "./base", "--gates", "1", "--trial-gates", "1"});
  EXPECT_EQ(died.exit_code, 3) << died.out;
  EXPECT_TRUE(contains(died.err, "a worker failed: ")) << died.err;
  EXPECT_TRUE(contains(died.err, "out of coffee")) << died.err;
  EXPECT_TRUE(contains(died.out, "\n  identical  ")) << died.out;
  EXPECT_FALSE(contains(died.out, "passes")) << died.out;
}

TEST_F(GateSelfTest, PrintsWhatItHasWhenItIsInterrupted) {
  for (const int signal : {SIGINT, SIGTERM}) {
    ChildProcess tested(program, words({"--gates", "1", "--trial-gates", "1000"}), place());
    ASSERT_TRUE(tested.says("\n  identical  ", std::chrono::seconds(100)));
    tested.send(signal);
    EXPECT_TRUE(tested.ends(std::chrono::seconds(2)));
    const Finished ended = tested.wait();
    EXPECT_EQ(ended.exit_code, 128 + signal) << ended.out;
    EXPECT_EQ(ended.err, "interrupted: the self-test has not ended; nothing was written\n");
    EXPECT_FALSE(contains(ended.out, "passes")) << ended.out;
  }
}

TEST_F(GateSelfTest, RefusesBeforeItStartsAnything) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& why) {
    const Finished run = self_test(more);
    EXPECT_EQ(run.exit_code, 2) << why << run.out;
    EXPECT_TRUE(contains(run.err, why)) << run.err;
    EXPECT_FALSE(contains(run.out, "self-test of")) << run.out;
  };
  for (const auto& [device, why] :
       {std::pair{"reference", "a gate has no times to compare on a device without time; say "},
        {"simulated:nobody", "there is no device profile 'nobody'"},
        {"simulated:round-numbers", "2 pairs of launches can never decide 1 workload: "}}) {
    const Finished run =
        stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "gate", "--self-test",
                  "small.toml", "--device", device, "--pairs", "2"});
    EXPECT_EQ(run.exit_code, 2) << device;
    EXPECT_TRUE(contains(run.err, why)) << run.err;
    EXPECT_EQ(run.out, "") << device;
  }
  refused({"--base", "./nobody"}, "--base './nobody' is no program that can be started");
  refused({"--workload", "small/fx"}, "no workload is named 'small/fx'");
  for (const std::vector<std::string>& other : std::vector<std::vector<std::string>>{
           {"--head", program}, {"--json", "g.json"}, {"--soak"}, {"--ledger", "e"}})
    refused(other, other.front());
  EXPECT_FALSE(exists("g.json"));
  const Finished alone = stepgate({"gate", "small.toml", "--trial-gates", "3"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_TRUE(contains(alone.err, "--self-test")) << alone.err;
  write("planned.toml",
        "claim = \"by its plan\"\ntags = [\"no_gpu\"]\n[variant.fix]\n"
        "[expect]\nline = \"fix.host_waits_per_step == 0\"\n");
  const Finished planned =
      stepgate({"gate", "--self-test", "planned.toml", "--device", "simulated"});
  EXPECT_EQ(planned.exit_code, 2) << planned.out;
  EXPECT_TRUE(contains(planned.err, "no step of these scenarios is timed")) << planned.err;
}

TEST_F(GateSelfTest, GatesNothingThatIsSimulatedUnasked) {
  const Finished unasked = stepgate({"gate", "--self-test", "small.toml"});
  EXPECT_EQ(unasked.exit_code, 4) << unasked.out;
  EXPECT_TRUE(contains(unasked.err, "not gated: there is no GPU here: ")) << unasked.err;
}

}  // namespace
}  // namespace stepgate
