// SPDX-License-Identifier: MIT
// Tests that invalid scripts are refused, that different outputs fail the test that runs a script,
// and that an update changes only outputs.
#include "tests/scripts/script.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "base/files/temporary_folder.h"
#include "base/files/write_file.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

// The folder is static, since EXPECT_NONFATAL_FAILURE cannot access variables of a test.
const std::filesystem::path& folder() {
  static const TemporaryFolder made;
  return made.path();
}

std::filesystem::path script(const std::string& text) {
  write_file(folder() / "a.txt", text);
  write_file(folder() / "base.toml", "a\nb\nc d\nb\n");
  write_file(folder() / "hole.toml", "a\n...\nb\n");
  return folder() / "a.txt";
}

std::string content() {
  return std::get<std::string>(read_file(folder() / "a.txt", "a script"));
}

// `echo` prints its input; `fail` throws.
const Commands commands{
    {"echo", [](const Step& step) { return step.input; }},
    {"fail",
     [](const Step& step) -> std::string { throw std::runtime_error("cannot do " + step.name); }},
    {"$", [](const Step& step) { return step.name + "\n"; }}};

const std::string passing =
    "# Why.\necho a\none\n\ntwo\n----\n----\none\n\ntwo\n----\n----\n\n"
    "$ b --c='d e'\n----\nb --c='d e'\n\n\n# no newline at the end\necho c\n----\n";

TEST(Scripts, AreReadAndPass) {
  const std::vector<Step> steps = read_script(script(passing), {"echo", "$"});
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].line, 2);
  EXPECT_EQ(steps[0].input, "one\n\ntwo\n");
  EXPECT_EQ(steps[0].expected, "one\n\ntwo\n");
  EXPECT_EQ(steps[1].line, 14);
  EXPECT_EQ(steps[1].name, "b --c='d e'");
  EXPECT_EQ(steps[2].expected, "");
  expect_script(script(passing), commands, false);
}

TEST(Scripts, FailForAWrongOutputAndOneThatIsMissing) {
  EXPECT_NONFATAL_FAILURE(expect_script(script("echo a\none\n----\nOne\n"), commands, false),
                          "a.txt:1: a");
  EXPECT_NONFATAL_FAILURE(expect_script(script("echo a\none\n----\none\ntwo\n"), commands, false),
                          "a.txt:1: a");
  EXPECT_NONFATAL_FAILURE(expect_script(script("echo a\none\n----\none"), commands, false),
                          "a.txt:1: a");
  EXPECT_NONFATAL_FAILURE(expect_script(script("\n\necho a\none\n----\n"), commands, false),
                          "a.txt:3: a");
  EXPECT_NONFATAL_FAILURE(expect_script(script("echo a\n----\nnone\n"), commands, false),
                          "a.txt:1: a");
}

TEST(Scripts, FailWhereACommandFailsAlsoWhileTheyAreUpdated) {
  const std::string text = "fail a\n----\nkept\n";
  EXPECT_NONFATAL_FAILURE(expect_script(script(text), commands, false), "cannot do a");
  EXPECT_NONFATAL_FAILURE(expect_script(script(text), commands, true), "cannot do a");
  EXPECT_EQ(content(), text);
}

struct Fault {
  std::string name;
  std::string text;
  std::string says;
};

class FaultyScripts : public testing::TestWithParam<Fault> {};

TEST_P(FaultyScripts, AreRefusedAtTheirLine) {
  try {
    expect_script(script(GetParam().text), commands, true);
    ADD_FAILURE() << "accepted";
  } catch (const RequestError& error) {
    EXPECT_EQ(std::string(error.what()),
              "a.txt:" + GetParam().says + "; see tests/scripts/script.h");
  }
  EXPECT_EQ(content(), GetParam().text);
}

const std::vector<Fault> faults{
    {"empty", "", "1:1: no step in the script"},
    {"comments_alone", "# echo a\n# ----\n\n", "1:1: no step in the script"},
    {"unknown_command", "ecko a\n----\n", "1:1: no command 'ecko'"},
    {"text_between_steps", "echo a\n----\n\nstray\n", "4:1: no command 'stray'"},
    {"no_name", "echo\n----\n", "1:1: no name behind 'echo'"},
    {"no_line_is_whole", "echo a", "1:1: no line '----' behind 'a'"},
    {"name_twice", "echo a\n----\n\necho a\n----\n", "4:1: a second 'echo a'"},
    {"no_end_of_input", "echo a\nb\n\necho c\n----\n", "1:1: no line '----' behind 'a'"},
    {"no_end_of_input_at_the_end", "echo a\nb\n---\n", "1:1: no line '----' behind 'a'"},
    {"no_empty_line", "echo a\n----\nb\necho c\n----\n", "1:1: no empty line behind 'a'"},
    {"half_a_pair", "echo a\n----\n----\nb\n----\n", "1:1: no second pair of '----' behind 'a'"},
    {"unknown_option", "echo a esc\n----\n", "1:1: no option 'esc'"},
    {"unknown_escape", "echo a escaped\n\\q\n----\n", "1:1: there is no escape '\\q'"},
    {"line_not_in_the_base", "echo a base=base.toml\n-d\n----\n", "1:1: the base has no 'd\\n'"},
    {"line_before_the_last_one", "echo a base=base.toml\n b\n-a\n----\n",
     "1:1: the base has no 'a\\n'"},
    {"command_on_two_lines", "$ a \\\nb\n----\n", "2:1: input below a '$'"},
    {"input_of_a_command_line", "\n$ cat\n\n----\n", "3:1: input below a '$'"},
    {"no_change", "echo a base=base.toml\na\n----\n", "1:1: no change is 'a\\n'"}};

INSTANTIATE_TEST_SUITE_P(With, FaultyScripts, testing::ValuesIn(faults),
                         [](const auto& fault) { return fault.param.name; });

TEST(Scripts, ChangeTheirBases) {
  expect_script(script("echo hole base=hole.toml\nx\n----\na\nx\nb\n\n"
                       "echo empty_hole base=hole.toml\n----\na\nb\n\n"
                       "echo kept base=base.toml\n----\na\nb\nc d\nb\n\n"
                       "echo first base=base.toml\n+x\n----\nx\na\nb\nc d\nb\n\n"
                       "echo changed base=base.toml\n-b\n~c -> e\n+x\n----\na\ne d\nx\nb\n\n"
                       "echo second base=base.toml\n b\n-b\n----\na\nb\nc d\n\n"
                       "echo cut base=base.toml\n b\n-...\n+x\n----\na\nb\nx\n\n"
                       "echo bytes escaped base=hole.toml\n\\x41\\\\\\\nB\n----\na\nA\\B\nb\n"),
                commands, false);
}

TEST(Scripts, AreUpdatedInTheirOutputsAlone) {
  const std::string wrong =
      "# Why.\n\n\necho a\none\n\ntwo\n----\nthree\n\n# And why.\necho b\n# input\n----\n\n"
      "echo c\n----\n----\nfour\n\n----\n----\n\n\necho d\n5\n----\n----\n5\n----\n----\n\n# "
      "Last.\n";
  const std::string right =
      "# Why.\n\n\necho a\none\n\ntwo\n----\n----\none\n\ntwo\n----\n----\n\n# And why.\n"
      "echo b\n# input\n----\n# input\n\n"
      "echo c\n----\n\n\necho d\n5\n----\n----\n5\n----\n----\n\n# Last.\n";
  expect_script(script(wrong), commands, true);
  EXPECT_EQ(content(), right);
  expect_script(script(content()), commands, false);
  expect_script(script(content()), commands, true);
  EXPECT_EQ(content(), right);
}

// The outputs have text that would end an expected output early, or nothing to compare.
TEST(Scripts, AreUpdatedSoThatTheyPass) {
  const Commands odd{{"print", [](const Step& step) {
                        const std::map<std::string, std::string> texts{
                            {"nothing", ""},
                            {"no_end", "a"},
                            {"empty_lines", "\n\na\n\n"},
                            {"a_step", "print nothing\n----\n"},
                            {"a_line", "----\n"},
                            {"a_comment", "# a\n"}};
                        return texts.at(step.name);
                      }}};
  const auto file = script(
      "print nothing\n----\n\nprint no_end\n----\n\nprint empty_lines\n----\n\n"
      "print a_step\n----\n\nprint a_line\n----\n\nprint a_comment\n----\n");
  expect_script(file, odd, true);
  const std::string updated = content();
  expect_script(file, odd, false);
  expect_script(file, odd, true);
  EXPECT_EQ(content(), updated);
  EXPECT_NE(updated.find("\\ no newline at the end\n"), std::string::npos);
}

TEST(Scripts, AreInAFolderThatHasSome) {
  EXPECT_THROW(scripts_of("scenarios/bases"), std::logic_error);
  EXPECT_GT(scripts_of("scenarios").size(), 10U);
}

// Returns the files below a folder like tests/scripts that no test runs and no step uses as a base.
// The tests are transcripts_test, bad_scenarios_test and bad_baselines_test.
std::set<std::string> lost_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> scripts{folder / "baselines.txt"};
  for (const char* of : {"cli", "scenarios"}) {
    const auto more = scripts_of((folder / of).string());
    scripts.insert(scripts.end(), more.begin(), more.end());
  }
  std::set<std::filesystem::path> used(scripts.begin(), scripts.end());
  for (const auto& script : scripts) {
    for (const Step& step : read_script(script, {"file", "refuse", "$"}))
      used.insert(step.base.lexically_normal());
  }
  std::set<std::string> lost;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::filesystem::path& file = entry.path();
    const bool is_source = file.extension() == ".cpp" || file.extension() == ".h";
    if (!entry.is_directory() && !is_source && !used.contains(file))
      lost.insert(file.lexically_relative(folder).string());
  }
  return lost;
}

TEST(Scripts, AreEachCarriedOut) {
  EXPECT_EQ(lost_below(std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests/scripts"),
            std::set<std::string>{});
}

TEST(Scripts, AreLostInOtherPlacesAndAsBasesThatNoneUses) {
  const TemporaryFolder made;
  const std::filesystem::path scripts = made.path() / "scripts";
  const auto write = [&](const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories((scripts / file).parent_path());
    write_file(scripts / file, text);
  };
  write("good.toml", "a\n");
  write("baselines.txt", "refuse a base=good.toml\n----\n");
  write("cli/a.txt", "$ a\n----\n");
  write("scenarios/a.txt", "# file b base=bases/said.toml\nfile a base=bases/used.toml\n----\n");
  write("scenarios/bases/used.toml", "...\n");
  write("script.h", "");
  EXPECT_EQ(lost_below(scripts), std::set<std::string>{});

  const std::set<std::string> lost{"cli/sub/x.txt", "lost.txt", "scenarios/a.text",
                                   "scenarios/bases/a.txt", "scenarios/bases/said.toml"};
  for (const std::string& file : lost) write(file, "$ a\n----\n");
  EXPECT_EQ(lost_below(scripts), lost);
}

}  // namespace
}  // namespace stepgate
