// SPDX-License-Identifier: MIT
// `stepgate attach` on programs whose CUDA calls are faked, so that every count is known by
// construction and no GPU is needed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/process/command.h"
#include "tests/cli/command_line.h"
#include "tests/cli/validate_json.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class Attach : public CommandLine {
 protected:
  // Options of attach, then the arguments of the fake program.
  Finished attach(const Words& options, const Words& program) const {
    const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
    return stepgate(joined(joined({"attach", "--json", "r.json"}, options),
                           joined({"--", FAKE_PROGRAM}, program)));
  }
  Json result() const { return Json::parse(std::ifstream(place() / "r.json")); }
  // The counts of the only process that has some.
  Json counts() const {
    const Json line = result();
    Json found;
    for (const Json& process : line["program"]) {
      if (!process["counts"].is_null()) found = process;
    }
    return found;
  }
  double count(const std::string& name) const { return counts()["counts"][name]; }
};

const Words everything{"launch",         "launch",        "launch.driver", "launch.nvcc13",
                       "launch.host",    "copy.pageable", "copy.pinned",   "copy.default",
                       "copy.on_device", "copy.blocking", "copy.driver",   "copy.2d",
                       "copy.3d",        "wait",          "wait.device",   "wait.event_on_device",
                       "poll",           "poll",          "malloc",        "malloc.fails",
                       "free",           "pin",           "graph",         "fill",
                       "launch.nccl",    "launch.nccl"};

TEST_F(Attach, CountsEveryCallOnceAndKnowsWhichCopiesArePageable) {
  const Finished run = attach({}, joined({"40", "before=graph"}, everything));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Json all = counts()["counts"];
  const Json expected{{"waits", 2},
                      {"device_waits", 1},
                      {"blocking_copies", 4},  // pageable, 2D, 3D, cudaMemcpy
                      {"blocking_frees", 2},
                      {"pageable_copies", 3},
                      {"copies_to_device", 4},
                      {"copies_to_host", 3},
                      {"copies", 10},  // two of them in the graph
                      {"copy_bytes", 4096 + 100 + 7 + 8 + 16 + 4 + 320 + 120},
                      {"device_allocs", 1},
                      {"device_frees", 1},
                      {"pinned_allocs", 1},
                      {"launches", 7},
                      {"graph_launches", 1},
                      {"graph_kernels", 4},
                      {"fills", 1},
                      {"polls", 2},
                      {"collectives", 2},
                      {"unknown_copies", 0}};
  EXPECT_EQ(all, expected);
  EXPECT_EQ(counts()["first_step"], 11);
  EXPECT_EQ(counts()["steps"], 20);
}

TEST_F(Attach, AnEndOfAnyKindLosesNoCount) {
  for (const auto& [end, code] : {std::pair{"end=", 0},
                                  {"end=_exit", 0},
                                  {"end=kill", 137},
                                  {"end=terminate", 143},
                                  {"end=fails", 5}}) {
    const Finished run = attach({}, joined({"40", end, "before=graph"}, everything));
    EXPECT_EQ(run.exit_code, code) << end << run.err;
    EXPECT_EQ(count("launches"), 7) << end;
    EXPECT_EQ(count("pageable_copies"), 3) << end;
  }
}

TEST_F(Attach, ForksExecsAndThreadsOfLoadersChangeNoCount) {
  for (const std::string before : {"fork", "exec", "thread"}) {
    const Finished run = attach({}, {"40", "before=" + before, "launch", "wait"});
    EXPECT_EQ(run.exit_code, 0) << before << run.err;
    EXPECT_EQ(count("launches"), 1) << before;
    EXPECT_EQ(count("waits"), 1) << before;
    EXPECT_EQ(count("pinned_allocs"), 0) << before;
  }
}

TEST_F(Attach, ALibraryThatIsLoadedAgainLeavesNoSecondFile) {
  EXPECT_EQ(attach({}, {"40", "before=again", "launch", "wait"}).exit_code, 0);
  EXPECT_EQ(result()["program"].size(), 1U);
  EXPECT_EQ(count("waits"), 1);
}

TEST_F(Attach, StepsAreEndsOfTheFirstOptimizerRangesOrWhatTheUserNames) {
  for (const std::string mark : {"optimizer", "two_optimizers", "range", "program"}) {
    EXPECT_EQ(attach({}, {"40", "mark=" + mark, "launch", "wait"}).exit_code, 0);
    EXPECT_EQ(count("waits"), 1) << mark;
    EXPECT_EQ(count("launches"), 1) << mark;
  }
  EXPECT_EQ(attach({"--step-kernel", "kern"}, {"40", "mark=none", "launch", "wait"}).exit_code, 0);
  EXPECT_EQ(count("waits"), 1);
  EXPECT_EQ(
      attach({"--step-call", "cudaGraphLaunch"}, {"40", "mark=none", "graph", "wait"}).exit_code,
      0);
  EXPECT_EQ(count("waits"), 1);
  const Finished none =
      attach({"--expect", "host_waits_per_step <= 1"}, {"40", "mark=none", "launch"});
  EXPECT_EQ(none.exit_code, 77);
  EXPECT_NE(none.out.find("it has no steps that are known"), std::string::npos) << none.out;
}

TEST_F(Attach, TheWindowEndsWithTheStepsThatAreCountedAndNotWithOthers) {
  // Twice as many ends of the optimizer as ranges that the user named.
  EXPECT_EQ(
      attach({"--step-range", "epoch"}, {"100", "mark=optimizer_and_epochs", "launch", "wait"})
          .exit_code,
      0);
  EXPECT_EQ(counts()["first_step"], 11);
  EXPECT_EQ(counts()["steps"], 20);
  EXPECT_EQ(count("waits"), 2);
  // Four ranges "step" to one end of the optimizer, which the user did not name either.
  EXPECT_EQ(attach({}, {"160", "mark=accumulating", "launch", "wait"}).exit_code, 0);
  EXPECT_EQ(counts()["first_step"], 11);
  EXPECT_EQ(counts()["steps"], 20);
  EXPECT_EQ(count("waits"), 4);
  // A window of an attach around this one is not that of the program.
  const EnvironmentVariable window("STEPGATE_ATTACH_WINDOW", "1+2");
  EXPECT_EQ(attach({"--step-kernel", "kern"}, {"40", "launch", "wait"}).exit_code, 0);
  EXPECT_EQ(counts()["steps"], 20);
}

TEST_F(Attach, StepsThatTheUserSkipsAreNeverCounted) {
  const Finished none =
      attach({"--skip-steps", "39", "--expect", "launches_per_step == 1"}, {"40", "launch"});
  EXPECT_EQ(none.exit_code, 77) << none.out;
  EXPECT_NE(none.out.find("40 ends of optimizer.step, and 41 are needed"), std::string::npos)
      << none.out;
  EXPECT_EQ(attach({"--skip-steps", "35"}, {"40", "launch"}).exit_code, 0);
  EXPECT_EQ(counts()["first_step"], 36);
  EXPECT_EQ(counts()["steps"], 4);
}

TEST_F(Attach, ACallOfEveryTenthStepIsCountedAndTold) {
  const Finished run = attach({}, {"40", "launch", "wait@10"});
  EXPECT_DOUBLE_EQ(count("waits"), 0.1);
  EXPECT_NE(run.out.find("(every 10th)"), std::string::npos) << run.out;
}

TEST_F(Attach, AssertionsDecideTheExitCode) {
  const Words program{"40", "launch", "wait", "copy.pageable"};
  EXPECT_EQ(attach({"--expect", "host_waits_per_step <= 2"}, program).exit_code, 0);
  const Finished fails = attach({"--expect", "host_waits_per_step <= 1.9"}, program);
  EXPECT_EQ(fails.exit_code, 1);
  EXPECT_NE(fails.out.find("fails"), std::string::npos) << fails.out;
  EXPECT_EQ(
      attach({"--expect", "launches_per_step == 1", "--expect", "pageable_copies_per_step == 0"},
             program)
          .exit_code,
      1);
  // A program that failed is no evidence, whatever was counted.
  EXPECT_EQ(
      attach({"--expect", "host_waits_per_step <= 2"}, joined(program, {"end=fails"})).exit_code,
      3);
  EXPECT_EQ(
      attach({"--expect", "host_waits_per_step <= 1"}, joined(program, {"end=kill"})).exit_code, 1);
  const Finished unknown = attach({"--expect", "step_ms_mean <= 1 ms"}, program);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("attach does not count step_ms_mean"), std::string::npos)
      << unknown.err;
  EXPECT_EQ(attach({"--expect", "host_waits <= 1"}, program).exit_code, 2);
}

TEST_F(Attach, OptionsBehindTheProgramAreItsOwnAndAMistypedAssertionHasAHint) {
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  // Without the dashes too: --steps is no option of attach here.
  const Finished own = stepgate({"attach", "--quiet", FAKE_PROGRAM, "40", "launch", "--steps=3"});
  EXPECT_EQ(own.exit_code, 0) << own.err;
  EXPECT_NE(own.out.find("20 counted"), std::string::npos) << own.out;
  EXPECT_EQ(stepgate({"attach"}).exit_code, 2);
  EXPECT_EQ(stepgate({"attach", "--"}).exit_code, 2);
  const Finished typo = attach({"--expect", "host_wait_per_step <= 1"}, {"40", "launch"});
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_NE(typo.err.find("host_waits_per_step"), std::string::npos) << typo.err;
  const Finished variant = attach({"--expect", "fix.host_waits_per_step <= 1"}, {"40", "launch"});
  EXPECT_EQ(variant.exit_code, 2);
  EXPECT_NE(variant.err.find("a program has no variants"), std::string::npos) << variant.err;
  const Finished failed =
      attach({"--expect", "launches_per_step == 1"}, {"40", "launch", "end=fails"});
  EXPECT_NE(failed.out.find("the program failed"), std::string::npos) << failed.out;
}

// A shell that runs one program as each rank.
TEST_F(Attach, EveryProcessMustPassAndOneThatHidesItsCallsLeavesNoPass) {
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  const auto ranks = [&](const std::string& expect, const std::string& first,
                         const std::string& second) {
    const std::string script = "RANK=0 " + first + "; RANK=1 " + second;
    return stepgate({"attach", "--quiet", "--expect", expect, "--", "sh", "-c", script});
  };
  const std::string program = FAKE_PROGRAM;
  const std::string idle = program + " 40 launch", busy = program + " 40 launch wait wait";
  EXPECT_EQ(ranks("host_waits_per_step <= 0", idle, busy).exit_code, 1);
  EXPECT_EQ(ranks("host_waits_per_step >= 2", idle, busy).exit_code, 1);
  EXPECT_EQ(ranks("host_waits_per_step <= 2", idle, busy).exit_code, 0);
  const std::string hiding = "STEPGATE_CUPTI=/nowhere ";
  const Finished hidden = ranks("host_waits_per_step <= 0", idle, hiding + busy);
  EXPECT_EQ(hidden.exit_code, 77) << hidden.out;
  EXPECT_NE(hidden.out.find("was not counted: CUPTI was not found"), std::string::npos)
      << hidden.out;
  EXPECT_EQ(ranks("host_waits_per_step <= 0", busy, hiding + idle).exit_code, 1);
  EXPECT_EQ(
      ranks("pageable_copies_per_step <= 0", idle, program + " 40 launch copy.unknown").exit_code,
      77);
  EXPECT_EQ(attach({"--accept", "c.toml"}, {"40", "launch", "copy.pageable"}).exit_code, 0);
  EXPECT_EQ(attach({"--against", "c.toml"}, {"40", "launch", "copy.unknown"}).exit_code, 1);
}

TEST_F(Attach, AProgramsNameIsNoCommandOfACiSystem) {
  const std::string name = "::error file=x::p.py";
  write(name, "#!/bin/sh\nexit 3\n");
  std::filesystem::permissions(place() / name, std::filesystem::perms::owner_all);
  const Finished run =
      stepgate({"attach", "--expect", "host_waits_per_step <= 0", "--", "./" + name});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(("\n" + run.out).find("\n::"), std::string::npos) << run.out;
}

TEST_F(Attach, ACopyOfUnknownEndsLeavesPageableCopiesWithoutANumber) {
  EXPECT_EQ(attach({"--expect", "pageable_copies_per_step == 0"}, {"40", "launch", "copy.unknown"})
                .exit_code,
            77);
  EXPECT_EQ(count("unknown_copies"), 1);
}

TEST_F(Attach, ARatchetRefusesMoreAndNotesLess) {
  EXPECT_EQ(attach({"--accept", "c.toml"}, {"40", "launch", "wait"}).exit_code, 0);
  EXPECT_EQ(attach({"--against", "c.toml"}, {"40", "launch", "wait"}).exit_code, 0);
  const Finished more =
      attach({"--against", "c.toml", "--junit", "j.xml"}, {"40", "launch", "wait", "wait"});
  EXPECT_EQ(more.exit_code, 1) << more.out;
  EXPECT_NE(more.out.find("1 -> 2 a step"), std::string::npos) << more.out;
  EXPECT_NE(text_of(place() / "j.xml").find("<failure"), std::string::npos);
  const Finished rare = attach({"--against", "c.toml"}, {"40", "launch", "wait", "wait@10"});
  EXPECT_EQ(rare.exit_code, 1) << rare.out;
  const Finished fewer = attach({"--against", "c.toml"}, {"40", "launch"});
  EXPECT_EQ(fewer.exit_code, 0) << fewer.out;
  EXPECT_NE(fewer.out.find("waits 1 -> 0: better than"), std::string::npos) << fewer.out;
  for (const std::string call : {"copy.pageable", "malloc", "free", "pin", "graph", "wait.device"})
    EXPECT_EQ(attach({"--against", "c.toml"}, {"40", "launch", "wait", call}).exit_code, 1) << call;
}

TEST_F(Attach, NothingIsAcceptedBesideAnAssertionThatDoesNotPass) {
  write("c.toml", "old");
  const Words accept{"--accept", "c.toml"};
  const Finished fails =
      attach(joined(accept, {"--expect", "host_waits_per_step == 0"}), {"40", "launch", "wait"});
  EXPECT_EQ(fails.exit_code, 1) << fails.out;
  EXPECT_NE(fails.err.find("nothing is accepted: not every assertion passes"), std::string::npos)
      << fails.err;
  EXPECT_EQ(attach(joined(accept, {"--expect", "pageable_copies_per_step == 0"}),
                   {"40", "launch", "copy.unknown"})
                .exit_code,
            77);
  EXPECT_EQ(attach(accept, {"40", "launch", "end=fails"}).exit_code, 2);
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  const std::string program = FAKE_PROGRAM;
  // A process of which nothing is known.
  EXPECT_EQ(
      stepgate(joined(joined({"attach"}, accept),
                      {"--", "sh", "-c",
                       program + " 40 launch; STEPGATE_CUPTI=/nowhere " + program + " 40 launch"}))
          .exit_code,
      2);
  EXPECT_EQ(text_of(place() / "c.toml"), "old");
  EXPECT_EQ(
      attach(joined(accept, {"--expect", "host_waits_per_step == 1"}), {"40", "launch", "wait"})
          .exit_code,
      0);
  EXPECT_NE(text_of(place() / "c.toml"), "old");
}

// Whatever cannot be written or accepted, an assertion that fails is not hidden.
TEST_F(Attach, OutputsThatCannotBeWrittenHideNoOutcome) {
  const Words program{"40", "launch", "wait"};
  const std::string expect = "host_waits_per_step == 0";
  for (const char* output : {"--junit", "--summary", "--report"}) {
    EXPECT_EQ(attach({"--expect", expect, output, "/dev/full"}, program).exit_code, 1) << output;
    EXPECT_EQ(
        attach({"--expect", "host_waits_per_step == 1", output, "/dev/full"}, program).exit_code, 2)
        << output;
  }
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  const auto to_full_disk = [&](const Words& words) {
    return stepgate(joined(joined({"attach"}, words), joined({"--", FAKE_PROGRAM}, program)))
        .exit_code;
  };
  EXPECT_EQ(to_full_disk({"--expect", expect, "--json", "/dev/full"}), 1);
  EXPECT_EQ(to_full_disk({"--json", "/dev/full"}), 2);
  EXPECT_EQ(to_full_disk({"--accept", "/dev/full"}), 2);
  EXPECT_EQ(
      attach({"--expect", expect, "--accept", "c.toml"}, joined(program, {"end=kill"})).exit_code,
      1);
}

TEST_F(Attach, OutputsAreNotWrittenOverTheProgramOrWhatIsAccepted) {
  ASSERT_EQ(attach({"--accept", "c.toml"}, {"40", "launch"}).exit_code, 0);
  write("train.sh", "exit 0\n");
  const std::string accepted = text_of(place() / "c.toml");
  for (const char* file : {"c.toml", "train.sh"}) {
    const Finished run =
        stepgate({"attach", "--against", "c.toml", "--json", file, "--", "sh", "train.sh"});
    EXPECT_EQ(run.exit_code, 2) << file;
    EXPECT_NE(run.err.find(" would be written over what is read, "), std::string::npos) << run.err;
  }
  EXPECT_EQ(text_of(place() / "c.toml"), accepted);
  EXPECT_EQ(text_of(place() / "train.sh"), "exit 0\n");
}

TEST_F(Attach, LaunchesAreComparedWithTheSameVersionsAlone) {
  EXPECT_EQ(attach({"--accept", "c.toml"}, {"40", "launch"}).exit_code, 0);
  EXPECT_EQ(attach({"--against", "c.toml"}, {"40", "launch", "launch"}).exit_code, 1);
  std::string text = text_of(place() / "c.toml");
  const std::size_t at = text.find("driver = \"");
  ASSERT_NE(at, std::string::npos) << text;
  text.insert(at + 10, "9");
  write("c.toml", text);
  const Finished other = attach({"--against", "c.toml"}, {"40", "launch", "launch"});
  EXPECT_EQ(other.exit_code, 0) << other.out;
  EXPECT_NE(other.out.find("not compared: driver 9"), std::string::npos) << other.out;
  EXPECT_EQ(attach({"--against", "c.toml"}, {"40", "launch", "wait"}).exit_code, 1);
}

TEST_F(Attach, AFileOfAcceptedCountsWithAFaultIsRefusedAtItsLine) {
  EXPECT_EQ(attach({"--accept", "c.toml"}, {"40", "launch"}).exit_code, 0);
  const std::string good = text_of(place() / "c.toml");
  for (const auto& [from, to] : {std::pair{"waits = 0", "waits = -1"},
                                 {"waits = 0", "weights = 0"},
                                 {"format = 1", "format = 2"},
                                 {"launches = 1", "launches = \"1\""},
                                 {"[versions]", "[version]"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), std::string(from).size(), to);
    write("c.toml", bad);
    const Finished run = attach({"--against", "c.toml"}, {"40", "launch"});
    EXPECT_EQ(run.exit_code, 2) << to;
    EXPECT_NE(run.err.find("c.toml:"), std::string::npos) << run.err;
  }
}

TEST_F(Attach, WhatCannotBeCountedIsSaidAndNeverZero) {
  const Words expect{"--expect", "host_waits_per_step <= 5"};
  const Finished none = attach(expect, {"40", "before=no_cuda", "launch"});
  EXPECT_EQ(none.exit_code, 3) << none.out;
  EXPECT_NE((none.out + none.err).find("no process used CUDA"), std::string::npos);
  const Finished few = attach(expect, {"2", "launch"});
  EXPECT_EQ(few.exit_code, 77) << few.out;
  EXPECT_NE(few.out.find("2 ends of optimizer.step, and 3 are needed"), std::string::npos)
      << few.out;
  const Finished too_few = attach(joined(expect, {"--steps", "50"}), {"40", "launch"});
  EXPECT_EQ(too_few.exit_code, 77) << too_few.out;
  const Finished idle = attach(expect, {"40", "wait"});
  EXPECT_EQ(idle.exit_code, 77);
  EXPECT_NE(idle.out.find("it launched no work"), std::string::npos) << idle.out;
  {
    const EnvironmentVariable held("FAKE_CUPTI_RESULT", "39");
    const Finished run = attach(expect, {"40", "launch"});
    EXPECT_EQ(run.exit_code, 77);
    EXPECT_NE(run.out.find("CUPTI is held by another tool"), std::string::npos) << run.out;
  }
  const EnvironmentVariable cupti("STEPGATE_CUPTI", "/nowhere/libcupti.so");
  const Finished missing =
      stepgate(joined(joined({"attach"}, expect), {"--", FAKE_PROGRAM, "40", "launch"}));
  EXPECT_EQ(missing.exit_code, 77);
  EXPECT_NE(missing.out.find("CUPTI was not found"), std::string::npos) << missing.out;
}

TEST_F(Attach, AProgramThatHangsIsEndedByItsTimeoutOrAfterItsWindow) {
  const Finished timeout = attach({"--timeout", "1", "--expect", "host_waits_per_step <= 5"},
                                  {"5", "launch", "end=hangs"});
  EXPECT_EQ(timeout.exit_code, 3) << timeout.out;
  EXPECT_EQ(attach({"--timeout", "1"}, {"5", "launch", "end=hangs"}).exit_code, 3);
  const Finished stopped = attach({"--stop", "--expect", "host_waits_per_step <= 5"},
                                  {"40", "launch", "wait", "end=hangs"});
  EXPECT_EQ(stopped.exit_code, 0) << stopped.out << stopped.err;
  EXPECT_EQ(count("waits"), 1);
}

TEST_F(Attach, StoppingWaitsForEveryRankAndForNoHelper) {
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  const auto stopped = [&](const Words& options, const std::string& script) {
    return stepgate(joined(joined({"attach", "--quiet", "--stop", "--timeout", "60", "--json",
                                   "r.json", "--expect", "launches_per_step == 1"},
                                  options),
                           {"--", "sh", "-c", script}));
  };
  const std::string program = FAKE_PROGRAM, hangs = program + " 40 launch end=hangs";
  for (const Words& steps :
       {Words{}, {"--step-kernel", "kern"}, {"--step-call", "cudaGraphLaunch"}}) {
    const std::string graph = steps.size() == 2 && steps[1] != "kern"
                                  ? "exec " + program + " 40 graph end=hangs"
                                  : "exec " + hangs;
    EXPECT_EQ(stopped(steps, graph).exit_code, 0) << steps.size();
  }
  // Helpers: one without a step that stays, one that made some and ended.
  const Finished helpers = stopped(
      {}, program + " 5 mark=none launch end=hangs & " + program + " 5 launch; exec " + hangs);
  EXPECT_EQ(helpers.exit_code, 0) << helpers.out;
  // The second rank starts when the window of the first is over.
  for (const std::string size : {"WORLD_SIZE=2 ", "WORLD_SIZE=8 LOCAL_WORLD_SIZE=2 "}) {
    const Finished ranks = stopped({}, size + "RANK=0 " + hangs + " & sleep 1; exec env " + size +
                                           "RANK=1 " + hangs + " launch");
    EXPECT_EQ(ranks.exit_code, 1) << ranks.out;
    EXPECT_EQ(result()["program"].size(), 2U) << ranks.out;
  }
}

// One line of a reason, the program's own output, and its own code where nothing is asserted.
TEST_F(Attach, AProgramOfAnyKindKeepsItsOutputAndItsCode) {
  struct Kind {
    const char* reason;
    Words program;
    int code;       // without an assertion
    int expecting;  // with one
  };
  for (const auto& [reason, program, code, expecting] :
       {Kind{"no process used CUDA", {"sh", "-c", "echo own output; exit 7"}, 7, 3},
        Kind{"no process used CUDA", {FAKE_PROGRAM, "40", "before=no_cuda"}, 0, 3},
        Kind{"it has no steps that are known", {FAKE_PROGRAM, "40", "mark=none", "launch"}, 0, 77},
        Kind{"it launched no work", {FAKE_PROGRAM, "40", "wait"}, 0, 77},
        Kind{"it launched no work in steps 11 to 30",
             {FAKE_PROGRAM, "40", "launch@50", "wait"},
             0,
             77},
        Kind{"no process used CUDA", {FAKE_PROGRAM, "40", "launch", "before=other_tool"}, 0, 3},
        Kind{"it has no steps that are known",
             {FAKE_PROGRAM, "40", "mark=none", "launch", "end=kill"},
             137,
             3},
        Kind{"", {FAKE_PROGRAM, "40", "launch", "before=fork"}, 0, 0},
        Kind{"", {FAKE_PROGRAM, "40", "launch", "before=flood"}, 0, 0},
        Kind{"", {FAKE_PROGRAM, "40", "launch", "end=terminate"}, 143, 3}}) {
    const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
    const Finished plain = stepgate(joined({"attach", "--"}, program));
    EXPECT_EQ(plain.exit_code, code) << to_text(program) << plain.err;
    EXPECT_NE(plain.err.find("own output"), std::string::npos) << plain.err;
    const std::string said = "nothing was counted: ";
    const std::size_t line = plain.err.find(said);
    EXPECT_EQ(line != std::string::npos, *reason != '\0') << to_text(program) << plain.out;
    if (line != std::string::npos) {
      EXPECT_NE(plain.err.find(reason, line), std::string::npos) << plain.err.substr(line);
      EXPECT_EQ(plain.err.find('\n', line), plain.err.size() - 1) << plain.err.substr(line);
    }
    const Finished decides =
        stepgate(joined({"attach", "--expect", "host_waits_per_step <= 9", "--"}, program));
    EXPECT_EQ(decides.exit_code, expecting) << to_text(program) << decides.out;
    if (program.back() == "before=flood") {
      EXPECT_GT(plain.err.size(), std::size_t{8} << 20);
      EXPECT_LT(plain.peak_bytes, std::int64_t{512} << 20);
      EXPECT_LT(stepgate(joined({"attach", "--quiet", "--"}, program)).err.size(), 4096U);
    }
  }
}

// A profiler within the program asks CUPTI when the library has it: it is refused, and the program
// goes on.
TEST_F(Attach, AProgramThatClosedItsStandardStreamsPrintsIntoNoRecord) {
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  for (const std::string closed : {">&-", "<&- >&-", "<&- >&- 2>&-"}) {
    const Finished run = stepgate({"attach", "--expect", "launches_per_step == 1", "--", "sh", "-c",
                                   "exec \"$0\" 40 launch end=prints " + closed, FAKE_PROGRAM});
    EXPECT_EQ(run.exit_code, 0) << closed << run.out << run.err;
  }
}

TEST_F(Attach, AProfilerWithinTheProgramChangesNoCount) {
  EXPECT_EQ(attach({}, {"40", "launch", "wait", "before=profiler"}).exit_code, 0);
  EXPECT_EQ(count("waits"), 1);
  EXPECT_EQ(count("launches"), 1);
}

TEST_F(Attach, TheLinesOfAcceptedCountsAreThoseOfTheProcessThatHasMost) {
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  const EnvironmentVariable lines("FAKE_LINES", "1");
  const std::string program = FAKE_PROGRAM;
  const std::string script = "RANK=0 " + program + " 40 launch wait malloc malloc; RANK=1 " +
                             program + " 40 launch wait wait malloc";
  EXPECT_EQ(stepgate({"attach", "--json", "r.json", "--accept", "c.toml", "--", "sh", "-c", script})
                .exit_code,
            0);
  const std::string text = text_of(place() / "c.toml");
  EXPECT_NE(text.find("waits = 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("device_allocs = 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("count = \"waits\"\nline = \"rank1.py"), std::string::npos) << text;
  EXPECT_NE(text.find("count = \"device_allocs\"\nline = \"rank0.py"), std::string::npos) << text;
  EXPECT_EQ(text.find("count = \"waits\"\nline = \"rank0.py"), std::string::npos) << text;
}

TEST_F(Attach, BytesBeyondAllMemoryAreNoNegativeNumber) {
  const Finished run = attach({"--expect", "copy_bytes_per_step <= 1 B"}, {"40", "copy.absurd"});
  EXPECT_EQ(run.exit_code, 1) << run.out;
  EXPECT_NE(run.out.find("1.84467e+19 B"), std::string::npos) << run.out;
}

TEST_F(Attach, NamesOfAnyBytesAreWritten) {
  const EnvironmentVariable rank("RANK", "\xff\n::error::x");
  const Finished run = attach({"--junit", "j.xml", "--summary", "s.md", "--report", "p.html",
                               "--expect", "host_waits_per_step == 1"},
                              {"40", "launch", "wait", "before=ranges", "range=\xfe\x01<b>"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(("\n" + run.out).find("\n::"), std::string::npos) << run.out;
  EXPECT_EQ(count("waits"), 1);
}

TEST_F(Attach, TheProgramsOutputGoesToStandardErrorAndItsAbsenceIsRefused) {
  const Finished run = attach({}, {"40", "launch"});
  EXPECT_NE(run.err.find("the program's own output"), std::string::npos);
  EXPECT_EQ(run.out.find("the program's own output"), std::string::npos);
  EXPECT_EQ(attach({"--quiet"}, {"40", "launch"}).err.find("own output"), std::string::npos);
  const Finished missing = stepgate({"attach", "--", "/nowhere/program"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("cannot be started"), std::string::npos) << missing.err;
  const EnvironmentVariable other("CUDA_INJECTION64_PATH", "/other/tool.so");
  const Finished two = attach({}, {"40", "launch"});
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_NE(two.err.find("CUDA_INJECTION64_PATH is set"), std::string::npos) << two.err;
  ::unsetenv("CUDA_INJECTION64_PATH");
  EXPECT_EQ(attach({"--env", "NVTX_INJECTION64_PATH=/other/tool.so"}, {"40", "launch"}).exit_code,
            2);
}

TEST_F(Attach, RangesStandWhereThereIsNoPythonLine) {
  const Finished run = attach({}, {"40", "before=ranges", "launch", "wait"});
  EXPECT_NE(run.out.find("cudaStreamSynchronize in the range 'forward'"), std::string::npos)
      << run.out;
}

// The hook is written for every Python; what tells the line is in 3.8 to 3.12.
TEST_F(Attach, AWaitOfAPythonProgramHasItsLineAndStepsAreThoseOfItsOptimizer) {
#ifdef STEPGATE_PYTHON
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  const EnvironmentVariable packages("PYTHONPATH",
                                     STEPGATE_SOURCE_DIR "/tests/programs/fake_torch");
  const EnvironmentVariable held("STEPGATE_HOLD", "/of/an/outer/run");  // not of this one
  const Words program{"--", STEPGATE_PYTHON, STEPGATE_SOURCE_DIR "/tests/programs/fake_train.py",
                      FAKE_CUDA};
  const Finished run = stepgate(joined({"attach", "--json", "r.json"}, program));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_NE(run.out.find("ends of AdamW.step"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("gpu a fake GPU, torch 9.9"), std::string::npos) << run.out;
  EXPECT_EQ(count("waits"), 1);
  const Finished version =
      ChildProcess(STEPGATE_PYTHON, {"-c", "import sys; print(sys.version_info < (3, 13))"},
                   place())
          .wait();
  if (version.out == "True\n") {
    EXPECT_NE(
        run.out.find("fake_train.py:24 cuda.fake_call(WAIT, (ctypes.c_uint64 * 1)(0), 0)  # the w"),
        std::string::npos)
        << run.out;
    EXPECT_EQ(stepgate(joined({"attach", "--accept", "c.toml"}, program)).exit_code, 0);
    const Finished failing =
        stepgate(joined({"attach", "--expect", "host_waits_per_step == 0"}, program));
    EXPECT_EQ(failing.exit_code, 1) << failing.out;
    EXPECT_NE(failing.out.find("1; it must be 0: fake_train.py:24"), std::string::npos)
        << failing.out;
    // Where a wait is new, its line is what annotations mark.
    std::string accepted = text_of(place() / "c.toml");
    accepted.replace(accepted.find("waits = 1"), 9, "waits = 0");
    accepted.erase(accepted.find("[[place]]"));
    write("c.toml", accepted);
    const Finished fresh =
        stepgate(joined({"attach", "--annotations", "github", "--against", "c.toml"}, program));
    EXPECT_EQ(fresh.exit_code, 1) << fresh.out;
    EXPECT_NE(fresh.out.find("is new"), std::string::npos) << fresh.out;
    EXPECT_NE(fresh.out.find("fake_train.py,line=24"), std::string::npos) << fresh.out;
  }
  const EnvironmentVariable old("FAKE_OLD_TORCH", "1");
  EXPECT_EQ(stepgate(joined({"attach", "--json", "r.json"}, program)).exit_code, 0);
  EXPECT_EQ(count("waits"), 1);
#endif
}

// Every secret has "Xq7", which is nowhere else.
TEST_F(Attach, NoWriterShowsASecretOfTheCommand) {
  const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
  const std::string program = FAKE_PROGRAM;
  const Words words{"40",
                    "launch",
                    "wait",
                    "--",
                    "token=Xq7",
                    "--wandb-key",
                    "Xq7",
                    "--pwd",
                    "Xq7",
                    "--pat",
                    "Xq7",
                    "--auth",
                    "Xq7",
                    "--data",
                    "https://user:Xq7@host",
                    "hf_Xq7Xq7Xq7Xq7",
                    "--run=q83+Zm/0pLx1VdR7uKe+Yh2TsW9cXq7A"};
  const Words script{"--", "sh", "-c",
                     "TOKEN=Xq7 exec " + program + " 40 launch wait -- --pat 'Xq7'"};
  for (const Words& command :
       {joined({"--", FAKE_PROGRAM}, words), script,
        joined({"--", FAKE_PROGRAM},
               joined({"40", "end=fails"}, Words(words.begin() + 1, words.end()))),
        Words{"--", "TOKEN=Xq7"}}) {
    const Finished run =
        stepgate(joined({"attach", "--quiet", "--json", "r.json", "--junit", "j.xml", "--summary",
                         "s.md", "--report", "p.html", "--expect", "host_waits_per_step == 0",
                         "--annotations", "github", "--undecided", "fail"},
                        command));
    std::string all = run.out + run.err;
    for (const char* file : {"r.json", "j.xml", "s.md", "p.html"}) all += text_of(place() / file);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_EQ(all.find("Xq7"), std::string::npos) << all.substr(all.find("Xq7") - 200, 300);
    EXPECT_NE(all.find("***"), std::string::npos);
  }
  for (const Words& command : {joined({"--", FAKE_PROGRAM}, words), script}) {
    EXPECT_EQ(stepgate(joined({"attach", "--accept", "c.toml"}, command)).exit_code, 0);
    EXPECT_EQ(text_of(place() / "c.toml").find("Xq7"), std::string::npos);
    EXPECT_NE(text_of(place() / "c.toml").find("***"), std::string::npos);
  }
}

#ifdef STEPGATE_PYTHON
TEST_F(Attach, ItsJsonIsThatOfTheSchema) {
  EXPECT_EQ(attach({}, joined({"40", "before=graph"}, everything)).exit_code, 0);
  const Finished found =
      ChildProcess(STEPGATE_PYTHON,
                   {"-c", validate_json, STEPGATE_SOURCE_DIR "/docs/json_schema.json", "r.json"},
                   place())
          .wait();
  EXPECT_EQ(found.exit_code, 0) << found.out << found.err;
}
#endif

}  // namespace
}  // namespace stepgate
