// SPDX-License-Identifier: MIT
// Tests that docs/memory.md shows the program's printed output and pictures, shortened where it
// says "...".
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command_line.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

struct Shown {
  std::vector<std::string> arguments;
  std::vector<std::string> lines;
};

// The indented blocks of a page that begin with a command of stepgate.
std::vector<Shown> commands_of(const std::string& page) {
  const std::string indent = "    ";
  const std::string command = indent + "$ stepgate ";
  std::vector<Shown> all;
  bool inside = false;
  std::istringstream text(page);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(command)) {
      std::istringstream words(line.substr(command.size()));
      all.push_back({{std::istream_iterator<std::string>(words), {}}, {}});
      inside = true;
    } else if (inside && (line.empty() || line.starts_with(indent))) {
      all.back().lines.push_back(line.substr(std::min(line.size(), indent.size())));
    } else {
      inside = false;
    }
  }
  return all;
}

// The first line that `out` does not print after those before it; empty if it prints them all.
std::string not_printed(const Shown& shown, const std::string& out) {
  std::istringstream printed(out);
  std::string line;
  for (const std::string& expected : shown.lines) {
    if (expected.empty() || expected.find_first_not_of(' ') == expected.find("...")) continue;
    do {
      if (!std::getline(printed, line)) return expected;
    } while (line != expected);
  }
  return "";
}

class PageOfMemory : public CommandLine {
 protected:
  // Runs a command as if typed in the project's folder, but without writing pictures there.
  Finished type(std::vector<std::string> arguments) const {
    for (std::string& argument : arguments) {
      if (argument.ends_with(".svg")) argument = (place() / argument).string();
    }
    return ChildProcess(STEPGATE_PROGRAM, arguments, STEPGATE_SOURCE_DIR).wait();
  }
};

TEST_F(PageOfMemory, ShowsWhatIsPrinted) {
  const std::vector<Shown> commands = commands_of(text_of(STEPGATE_SOURCE_DIR "/docs/memory.md"));
  ASSERT_EQ(commands.size(), 2U);
  for (const Shown& shown : commands) {
    const Finished run = type(shown.arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(shown.lines.size(), 5U);
    EXPECT_EQ(not_printed(shown, run.out), "") << run.out;
  }
}

TEST_F(PageOfMemory, WouldNotShowAnotherNumberOrAnotherOrder) {
  const Shown shown{{}, {"one  1", "...", "three  3"}};
  EXPECT_EQ(not_printed(shown, "one  1\ntwo  2\nthree  3\n"), "");
  EXPECT_EQ(not_printed(shown, "one  1\ntwo  2\nthree  4\n"), "three  3");
  EXPECT_EQ(not_printed(shown, "three  3\none  1\n"), "three  3");
}

TEST_F(PageOfMemory, HasThePictureThatIsDrawn) {
  const Finished run =
      type({"plan", "--memory", "scenarios/everything_wrong.toml", "--picture", "memory.svg"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  expect_golden(STEPGATE_SOURCE_DIR "/docs/everything_wrong_memory.svg",
                text_of(place() / "memory.svg"));
}

}  // namespace
}  // namespace stepgate
