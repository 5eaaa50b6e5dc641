// SPDX-License-Identifier: MIT
// Tests what a process that crashes in a library writes before it ends.
#include "plugin/library_call.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

namespace stepgate {
namespace {

struct Ended {
  std::string words;
  int signal = 0;
};

// The words and the signal of a process that makes this call, and is then sent the signal.
Ended ended_by(int number, const LibraryCall& call) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    tell_of_crashes_in_libraries(ends[1], '!');
    library_call() = call;
    (void)::raise(number);
    ::_exit(0);
  }
  ::close(ends[1]);
  Ended ended;
  std::array<char, 1024> chunk{};
  for (ssize_t got = 0; (got = ::read(ends[0], chunk.data(), chunk.size())) > 0;)
    ended.words.append(chunk.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return ended;
}

TEST(LibraryCall, IsInTheLastWordsOfAProcessThatCrashesInIt) {
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE}) {
    const Ended ended =
        ended_by(number, {.function = "'norm' of 'x.so'", .operation = "block 0: norm"});
    EXPECT_EQ(ended.words, "!in 'block 0: norm', which is 'norm' of 'x.so'\n");
    EXPECT_EQ(ended.signal, number) << "the signal ends the process all the same";
  }
  EXPECT_EQ(ended_by(SIGSEGV, {.function = "'norm' of 'x.so'"}).words, "!in 'norm' of 'x.so'\n");
}

TEST(LibraryCall, IsNotToldWhereNoneIsUnderWay) {
  const Ended ended = ended_by(SIGSEGV, {.operation = "block 0: norm"});
  EXPECT_EQ(ended.words, "");
  EXPECT_EQ(ended.signal, SIGSEGV);
}

TEST(LibraryCall, IsOneLineOfBoundedLength) {
  const std::string longest(2000, 'x');
  const Ended ended = ended_by(SIGSEGV, {.function = "a\nb", .operation = longest.c_str()});
  EXPECT_EQ(ended.words.find('\n'), ended.words.size() - 1);
  EXPECT_LT(ended.words.size(), 600U);
  EXPECT_EQ(ended_by(SIGSEGV, {.function = "a\nb"}).words, "!in a?b\n");
}

}  // namespace
}  // namespace stepgate
