// SPDX-License-Identifier: MIT
// Programs that are held at the end of a step, with a PyTorch that is faked (fake_torch).
#include "program/held.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "base/text/diagnostic.h"
#include "program/read/count_trace.h"

namespace stepgate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds step{10};
const std::string programs = std::string(STEPGATE_SOURCE_DIR) + "/tests/programs";
const AttachFiles files{.library = {}, .hook_folder = HOOK_FOLDER};

HeldRequest request_of(std::vector<std::string> arguments) {
  HeldRequest request{.command = {STEPGATE_PYTHON, programs + "/fake_held.py"},
                      .variables = {"PYTHONPATH=" + programs + "/fake_torch"},
                      .start_limit = seconds(20),
                      .answer_limit = seconds(20)};
  request.command.insert(request.command.end(), arguments.begin(), arguments.end());
  return request;
}

// Why one of ten runs of ten steps is refused; empty where none is.
std::string refusal_of(const HeldRequest& request, bool* is_about_clock = nullptr) {
  try {
    HeldProgram program(request, files);
    for (int run = 0; run < 10; ++run) program.run(10, 2);
  } catch (const HeldError& error) {
    if (is_about_clock != nullptr) *is_about_clock = error.is_about_clock();
    return error.what();
  }
  return "";
}

// A sleep never ends early, and on a busy machine late.
void expect_near(const HeldRun& run, milliseconds a_step, std::int64_t wash_out) {
  EXPECT_GE(run.elapsed, a_step * run.steps);
  EXPECT_LT(run.elapsed, 3 * a_step * run.steps);
  EXPECT_GE(run.wall, run.elapsed - milliseconds(1));
  EXPECT_GE(run.wall, a_step * (run.steps + wash_out));
}

TEST(Held, ItIsHeldAndMakesTheStepsThatItIsAskedFor) {
  HeldProgram program(request_of({}), files);
  EXPECT_EQ(program.hello().program, "fake_held.py");
  EXPECT_EQ(program.hello().device, "a fake GPU");
  EXPECT_EQ(program.hello().steps, "ends of AdamW.step");
  for (const auto& [steps, wash_out] : {std::pair{10, 0}, {1, 5}, {20, 3}}) {
    const HeldRun run = program.run(steps, wash_out);
    EXPECT_EQ(run.steps, steps);
    EXPECT_EQ(run.peak_memory_bytes, 123);
    expect_near(run, step, wash_out);
  }
  program.quit();
}

TEST(Held, TheDeviceIsWaitedForAtBothEnds) {
  HeldProgram program(request_of({"queue"}), files);
  expect_near(program.run(10, 4), step, 4);
}

TEST(Held, OfTwoOptimizersTheFirstCounts) {
  HeldProgram program(request_of({"two_optimizers"}), files);
  expect_near(program.run(10, 1), 2 * step, 1);
}

TEST(Held, AnOptimizerInThePlaceOfTheFirstCountsToo) {
  HeldProgram program(request_of({"renews"}), files);
  expect_near(program.run(10, 1), step, 1);
}

TEST(Held, AClockThatTheProgramReplacesIsNotUsed) {
  for (const std::string how : {"replaces_clock", "replaces_clock_first"}) {
    HeldProgram program(request_of({how}), files);
    expect_near(program.run(10, 1), step, 1);
  }
}

TEST(Held, AClockThatClaimsLessOrMoreThanPassedIsNotComparable) {
  for (const std::string clock : {"slow_clock", "slower_clock", "fast_clock"}) {
    bool is_about_clock = false;
    const std::string words = refusal_of(request_of({clock}), &is_about_clock);
    EXPECT_NE(words.find("not comparable: the clock stops before the work is done"),
              std::string::npos)
        << clock << words;
    EXPECT_TRUE(is_about_clock);
  }
}

TEST(Held, ItsEndIsSaidWithItsExitCode) {
  EXPECT_NE(refusal_of(request_of({"", "5"})).find("ended with exit code 0 before it made"),
            std::string::npos);
  EXPECT_NE(refusal_of(request_of({"no_optimizer", "0"}))
                .find("ended with exit code 7 before a step of its ended"),
            std::string::npos);
  HeldRequest missing = request_of({});
  missing.command = {"/no/such/program"};
  EXPECT_THROW(refusal_of(missing), RequestError);
  HeldRequest profiled = request_of({});
  profiled.variables.emplace_back("CUDA_INJECTION64_PATH=/tool.so");
  EXPECT_THROW(refusal_of(profiled), RequestError);
  HeldRequest nowhere = request_of({});
  nowhere.folder = "/no/such/folder";
  EXPECT_THROW(refusal_of(nowhere), RequestError);
}

TEST(Held, LimitsOfTimeEndIt) {
  HeldRequest request = request_of({"no_optimizer"});
  request.start_limit = milliseconds(500);
  EXPECT_NE(refusal_of(request).find("ended no step within 500 ms"), std::string::npos);
  request = request_of({"hangs"});
  request.answer_limit = milliseconds(500);
  EXPECT_NE(refusal_of(request).find("did not make 12 steps within 500 ms"), std::string::npos);
}

TEST(Held, WhatIsNoAnswerIsRefused) {
  EXPECT_NE(refusal_of(request_of({"floods"})).find("to the socket of stepgate's hook"),
            std::string::npos);
  for (const std::string line : {"nonsense", "[]", "{\"program\":\"p\",\"device\":\"\"}",
                                 "{\"program\":\"\\u001b[2J\",\"device\":\"\",\"steps\":\"s\"}"})
    EXPECT_NE(refusal_of(request_of({"lies", line})).find("which "), std::string::npos) << line;
}

TEST(Held, WhatIsNoTraceIsWaitedForAndNotRead) {
  for (const std::string kind : {"link", "folder", "pipe"}) {
    HeldRequest request = request_of({"leaves", kind});
    request.answer_limit = milliseconds(300);
    HeldProgram program(request, files);
    EXPECT_THROW(program.trace(1, 0), HeldError) << kind;
  }
}

TEST(Held, AForkedChildDoesNotAnswer) {
  HeldProgram program(request_of({"forks"}), files);
  for (int run = 0; run < 3; ++run) expect_near(program.run(10, 1), step, 1);
}

// A rank that ran on would wait in its next collective, and keep its GPU busy.
TEST(Held, EveryRankIsHeldAtTheSameEndOfAStep) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "step").string();
  HeldRequest request = request_of({"ranks"});
  request.variables.push_back("FAKE_STEPS_FILE=" + file);
  HeldProgram program(request, files);
  std::int64_t ends = 0;
  for (const auto& [steps, wash_out] : {std::pair{10, 1}, {3, 0}, {7, 2}}) {
    expect_near(program.run(steps, wash_out), step, wash_out);
    ends += steps + wash_out;
    std::this_thread::sleep_for(milliseconds(300));
    for (const std::string rank : {"0", "1"}) {
      std::int64_t seen = 0;
      std::ifstream(file + rank) >> seen;
      EXPECT_EQ(seen, ends) << "rank " << rank;
    }
  }
  program.quit();
}

// A loader that went on would fill its queue, and take time of what runs meanwhile.
TEST(Held, NothingOfAHeldProgramRuns) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "loaded").string();
  HeldRequest request = request_of({"loads"});
  request.variables.push_back("FAKE_STEPS_FILE=" + file);
  HeldProgram program(request, files);
  const auto loaded = [&] {
    return std::pair(std::filesystem::file_size(file + "thread"),
                     std::filesystem::file_size(file + "process"));
  };
  auto before = std::pair<std::uintmax_t, std::uintmax_t>{};
  for (int run = 0; run < 3; ++run) {
    expect_near(program.run(10, 5), step, 5);
    const auto held = loaded();
    EXPECT_GT(held.first, before.first);
    EXPECT_GT(held.second, before.second);
    std::this_thread::sleep_for(milliseconds(200));
    EXPECT_EQ(loaded(), held);
    before = held;
  }
  program.quit();
}

TEST(Held, OneThatIsStoppedIsAskedToEndToo) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "end").string();
  HeldRequest request = request_of({"says_its_end"});
  request.variables.push_back("FAKE_STEPS_FILE=" + file);
  {
    HeldProgram program(request, files);
    program.run(1, 0);
  }
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(Held, EachLoaderProcessHasAStepToSettle) {
  HeldRequest request = request_of({"forks"});
  HeldProgram one(request, files);
  one.run(1, 1);
  EXPECT_EQ(one.steps_to_settle(), 2);
  request.command = {"/bin/sh", "-c",
                     "for loader in 1 2 3 4 5; do sleep 60 & done; exec " STEPGATE_PYTHON " " +
                         programs + "/fake_held.py"};
  HeldProgram five(request, files);
  five.run(1, 1);
  EXPECT_EQ(five.steps_to_settle(), 5);
}

TEST(Held, ARankWithoutTheFirstOneIsNeverAskedForSteps) {
  HeldRequest alone = request_of({""});
  alone.variables.emplace_back("RANK=1");
  alone.start_limit = milliseconds(500);
  EXPECT_NE(refusal_of(alone).find("ended no step within 500 ms"), std::string::npos);
}

TEST(Held, EveryRankWritesATraceOfTheStepsThatItIsAskedFor) {
  HeldProgram program(request_of({"ranks"}), files);
  expect_near(program.run(5, 1), step, 1);
  for (const auto& [steps, wash_out] : {std::pair{6, 2}, {4, 0}}) {
    const auto traces = program.trace(steps, wash_out);
    ASSERT_EQ(traces.size(), 2U);
    for (const std::filesystem::path& trace : traces) {
      const CountedTrace counted = count_trace(read_profiler_trace(trace), {.skip = 1});
      EXPECT_EQ(counted.counted.steps, steps - 1);
      EXPECT_EQ(counted.counted.mean[static_cast<std::size_t>(CallCount::launches)], 1);
    }
    expect_near(program.run(5, 1), step, 1);
  }
}

TEST(Held, OneThatIgnoresSignalsEndsToo) {
  const auto begin = std::chrono::steady_clock::now();
  HeldProgram program(request_of({"ignores_signals"}), files);
  (void)program.hello();
  program.quit();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(15));
}

TEST(Held, CachesAndFolderAreThoseOfTheRequest) {
  HeldRequest request = request_of({});
  const TemporaryFolder folder;
  request.command = {"/bin/sh", "-c", "pwd > seen; env >> seen; exit 3"};
  request.folder = folder.path();
  request.caches = "/side/of/base";
  EXPECT_NE(refusal_of(request).find("ended with exit code 3"), std::string::npos);
  std::ifstream file(folder.path() / "seen");
  const std::string seen((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(seen.starts_with(std::filesystem::canonical(folder.path()).string() + "\n"));
  EXPECT_NE(seen.find("\nTRITON_CACHE_DIR=/side/of/base/triton\n"), std::string::npos);
  EXPECT_NE(seen.find("\nCUDA_CACHE_PATH=/side/of/base/cuda\n"), std::string::npos);
  EXPECT_EQ(seen.find("CUDA_INJECTION64_PATH"), std::string::npos);
}

bool is_running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  return file >> number >> name >> state && state != "Z";
}

TEST(Held, NothingIsLeftWhereStepgateIsKilled) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "pid";
  const pid_t stepgate = ::fork();
  if (stepgate == 0) {
    HeldRequest request = request_of({"ignores_signals"});
    request.variables.push_back("FAKE_PID_FILE=" + file.string());
    HeldProgram program(request, files);
    program.run(1, 0);  // it is stopped from then on
    std::ofstream(folder.path() / "held") << "yes";
    ::pause();
  }
  const auto wait_until = [](const auto& condition) {
    for (int turn = 0; turn < 2000 && !condition(); ++turn)
      std::this_thread::sleep_for(milliseconds(10));
    return condition();
  };
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(folder.path() / "held"); }));
  pid_t program = 0;
  std::ifstream(file) >> program;
  ASSERT_TRUE(is_running(program));
  ::kill(stepgate, SIGKILL);
  ::waitpid(stepgate, nullptr, 0);
  EXPECT_TRUE(wait_until([&] { return !is_running(program); }));
}

}  // namespace
}  // namespace stepgate
