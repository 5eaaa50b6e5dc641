// SPDX-License-Identifier: MIT
// Runs a program with the library attached (injected/attach.cpp), and counts its steps.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/command.h"
#include "base/process/supervised.h"
#include "program/count_steps.h"
#include "program/shown_output.h"

namespace stepgate {

// Path of the socket by which a program is held (held.h); one that is counted never has it.
inline constexpr std::string_view hold_variable = "STEPGATE_HOLD";

// The library and the folder of the Python hook. They lie beside the program in a build folder, and
// in lib/stepgate where it is installed.
struct AttachFiles {
  std::filesystem::path library;
  std::filesystem::path hook_folder;
};
// Throws RequestError where one is missing.
AttachFiles attach_files();

struct AttachRequest {
  Command command;
  std::vector<std::string> variables = {};  // "NAME=VALUE" beside those of this process
  std::filesystem::path folder = {};        // that it runs in; empty: ours
  StepChoice steps = {};
  std::optional<std::chrono::nanoseconds> timeout = {};
  bool stops_after_window = false;  // the program is ended when its steps are counted
  bool quiet = false;               // its standard output is dropped; else it is shown
  bool has_input = true;            // it reads our standard input, unless that is a terminal
};

struct AttachedRun {
  int code = 0;    // of the program; 128 + n where signal n ended it
  int signal = 0;  // that ended it; 0: none
  bool timed_out = false;
  bool stopped = false;                   // after the window, as asked for
  std::vector<CountedProcess> processes;  // that loaded the library, by rank
};

// Returns when nothing of the program is left. Throws RequestError where it cannot be started or
// another tool is attached, Interrupted when a signal comes.
AttachedRun run_attached(const AttachRequest&, const AttachFiles&);

// Parts of every start of a program of somebody else.
// The environment: ours, with `variables` in place of namesakes, `added` in place of both, and the
// hook's folder first on PYTHONPATH. "NAME=VALUE" each.
std::vector<std::string> hooked_environment(std::vector<std::string> variables, const AttachFiles&,
                                            const std::vector<std::string>& added);
// Its outputs are shown; `quiet` drops its standard output. Without `has_input` it reads nothing.
ProgramStreams streams_of_program(const ShownOutput&, bool quiet, bool has_input);
// Throws RequestError where a profiler is attached to this process, or would be by `variables`.
void refuse_other_tools(const std::vector<std::string>& variables);

// "H200" of "NVIDIA H200" for every GPU of this machine, each model once; empty where the driver
// does not tell.
std::string gpus_of_this_machine();

}  // namespace stepgate
