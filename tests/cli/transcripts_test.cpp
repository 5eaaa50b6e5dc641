// SPDX-License-Identifier: MIT
// Tests calls of the built program with their outputs, from tests/scripts/cli. A step `file NAME`
// writes a file, and `$ COMMAND` runs in a shell in the script's own folder.
// The output is standard output, then the lines of standard error with `! ` before each, then the
// exit code in brackets unless it is 0; for a pipe, the codes of all commands. A failed command
// ends the step.
// `simulate` is `run` on a device with constant times and the same noise every time. $SOURCE is the
// repository, through a path with a space. The shell has only the variables of call_of.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/command_line.h"
#include "tests/scripts/script.h"

namespace stepgate {
namespace {

const std::string source = STEPGATE_SOURCE_DIR;
// `kill $$` and `exit` write no codes.
const std::string words_of_scripts =
    "set -eo pipefail; codes=$PWD.codes; trap 'echo -n \"${PIPESTATUS[*]}\" > \"$codes\"' ERR; "
    "simulate() { stepgate --baselines \"$SOURCE/tests/baselines\" run \"$@\" "
    "--device simulated:round-numbers --seed 1; }; ";

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += now.size())
    text.replace(at, old.size(), now);
  return text;
}

// Returns a call of env that passes a command to a shell.
std::vector<std::string> call_of(const std::string& command, const std::string& link_to_source) {
  const auto programs = std::filesystem::path(STEPGATE_PROGRAM).parent_path().string();
  std::vector<std::string> call{"-i", "LC_ALL=C", "PATH=" + programs + ":/usr/bin:/bin",
                                "SOURCE=" + link_to_source,
                                "STEPGATE_BASELINES=" + link_to_source + "/baselines"};
  for (const char* name : {"TMPDIR", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS",
                           "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) call.push_back(name + ("=" + std::string(value)));
  }
  call.insert(call.end(), {"/bin/bash", "-c", words_of_scripts + command});
  return call;
}

std::string transcript(const Finished& finished, const std::filesystem::path& place,
                       const std::string& link_to_source) {
  std::string text = finished.out;
  std::istringstream errors(finished.err);
  for (std::string line; std::getline(errors, line);) text += "! " + line + '\n';
  const std::string codes = text_of(place.string() + ".codes");
  if (finished.exit_code != 0)
    text += '[' + (codes.empty() ? std::to_string(finished.exit_code) : codes) + "]\n";
  for (const std::string& path : {link_to_source, source}) text = replaced(text, path, "$SOURCE");
  return replaced(text, place.string(), "$PWD");
}

class Transcripts : public CommandLine,
                    public testing::WithParamInterface<std::filesystem::path> {};

TEST_P(Transcripts, AreWhatTheProgramSays) {
  const std::string link_to_source = place().string() + " of source";
  std::filesystem::create_directory_symlink(source, link_to_source);
  expect_script(
      GetParam(),
      {{"file",
        [&](const Step& step) {
          write(step.name, step.input);
          return std::string();
        }},
       {"$", [&](const Step& step) {
          std::filesystem::remove(place().string() + ".codes");
          return transcript(
              ChildProcess("/usr/bin/env", call_of(step.name, link_to_source), place()).wait(),
              place(), link_to_source);
        }}});
}

INSTANTIATE_TEST_SUITE_P(Of, Transcripts, testing::ValuesIn(scripts_of("cli")),
                         [](const auto& script) { return script.param.stem().string(); });

}  // namespace
}  // namespace stepgate
