// SPDX-License-Identifier: MIT
// The built program from outside, where a call and its answer say all: tests/scripts/cli. A step
// `file NAME` writes a file, and `$ COMMAND` is given to a shell in a folder of the script's own.
// Its output is standard output, then the lines of standard error with a `! ` before each, then the
// exit code in brackets unless it is 0. `simulate` is `run` on a device that no measurement
// changes, with the same noise every time; $SOURCE is the repository.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/command_line.h"
#include "tests/scripts/script.h"

namespace stepgate {
namespace {

const std::string source = STEPGATE_SOURCE_DIR;
const std::string words_of_scripts =
    "SOURCE=" + source +
    "; export LC_ALL=C PATH=" + std::filesystem::path(STEPGATE_PROGRAM).parent_path().string() +
    ":/usr/bin:/bin; simulate() { stepgate --baselines $SOURCE/tests/baselines run \"$@\" "
    "--device simulated:round-numbers --seed 1; }; ";

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += now.size())
    text.replace(at, old.size(), now);
  return text;
}

std::string transcript(const Finished& finished, const std::filesystem::path& place) {
  std::string text = finished.out;
  std::istringstream errors(finished.err);
  for (std::string line; std::getline(errors, line);) text += "! " + line + '\n';
  if (finished.exit_code != 0) text += '[' + std::to_string(finished.exit_code) + "]\n";
  return replaced(replaced(text, place.string(), "$PWD"), source, "$SOURCE");
}

class Transcripts : public CommandLine,
                    public testing::WithParamInterface<std::filesystem::path> {};

TEST_P(Transcripts, AreWhatTheProgramSays) {
  expect_script(
      GetParam(),
      {{"file",
        [&](const Step& step) {
          write(step.name, step.input);
          return std::string();
        }},
       {"$", [&](const Step& step) {
          const std::string command = words_of_scripts + step.name;
          return transcript(
              ChildProcess("/bin/bash", {"-o", "pipefail", "-c", command}, place()).wait(),
              place());
        }}});
}

INSTANTIATE_TEST_SUITE_P(Of, Transcripts, testing::ValuesIn(scripts_of("cli")),
                         [](const auto& script) { return script.param.stem().string(); });

}  // namespace
}  // namespace stepgate
