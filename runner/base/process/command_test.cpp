// SPDX-License-Identifier: MIT
#include "base/process/command.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>

#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

TEST(CommandText, SplitsAtBlanksOutsideQuotes) {
  EXPECT_EQ(split_command_line("  a  b\tc "), (Command{"a", "b", "c"}));
  EXPECT_EQ(split_command_line("sh -c 'a  b'\"c d\"e"), (Command{"sh", "-c", "a  bc de"}));
  EXPECT_EQ(split_command_line(R"(a\ b "c\"d" 'e\f' "")"), (Command{"a b", "c\"d", "e\\f", ""}));
}

TEST(CommandText, RefusesOpenQuotesAndNothing) {
  for (const char* text : {"", "  ", "a 'b", "a \"b", "'' a"})
    EXPECT_THROW(split_command_line(text), RequestError) << text;
}

TEST(CommandText, IsReadBackAsItWasWritten) {
  for (const Command& command :
       {Command{"a", "b c", ""}, Command{"x", "it's", "\"", "\\", "a\\\"b"}, Command{"$HOME;*"}})
    EXPECT_EQ(split_command_line(to_text(command)), command) << to_text(command);
}

// Users paste the printed text into a shell, which must read the same words and run none of them.
TEST(CommandText, RunsNothingElseWhereAShellReadsIt) {
  for (const std::string word : {"$(echo run)", "`echo run`", "$HOME", "!x", "*", "~", "it's", "''",
                                 "a\\b\"c", "a;b", "a b", "#a", "\xc3\xbc", "-n"}) {
    const std::string command = to_text({"printf", "%s", word});
    const std::unique_ptr<FILE, int (*)(FILE*)> shell(::popen(command.c_str(), "r"), ::pclose);
    std::array<char, 64> read{};
    const std::size_t size = std::fread(read.data(), 1, read.size(), shell.get());
    EXPECT_EQ(std::string(read.data(), size), word) << command;
  }
}

TEST(CommandText, TakesNoFileForAnOption) {
  EXPECT_EQ(file_word("-v.toml"), "./-v.toml");
  EXPECT_EQ(file_word("a/-v.toml"), "a/-v.toml");
}

TEST(CommandProgram, IsFoundByItsPathOrInTheFoldersOfPath) {
  EXPECT_EQ(program_file({"/bin/sh", "x"}), "/bin/sh");
  EXPECT_TRUE(program_file({"sh"}).has_value());
  EXPECT_FALSE(program_file({"/bin/no such program"}).has_value());
  EXPECT_FALSE(program_file({"/bin"}).has_value()) << "a folder is no program";
}

TEST(CommandProgram, IsTheSameWhenItsBytesAre) {
  const auto make = [](const std::string& name, const std::string& text) {
    const std::string file = testing::TempDir() + name;
    std::ofstream(file) << text;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return Command{file};
  };
  const Command one = make("stepgate_one", "#!/bin/sh\nexit 1");
  EXPECT_TRUE(run_same_bytes(one, one));
  EXPECT_TRUE(run_same_bytes(one, make("stepgate_copy", "#!/bin/sh\nexit 1")));
  EXPECT_FALSE(run_same_bytes(one, make("stepgate_other", "#!/bin/sh\nexit 2")));
  EXPECT_FALSE(run_same_bytes(one, {"/bin/no such program"}));
  // The script that an interpreter runs is compared too.
  const auto script = [&](const std::string& name, const std::string& text) {
    return make(name, text).front();
  };
  const std::string a = script("a.py", "a");
  const std::string b = script("b.py", "b");
  EXPECT_TRUE(run_same_bytes({one.front(), a, "-x"}, {one.front(), script("c.py", "a"), "-y"}));
  EXPECT_FALSE(run_same_bytes({one.front(), a}, {one.front(), b}));
  EXPECT_FALSE(run_same_bytes({one.front(), a}, {one.front(), a, b}));
}

}  // namespace
}  // namespace stepgate
