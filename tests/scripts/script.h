// SPDX-License-Identifier: MIT
// For tests only: a script is a file with many texts and the product's output for each. Its format
// is that of cockroachdb/datadriven, which the tests of etcd-io/raft use:
//
//   # A comment precedes a step.
//   refuse cap_as_a_number base=bases/knob.toml
//   alloc = { with = "caching", cap = 7 }
//   ----
//   cap_as_a_number.toml:3:35: 'alloc.cap' must be a size or a share ...
//
// A step begins with a command that the test defines, a name and options. Then follow the input,
// byte for byte, a line `----`, and the expected output up to an empty line or the end. An output
// with empty lines is enclosed by two lines `----` on each side. The command `$` has no options and
// no input: the rest of its line is its name.
//
// base=FILE names a file relative to the script's folder. The input replaces the line `...` of that
// file. If the file has no such line, the input is a patch of it. A patch line ` LINE` keeps a line
// that is found in the rest of the file, and `-LINE` removes it. `~OLD -> NEW` changes the first
// line that contains OLD. `+LINE` adds a line, and `-...` removes the rest.
// `escaped` means that `\xHH` in the input is a byte and `\\` a backslash; a backslash at the end
// of a line joins the next line to it. Options are applied in their order.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/golden.h"

namespace stepgate {

struct Step {
  int line = 0;  // of the command, counted from 1
  std::string command;
  std::string name;
  std::string input;  // after base and escapes are applied
  std::filesystem::path base;
  std::string expected;
  // Offsets of the expected output in the script; they include the lines `----` around an output
  // with empty lines.
  std::size_t output_begin = 0;
  std::size_t output_end = 0;
};

// Reads a script with at least one step. Throws RequestError with the line for an unknown command,
// a step without `----`, or a repeated name of a command. It also throws for input of a `$`, and
// for a base that does not fit its patch.
std::vector<Step> read_script(const std::filesystem::path& script,
                              const std::set<std::string>& commands);

// Returns the scripts of a folder of tests/scripts, by name. Throws std::logic_error if there are
// none.
std::vector<std::filesystem::path> scripts_of(const std::string& folder);

// A command returns its output for a step. If it throws, the test fails with the message.
using Commands = std::map<std::string, std::function<std::string(const Step&)>>;

// Runs every step in order, and fails the test for each step with another output than expected.
// With `update`, writes the new outputs into the script and leaves its other bytes unchanged.
void expect_script(const std::filesystem::path& script, const Commands&,
                   bool update = updates_goldens());

}  // namespace stepgate
