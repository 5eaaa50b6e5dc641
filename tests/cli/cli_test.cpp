// SPDX-License-Identifier: MIT
// The built program from outside: exit code, standard output and standard error of every verb and
// every way to call it wrongly. cli_run_test.cpp tests what a run decides.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <regex>

#include "tests/cli/command_line.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

const std::filesystem::path golden_folder =
    std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests" / "golden";

using Refused = CommandLine;

TEST_F(CommandLine, PrintsItsHelp) {
  const Finished help = stepgate({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* verb :
       {"list", "check", "plan", "fields", "new", "devices", "run", "duel", "worker"}) {
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

TEST_F(CommandLine, ListsTheScenariosOfAFolderInOrder) {
  write("b.toml", holding);
  write("a.toml", refuted);
  write("notes.txt", "not a scenario");
  const Finished listed = stepgate({"list", "."});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  const std::string rest =
      "  []\n  half the kernels take half the time\n"
      "  model    * baseline  spin, hidden 1024, kernels 20, kernel_us 20, fp32\n"
      "             fix       spin, hidden 1024, kernels 10, kernel_us 20, fp32\n"
      "  batch      size 64\n  transfer   pinned\n  sync       none\n  alloc      static\n"
      "  variants: baseline, fix\n  expects:  line\n";
  EXPECT_EQ(listed.out, "a" + rest + "b" + rest);
}

TEST_F(CommandLine, ListsForProgramsAlsoWhatCannotBeRead) {
  write("s/bad.toml", "claim = ");
  write("s/good.toml", "tags = [\n  'nightly' ]\n" + holding);
  const Finished listed = stepgate({"list", "--json", "s"});
  EXPECT_EQ(listed.exit_code, 2);
  EXPECT_TRUE(contains(listed.err, "s/bad.toml:1:")) << listed.err;
  EXPECT_EQ(listed.out.find("{\"name\":\"bad\",\"file\":\"s/bad.toml\",\"error\":\"s/bad.toml:1:"),
            0U)
      << listed.out;
  EXPECT_TRUE(contains(
      listed.out,
      "\n{\"name\":\"good\",\"file\":\"s/"
      "good.toml\",\"tags\":[\"nightly\"],\"steps\":[{\"variant\":"
      "\"baseline\",\"model\":\"spin, hidden 1024, kernels 20, kernel_us 20, "
      "fp32\",\"batch\":\"size 64\","
      "\"transfer\":\"pinned\",\"sync\":\"none\",\"alloc\":\"static\",\"other\":\"\"},{"
      "\"variant\":\"fix\","
      "\"model\":\"spin, hidden 1024, kernels 10, kernel_us 20, fp32\",\"batch\":\"size 64\","
      "\"transfer\":\"pinned\",\"sync\":\"none\",\"alloc\":\"static\",\"other\":\"\"}],\"lines\":"
      "[{\"name\":"
      "\"line\",\"line\":10,\"text\":\"fix.samples_per_s >= 1.5 * baseline.samples_per_s\"}]}\n"))
      << listed.out;
}

TEST_F(CommandLine, TakesTheFolderScenariosWhenNoneIsNamed) {
  write("scenarios/a.toml", holding);
  const Finished checked = stepgate({"check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(
      checked.out,
      "scenarios/a.toml: 2 variants, 1 sentence\n"
      "warning: scenarios/a.toml:8:9: [expect] has no exact sentence: a timed one says how "
      "much, not why; add a count, such as fix.launches_per_step < baseline.launches_per_step\n");
}

TEST_F(CommandLine, ShowsThePlanOfASharedScenario) {
  const std::string file = STEPGATE_SOURCE_DIR "/scenarios/everything_wrong.toml";
  const Finished plan = stepgate({"plan", file, "--variant", "fix"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  expect_golden(golden_folder / "plan_everything_wrong_fix.txt", plan.out);
}

TEST_F(CommandLine, ShowsTheMemoryOfAStepWithinAScreen) {
  const std::string file = STEPGATE_SOURCE_DIR "/scenarios/everything_wrong.toml";
  const Finished memory = stepgate({"plan", "--memory", file, "--variant", "fix"});
  EXPECT_EQ(memory.exit_code, 0) << memory.err;
  expect_golden(golden_folder / "memory_everything_wrong_fix.txt", memory.out);
  const Finished deep =
      stepgate({"plan", "--memory", file, "--set", "model.layers=64", "--variant", "baseline"});
  EXPECT_EQ(deep.exit_code, 0) << deep.err;
  EXPECT_LE(std::count(deep.out.begin(), deep.out.end(), '\n'), 40) << deep.out;
}

TEST_F(CommandLine, DrawsTheMemoryOfEveryScenarioIntoAFileOfItsOwn) {
  write("a.toml", holding);
  write("b.toml", refuted);
  const Finished one = stepgate({"plan", "--memory", "a.toml", "--picture", "out/m.svg"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_TRUE(exists("out/m.svg"));
  const Finished two = stepgate({"plan", "--memory", "a.toml", "b.toml", "--picture", "two/m.svg"});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_TRUE(exists("two/m.a.svg"));
  EXPECT_TRUE(exists("two/m.b.svg"));
  EXPECT_FALSE(exists("two/m.svg"));
}

TEST_F(CommandLine, PlansEveryVariantWithWhatTheCallerSets) {
  write("a.toml", holding);
  const Finished plans = stepgate({"plan", "a.toml", "--set", "batch.size=7"});
  EXPECT_EQ(plans.exit_code, 0) << plans.err;
  EXPECT_TRUE(contains(plans.out, "a, variant baseline: 7 samples a step")) << plans.out;
  EXPECT_TRUE(contains(plans.out, "a, variant fix: 7 samples a step")) << plans.out;
}

TEST_F(CommandLine, TakesTheBaselinesBeforeAVerbOrBehindIt) {
  write("a.toml", holding);
  const std::string folder = STEPGATE_SOURCE_DIR "/tests/baselines";
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"--baselines", folder, "run", "a.toml"},
        {"run", "a.toml", "--baselines", folder}}) {
    std::vector<std::string> words = call;
    words.insert(words.end(), {"--device", "simulated:round-numbers"});
    EXPECT_EQ(stepgate(words).exit_code, 0);
  }
}

TEST_F(CommandLine, ShowsTheFieldsThatMatchAFilter) {
  const Finished all = stepgate({"fields"});
  const Finished some = stepgate({"fields", "sync"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(some.exit_code, 0);
  EXPECT_TRUE(contains(all.out, "model.hidden"));
  EXPECT_TRUE(contains(some.out, "sync.where")) << some.out;
  EXPECT_FALSE(contains(some.out, "model.hidden")) << some.out;
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

// Minutes of silence look like a hang. A cmake of our own stands for the real one.
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

// An output that nobody could read is no answer.
TEST_F(CommandLine, FailsWhereItsOutputCannotBeWritten) {
  write("a.toml", holding);
  const std::string program = STEPGATE_PROGRAM;
  for (const std::string& call :
       {std::string("list a.toml"), std::string("check a.toml"), std::string("plan a.toml"),
        std::string("fields"), std::string("devices"), std::string("--help"),
        std::string("--version"), std::string("run a.toml --device simulated"),
        "duel " + program + " " + program + " a.toml --device simulated"}) {
    const Finished full =
        ChildProcess("/bin/sh", {"-c", program + " " + call + " >/dev/full"}, place()).wait();
    EXPECT_EQ(full.exit_code, 2) << call;
    EXPECT_TRUE(contains(full.err, "standard output cannot be written")) << full.err;
  }
  // A graver fault is told all the same.
  write("r.toml", refuted);
  EXPECT_EQ(ChildProcess("/bin/sh", {"-c", program + " run r.toml --device simulated >/dev/full"},
                         place())
                .wait()
                .exit_code,
            1);
}

TEST_F(Refused, ReportsEveryFaultOfEveryFileAtOnceAndPrintsNothingElse) {
  write("good.toml", holding);
  write("bad.toml", "clam = \"x\"\nmodel = { kind = \"spn\" }\n[variant.a]\n[expect]\nl = \"b.x\"");
  write("worse.toml", "claim = ");
  for (const char* verb : {"check", "plan", "run"}) {
    const Finished refusal = stepgate({verb, "good.toml", "bad.toml", "worse.toml"});
    EXPECT_EQ(refusal.exit_code, 2) << verb;
    EXPECT_EQ(refusal.out, "") << verb;
    for (const char* fault : {"bad.toml:1:1: unknown key 'clam'; did you mean 'claim'?",
                              "bad.toml:2:18: 'model.kind' has no choice 'spn'", "worse.toml:1:"}) {
      EXPECT_TRUE(contains(refusal.err, fault)) << verb << ": " << refusal.err;
    }
    EXPECT_FALSE(contains(refusal.err, "good.toml")) << refusal.err;
  }
}

// A wrong call, and words of the answer.
struct WrongCall {
  const char* name;
  std::vector<std::string> arguments;
  std::string says;
};

// The name by which ctest knows the case.
void PrintTo(const WrongCall& call, std::ostream* out) {
  *out << call.name;
}

class WrongCalls : public CommandLine, public testing::WithParamInterface<WrongCall> {};

TEST_P(WrongCalls, EndWithCodeTwoAndOneAnswer) {
  write("a.toml", holding);
  write("scenarios/all_waits.toml", holding);
  std::filesystem::create_directory(place() / "empty");
  const Finished refusal = stepgate(GetParam().arguments);
  EXPECT_EQ(refusal.exit_code, 2);
  EXPECT_EQ(refusal.out, "");
  EXPECT_TRUE(contains(refusal.err, GetParam().says)) << refusal.err;
}

const std::vector<WrongCall> wrong_calls{
    {"no_verb", {}, "no verb; `stepgate --help` lists them\n"},
    {"unknown_verb", {"chek", "a.toml"}, "\ndid you mean 'check'?\n"},
    {"unknown_verb_behind_an_option",
     {"--baselines", "plan", "rnu", "a.toml"},
     "\ndid you mean 'run'?\n"},
    {"unknown_option", {"run", "a.toml", "--bugdet", "3"}, "\ndid you mean '--budget'?\n"},
    {"unknown_option_with_a_value",
     {"run", "a.toml", "--undecidd=skip"},
     "\ndid you mean '--undecided'?\n"},
    {"name_without_its_folder",
     {"run", "all_waits"},
     "all_waits: no such file; did you mean 'scenarios/all_waits.toml'?\n"},
    {"mistyped_name",
     {"check", "scenarios/al_waits.toml"},
     "scenarios/al_waits.toml: no such file; did you mean 'scenarios/all_waits.toml'?\n"},
    {"unknown_field",
     {"fields", "hiden"},
     "no field and no metric has 'hiden' in its name; `stepgate fields`"},
    {"no_file", {"run", "none.toml"}, "none.toml: no such file; check the path\n"},
    {"no_folder", {"run", "nowhere"}, "nowhere: no such file; check the path\n"},
    {"empty_folder", {"run", "empty"}, "no scenario files; name a file or a folder with"},
    {"unknown_variant", {"plan", "a.toml", "--variant", "fxi"}, "no variant is named 'fxi'"},
    {"picture_of_no_memory",
     {"plan", "a.toml", "--picture", "p.svg"},
     "--picture requires --memory"},
    {"picture_is_a_folder",
     {"plan", "--memory", "a.toml", "--picture", "empty"},
     "empty: cannot be written: Is a"},
    {"picture_below_a_file",
     {"plan", "--memory", "a.toml", "--picture", "a.toml/p.svg"},
     "a.toml/p.svg: cannot be written"},
    {"picture_without_a_name", {"plan", "--memory", "a.toml", "--picture"}, "--picture"},
    {"memory_of_no_variant",
     {"plan", "--memory", "a.toml", "--variant", "fxi"},
     "no variant is named 'fxi'"},
    {"unknown_knob", {"plan", "a.toml", "--set", "batch.sise=2"}, "did you mean 'batch.size'?"},
    {"unknown_device", {"run", "a.toml", "--device", "tpu"}, "there is no device 'tpu'; say cuda"},
    {"unknown_profile",
     {"run", "a.toml", "--device", "simulated:h2000"},
     "there is no device profile 'h2000'"},
    {"no_baselines", {"--baselines", "none", "run", "a.toml", "--device", "simulated"}, "none"},
    {"unknown_policy",
     {"run", "a.toml", "--undecided", "maybe"},
     "there is no --undecided 'maybe'; say skip, fail or pass\n"},
    {"policy_by_number", {"run", "a.toml", "--undecided", "2"}, "there is no --undecided '2'"},
    {"no_budget", {"run", "a.toml", "--budget", "0"}, "above 0, not '0'"},
    {"endless_budget", {"run", "a.toml", "--budget", "inf"}, "above 0, not 'inf'"},
    {"seed_in_words", {"run", "a.toml", "--seed", "seven"}, "seven"},
    {"json_is_a_folder", {"run", "a.toml", "--json", "empty"}, "empty: cannot be written: Is a"},
    {"json_below_a_file", {"run", "a.toml", "--json", "a.toml/x"}, "a.toml/x: cannot be written"},
};

INSTANTIATE_TEST_SUITE_P(Calls, WrongCalls, testing::ValuesIn(wrong_calls),
                         [](const auto& call) { return call.param.name; });

}  // namespace
}  // namespace stepgate
