// SPDX-License-Identifier: MIT
#include "base/process/run_program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/files/temporary_folder.h"
#include "base/interruption.h"

namespace stepgate {
namespace {

std::optional<std::string> first_line(std::vector<std::string> command,
                                      std::vector<std::string> variables = {}) {
  return first_line_of(std::move(command), std::chrono::minutes(1), std::move(variables));
}

TEST(FirstLineOf, IsWhatACommandPrintsFirst) {
  EXPECT_EQ(first_line({"printf", "one\\ntwo\\n"}), "one");
  EXPECT_EQ(first_line({"printf", "no end of line"}), "no end of line");
}

TEST(FirstLineOf, IsNothingWhenTheCommandFailsIsMissingOrPrintsNothing) {
  EXPECT_EQ(first_line({"sh", "-c", "echo one; exit 1"}), std::nullopt);
  EXPECT_EQ(first_line({"sh", "-c", "echo one; kill -9 $$"}), std::nullopt);
  EXPECT_EQ(first_line({"/no/such/command"}), std::nullopt);
  EXPECT_EQ(first_line({"true"}), std::nullopt);
}

TEST(FirstLineOf, IsNotConfusedByLongOutput) {
  EXPECT_EQ(first_line({"sh", "-c", "echo first; yes | head -c 1000000"}), "first");
}

TEST(FirstLineOf, WaitsForNothingThatTakesTooLongAndLeavesNothing) {
  EXPECT_EQ(first_line_of({"sh", "-c", "echo one; sleep 60"}, std::chrono::milliseconds(50)),
            std::nullopt);
  const TemporaryFolder folder;
  const std::string left = folder.path() / "left";
  EXPECT_EQ(first_line({"sh", "-c",
                        "setsid sh -c ': >" + left + "; sleep 0.5; : >" + left +
                            ".late' & while [ ! -e " + left + " ]; do sleep 0.01; done; echo one"}),
            "one");
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_FALSE(std::filesystem::exists(left + ".late")) << "something was left at work";
}

// A checkout may have a program of that name, and PATH may lead to it.
TEST(FirstLineOf, RunsNoProgramOfTheFolderItIsCalledIn) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  const std::string path = std::getenv("PATH");
  for (const char* place : {"", "bin", "bin/deeper"}) {
    std::filesystem::create_directories(folder.path() / place);
    const std::filesystem::path planted = folder.path() / place / "printf";
    std::ofstream(planted) << "#!/bin/sh\necho planted\n";
    std::filesystem::permissions(planted, std::filesystem::perms::owner_all);
  }
  std::filesystem::current_path(folder.path());
  for (const std::string& with :
       {":" + path, ".:" + path, "./:" + path, "bin:" + path, "./bin/deeper:" + path,
        "bin/..:" + path, "::bin:" + path, path + ":", path}) {
    ::setenv("PATH", with.c_str(), 1);
    EXPECT_EQ(first_line({"printf", "real\\n"}), "real") << with;
    EXPECT_EQ(first_line({"/bin/sh", "-c", "echo \"$PATH\""}), with);
  }
  for (const char* with : {"", ".", "bin", ":"}) {
    ::setenv("PATH", with, 1);
    EXPECT_EQ(first_line({"printf", "real\\n"}), std::nullopt) << with;
  }
  ::unsetenv("PATH");
  EXPECT_EQ(first_line({"printf", "real\\n"}), "real");
  // A folder that is named in full is meant.
  ::setenv("PATH", (folder.path() / "bin").c_str(), 1);
  EXPECT_EQ(first_line({"printf", "real\\n"}), "planted");
  ::setenv("PATH", path.c_str(), 1);
  std::filesystem::current_path(before);
}

TEST(FirstLineOf, SeesTheVariablesThatAreSetAndTheOthersOfThisProcess) {
  ::setenv("STEPGATE_OF_A_TEST", "before", 1);
  ::setenv("STEPGATE_OF_A_TEST_TOO", "kept", 1);
  EXPECT_EQ(first_line({"sh", "-c", "echo $STEPGATE_OF_A_TEST $STEPGATE_OF_A_TEST_TOO"},
                       {"STEPGATE_OF_A_TEST=set"}),
            "set kept");
  ::unsetenv("STEPGATE_OF_A_TEST");
  ::unsetenv("STEPGATE_OF_A_TEST_TOO");
}

TEST(RunThisProgram, GivesItsExitCode) {
  EXPECT_EQ(run_this_program({"--gtest_list_tests", "--gtest_filter=FirstLineOf.*"}), 0);
}

TEST(RunThisProgram, GivesItTheInputThatIsSaid) {
  const std::string longer_than_a_pipe(1 << 20, 'x');
  EXPECT_EQ(run_this_program({"-c", "test $(wc -c) = 1048576"}, "/bin/sh", longer_than_a_pipe), 0);
  EXPECT_EQ(run_this_program({"-c", "test -z \"$(cat)\""}, "/bin/sh", ""), 0);
}

// A container may have no /proc.
TEST(ThisProgram, SaysThatItCannotFindItself) {
  const std::filesystem::path nowhere = testing::TempDir() + "no/proc/self/exe";
  const std::string fact = nowhere.string() + ": No such file or directory; mount /proc";
  const auto words_of = [](const auto& call) -> std::string {
    try {
      (void)call();
    } catch (const ProcessError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(words_of([&] { return run_this_program({}, nowhere); }),
            "cannot start itself: " + fact);
  EXPECT_EQ(words_of([&] { return path_of_this_program(nowhere); }),
            "cannot start itself: " + fact);
  EXPECT_EQ(words_of([&] { return digest_of_this_program(nowhere); }),
            "cannot read its own program: " + fact);
}

TEST(RunThisProgram, IsToldOfTheSignalAndKilledWhereItDoesNotListen) {
  const auto child = [](const std::string& script) {
    interrupted = 0;
    std::thread signal([] {  // once the child handles the signal
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      interrupted = SIGTERM;
    });
    const int code = run_this_program({"-c", script}, "/bin/sh");
    signal.join();
    return code;
  };
  EXPECT_EQ(child("trap 'exit 7' TERM; while :; do sleep 0.01; done"), 7);
  EXPECT_EQ(child("sleep 60"), 128 + SIGTERM);
  EXPECT_EQ(child("trap '' TERM; while :; do sleep 0.01; done"), 128 + SIGKILL);
  interrupted = 0;
}

TEST(DigestOfThisProgram, IsThatOfTheWholeExecutable) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "program";
  const auto digest_of = [&](const std::string& content) {
    std::ofstream(file) << content;
    return digest_of_this_program(file);
  };
  const std::string content(200'001, 'x');  // several blocks and part of one
  std::set<std::uint64_t> digests{digest_of(content)};
  EXPECT_EQ(digest_of(content), *digests.begin());
  for (const std::size_t at : {0, 7, 8, 65'535, 65'536, 199'999, 200'000}) {
    std::string other = content;
    other[at] = 'y';
    EXPECT_TRUE(digests.insert(digest_of(other)).second) << at;
  }
  EXPECT_TRUE(digests.insert(digest_of(content.substr(1))).second);
  EXPECT_TRUE(digests.insert(digest_of(content + '\0')).second) << "zeros behind the end count";
  EXPECT_EQ(digest_of_this_program(), digest_of_this_program());
}

}  // namespace
}  // namespace stepgate
