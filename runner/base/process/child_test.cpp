// SPDX-License-Identifier: MIT
// A child that is run to its end. hostile_workers_test.cpp has the workers, which answer.
#include "base/process/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/files/temporary_folder.h"
#include "base/process/worker_environment.h"

namespace stepgate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Taken {
  ChildEnd end;
  std::vector<std::string> lines;
};

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

constexpr OutputLimits ample{.line_bytes = 1000, .all_bytes = 100'000};

Taken run(const std::string& script, OutputLimits limits = ample,
          std::chrono::nanoseconds at_most = seconds(20), std::size_t most_lines = 1000) {
  Taken taken;
  Child child({.command = {"/bin/sh", "-c", script},
               .name = "it",
               .stall = at_most,
               .stopped = {},
               .environment = worker_environment()});
  taken.end = child.run_to_end(limits, [&](std::string_view line) -> std::optional<std::string> {
    taken.lines.emplace_back(line);
    if (taken.lines.size() > most_lines) return "wrote too much of it";
    return std::nullopt;
  });
  return taken;
}

TEST(RunToEnd, HasTheCodeTheLinesAndTheErrors) {
  const Taken whole = run("echo one; echo; printf 'two\\nthree'; echo bad >&2; exit 7");
  EXPECT_EQ(whole.end.code, 7);
  EXPECT_EQ(whole.lines, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(whole.end.errors, "bad");
  EXPECT_EQ(whole.end.wrong, "");
  EXPECT_EQ(run("kill -9 $$").end.code, 128 + 9);
  EXPECT_EQ(run("exec /nowhere/program").end.code, 127);
  // All output is taken, though it is more than a pipe holds and the program has ended.
  const Taken much =
      run("yes x | head -n 40000", {.line_bytes = 1000, .all_bytes = 80'000}, seconds(20), 50'000);
  EXPECT_EQ(much.end.code, 0);
  EXPECT_EQ(much.lines.size(), 40'000u);
}

// Some parents leave SIGCHLD ignored. Then the kernel would reap dead children, and waitpid would
// not see them.
TEST(RunToEnd, SeesTheEndWhereTheDeathOfChildrenWasIgnored) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto start = std::chrono::steady_clock::now();
  const Taken whole = run("echo one; exit 7");
  std::signal(SIGCHLD, before);
  EXPECT_EQ(whole.end.code, 7);
  EXPECT_EQ(whole.lines.size(), 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(5));
}

TEST(RunToEnd, KeepsTheEndOfEndlessErrorsAlone) {
  const Taken loud = run("yes before | head -n 100000 >&2; echo last >&2; exit 3");
  EXPECT_EQ(loud.end.code, 3);
  EXPECT_LE(loud.end.errors.size(), 4096u);
  EXPECT_TRUE(loud.end.errors.ends_with("before\nlast")) << loud.end.errors;
}

TEST(RunToEnd, EndsWhatWritesTooMuch) {
  const Taken line = run("exec tr '\\0' x </dev/zero");
  EXPECT_EQ(line.end.code, std::nullopt);
  EXPECT_EQ(line.end.wrong, "wrote a line of more than 1000 B");
  EXPECT_EQ(line.lines.size(), 0u);
  EXPECT_EQ(run("exec yes", ample, seconds(20), 1'000'000).end.wrong, "wrote more than 100000 B");
  const Taken refused = run("exec yes");
  EXPECT_EQ(refused.end.wrong, "wrote too much of it");
  EXPECT_EQ(refused.lines.size(), 1001u);
  // A line that is too long is refused even if its end has already arrived.
  EXPECT_EQ(run("head -c 1001 /dev/zero | tr '\\0' x; echo").end.wrong,
            "wrote a line of more than 1000 B");
  EXPECT_EQ(run("head -c 1000 /dev/zero | tr '\\0' x; echo").lines.size(), 1u);
}

TEST(RunToEnd, EndsWhatTakesTooLongWhateverItHasClosed) {
  const auto start = std::chrono::steady_clock::now();
  for (const char* script :
       {"sleep 60", "exec >&- 2>&-; sleep 60", "exec yes >&2",
        "trap '' TERM; while :; do sleep 60; done", "while :; do echo x; done"}) {
    const Taken late =
        run(script, {.all_bytes = std::size_t{1} << 40}, milliseconds(100), std::size_t{1} << 40);
    EXPECT_EQ(late.end.code, std::nullopt) << script;
    EXPECT_EQ(late.end.wrong, "") << script;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(15));
}

TEST(RunToEnd, EndsWhatAKilledSupervisorLeavesAndNoOtherChild) {
  const TemporaryFolder folder;
  const std::string ids = folder.path() / "ids";
  Child other({.command = {"/bin/cat"}, .name = "other", .stopped = {}});
  EXPECT_EQ(other.exchange("one"), "one");
  EXPECT_EQ(run("setsid sh -c 'echo $$ >" + ids + "; exec sleep 60' & until [ -s " + ids +
                " ]; do sleep 0.01; done; kill -KILL $PPID; sleep 60")
                .end.code,
            128 + SIGKILL);
  int left = 0;
  std::ifstream(ids) >> left;
  ASSERT_GT(left, 0);
  EXPECT_EQ(::kill(left, 0), -1);
  EXPECT_EQ(other.exchange("two"), "two");
}

TEST(FlushAnswer, ThrowsWhereTheAnswerIsLost) {
  std::ostringstream kept;
  kept << "answer\n";
  flush_answer(kept);
  EXPECT_EQ(kept.str(), "answer\n");
  std::ofstream full("/dev/full");
  full << "answer\n";
  EXPECT_THROW(flush_answer(full), WorkerError);
}

TEST(AnswerStream, KeepsWhatALibraryPrintsOutOfTheAnswers) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  const std::string error = (folder.path() / "error").string();
  EXPECT_EXIT(
      {
        ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
        ::dup2(::open(error.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
        answer_stream() << "one\n";
        std::printf("NCCL INFO\n");
        std::cout << "a note" << std::endl;
        answer_stream() << "two\n";
        flush_answer(answer_stream());
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(text_of(out), "one\ntwo\n");
  const std::string printed = text_of(error);
  EXPECT_NE(printed.find("NCCL INFO\n"), std::string::npos);
  EXPECT_NE(printed.find("a note\n"), std::string::npos);
}

TEST(RunToEnd, IsStopped) {
  Child child({.command = {"/bin/sleep", "60"}, .name = "it", .stall = seconds(20), .stopped = [] {
                 return true;
               }});
  EXPECT_THROW((void)child.run_to_end(ample, [](auto) { return std::nullopt; }), WaitStopped);
}

TEST(RunToEnd, HasTheEnvironmentAndNothingElse) {
  ASSERT_EQ(::setenv("STEPGATE_TEST_OWN", "1", 1), 0);
  Child child(
      {.command = {"/bin/sh", "-c", "test \"$SECRET\" = x && test -z \"$STEPGATE_TEST_OWN\""},
       .name = "it",
       .stall = seconds(20),
       .stopped = {},
       .environment = {{"SECRET=x"}}});
  EXPECT_EQ(child.run_to_end(ample, [](auto) { return std::nullopt; }).code, 0);
  ::unsetenv("STEPGATE_TEST_OWN");
}

}  // namespace
}  // namespace stepgate
