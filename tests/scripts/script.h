// SPDX-License-Identifier: MIT
// For tests only: a script is a file with many texts and the product's output for each. Its format
// is that of cockroachdb/datadriven, which etcd-io/raft has its tests in:
//
//   # A comment stands before a step.
//   refuse cap_as_a_number base=bases/knob.toml
//   alloc = { with = "caching", cap = 7 }
//   ----
//   cap_as_a_number.toml:3:35: 'alloc.cap' must be a size or a share ...
//
// A step begins with a command that the test knows, a name and options. Behind it stand the input,
// byte for byte, a line `----`, and the expected output up to an empty line or the end. An output
// that has empty lines stands between two lines `----` and two more. The command `$` has no
// options and no input: the rest of its line is its name.
//
// base=FILE, from the script's folder: the input replaces the line `...` of that file. A file
// without that line is patched by the input. A line of a patch is found in the rest of the file and
// kept (` LINE`) or removed (`-LINE`), or the first that contains it is changed (`~OLD -> NEW`);
// `+LINE` is added, and `-...` removes all that is left.
// escaped: `\xHH` in the input is a byte and `\\` a backslash; a backslash at the end of a line
// joins the next one to it. Options are applied in their order.
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
  std::string input;  // with its base, and its escapes replaced
  std::filesystem::path base;
  std::string expected;
  // Offsets of the expected output in the script, with the lines `----` of one with empty lines.
  std::size_t output_begin = 0;
  std::size_t output_end = 0;
};

// Reads at least one step. Throws RequestError with the line for an unknown command, a step without
// `----`, a repeated name of a command, input of a `$`, or a base that does not fit its patch.
std::vector<Step> read_script(const std::filesystem::path& script,
                              const std::set<std::string>& commands);

// The scripts of a folder of tests/scripts, by name. Throws std::logic_error if there are none.
std::vector<std::filesystem::path> scripts_of(const std::string& folder);

// A command gives its output for a step. It may throw: the test fails, with these words.
using Commands = std::map<std::string, std::function<std::string(const Step&)>>;

// Carries out every step in order and fails the test for each whose output is another one. To
// update is to write the new outputs into the script and to leave its other bytes as they are.
void expect_script(const std::filesystem::path& script, const Commands&,
                   bool update = updates_goldens());

}  // namespace stepgate
