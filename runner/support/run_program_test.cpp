// SPDX-License-Identifier: MIT
#include "support/run_program.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/fnv1a.h"

namespace stepgate {
namespace {

TEST(FirstLineOf, IsWhatACommandPrintsFirst) {
  EXPECT_EQ(first_line_of({"printf", "one\\ntwo\\n"}), "one");
  EXPECT_EQ(first_line_of({"printf", "no end of line"}), "no end of line");
}

TEST(FirstLineOf, IsNothingWhenTheCommandFailsIsMissingOrPrintsNothing) {
  EXPECT_EQ(first_line_of({"sh", "-c", "echo one; exit 1"}), std::nullopt);
  EXPECT_EQ(first_line_of({"sh", "-c", "echo one; kill -9 $$"}), std::nullopt);
  EXPECT_EQ(first_line_of({"/no/such/command"}), std::nullopt);
  EXPECT_EQ(first_line_of({"true"}), std::nullopt);
}

TEST(FirstLineOf, IsNotConfusedByLongOutput) {
  EXPECT_EQ(first_line_of({"sh", "-c", "echo first; yes | head -c 1000000"}), "first");
}

TEST(RunThisProgram, GivesItsExitCode) {
  EXPECT_EQ(run_this_program({"--gtest_list_tests", "--gtest_filter=FirstLineOf.*"}), 0);
}

TEST(DigestOfThisProgram, IsThatOfTheWholeExecutable) {
  std::ostringstream program;
  program << std::ifstream("/proc/self/exe", std::ios::binary).rdbuf();
  ASSERT_GT(program.str().size(), 1U << 16) << "read in one piece, it would show nothing";
  EXPECT_EQ(digest_of_this_program(), fnv1a(program.str()));
}

}  // namespace
}  // namespace stepgate
