// SPDX-License-Identifier: MIT
// The command-line arguments. command_line.cpp declares and checks them; each verb reads its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/process/command.h"
#include "compare/gate/gate_part.h"
#include "line/line_arguments.h"
#include "report/run_info.h"
#include "report/writers.h"

namespace stepgate {

// Arguments of `stepgate gate` alone.
struct GateArguments {
  std::string base;  // program of BASE or HEAD
  std::string head;
  // The scenario of a user's program; base and head are then folders in which it runs.
  std::filesystem::path program;
  std::filesystem::path caches;  // of what each side compiles, of a gate of a program
  // Libraries from which all kernels come that variants replace, of two otherwise equal sides: both
  // or none.
  std::string base_kernels;
  std::string head_kernels;
  std::filesystem::path source;  // of head_kernels, for people who read a report
  // Complete command lines of workers instead: both or none.
  std::optional<std::string> base_command;
  std::optional<std::string> head_command;
  std::set<GatePart> only;                        // empty means all
  std::vector<std::filesystem::path> head_files;  // HEAD's own scenarios; empty: those of BASE
  std::filesystem::path accepted;                 // file of accepted changes
  std::string margin = "2%";
  std::string margin_source;      // "stepgate.toml:2"; empty: an option, or the default
  bool stored = false;            // stored runs take the place of BASE
  bool soak = false;              // the beginning of HEAD's launch takes the place of BASE
  bool self_test = false;         // BASE is compared with itself, plus injections
  std::int64_t gates = 100;       // self-test: gates of identical programs
  std::int64_t trial_gates = 20;  // self-test: gates of every other trial
  double run_seconds = 1800;      // time limit for a `run` of HEAD, and one of BASE
  std::optional<std::int64_t> pairs;
  std::vector<std::string> workloads;  // patterns
  std::vector<std::string>
      passed_variables;  // additionally passed to BASE and HEAD (worker_environment.h)
  // "NAME=value" for one side only, to compare two environments of a program.
  std::vector<std::string> base_variables;
  std::vector<std::string> head_variables;
  // "knob=value" for one side only, besides the overrides of both.
  std::vector<std::string> base_overrides;
  std::vector<std::string> head_overrides;

  bool of_commands() const { return base_command.has_value(); }
  bool of_program() const { return !program.empty(); }
  bool of_kernels() const { return !base_kernels.empty(); }
  bool looks_at(GatePart part) const { return only.empty() || only.contains(part); }
};

// Arguments of `stepgate worker`, which a gate starts.
struct WorkerArguments {
  bool counts = false;                  // count steps only, without timing
  std::vector<std::string> calibrated;  // scenario=value
  std::filesystem::path program;        // the scenario of a user's program, instead of others
  std::filesystem::path folder;         // in which that runs; empty: ours
};

// The default of `read --skip-steps`: the profiler has its own warm-up.
inline constexpr std::int64_t steps_before_those_of_a_profiler = 0;

// Arguments of `stepgate attach` alone.
struct AttachArguments {
  Command command;
  std::vector<std::string> expect;     // assertions
  std::filesystem::path accept;        // written with the counts
  std::filesystem::path against;       // counts that are accepted
  std::vector<std::string> variables;  // "NAME=value" for the program
  std::optional<std::int64_t> skip_steps;
  std::optional<std::int64_t> steps;
  std::string step_range;
  std::string step_kernel;
  std::string step_call;
  std::optional<double> timeout_seconds;
  bool stop = false;   // the program, once its steps are counted
  bool quiet = false;  // drops its standard output
};

// Arguments of `stepgate read` alone; what its steps are, and assertions, are those of `attach`.
struct ReadArguments {
  std::vector<std::filesystem::path> traces;
  std::vector<std::filesystem::path> base;
  std::filesystem::path scenario;  // written with the synthetic step of the trace
  std::string cap;                 // of a snapshot of an allocator, in bytes with a unit
};

// Arguments of `stepgate kernel` alone.
struct KernelArguments {
  std::string action;              // describe, check or new
  std::vector<std::string> names;  // describe: kernels and files; check: a file and a kernel
  std::filesystem::path folder;    // new: where its files are written; empty: here
  std::string function;            // of the library; empty: the kernel's name
  std::vector<std::filesystem::path> scenarios;  // check: whose launches are tried too
  std::filesystem::path place;  // check: in this process, and its present trial goes here
};

// Arguments of `stepgate keep` alone. HEAD and BASE are those of a gate.
struct KeepArguments {
  std::filesystem::path ledger;  // of candidates
  std::string gain = "0.5%";
  std::string kernel;             // that HEAD and BASE, which are libraries then, stand in for
  std::string workspace = "0 B";  // device memory that HEAD's library may use
};
inline constexpr double usual_seconds_of_a_candidate = 60;

// Arguments of `stepgate new` alone.
struct StarterArguments {
  std::string like;
  std::filesystem::path file;
};

// The variable that names the page of a step of a job on GitHub.
inline constexpr const char* step_summary_variable = "GITHUB_STEP_SUMMARY";

struct Arguments : LineArguments {
  CommandOfRun command;  // that these were read from
  std::string variant;
  std::string filter;
  bool verbose = false;    // run: the full story of what passes, too
  bool fail_fast = false;  // run: ends at the first scenario that fails
  std::filesystem::path json;
  bool as_json = false;                // list
  bool strict = false;                 // check: refuse assertions that cannot fail
  std::filesystem::path junit;         // run: for CI systems
  std::filesystem::path summary;       // run: Markdown
  std::filesystem::path step_summary;  // what verbs that report to CI append to; empty: nothing
  std::filesystem::path report;        // run: one page for people, as HTML
  Annotations annotations = Annotations::none;
  bool memory = false;            // plan: the memory of the step
  bool tracing = true;            // run: trace in a separate process
  std::filesystem::path trace;    // run: timelines for other tools
  std::filesystem::path picture;  // run: picture of the steady steps; plan: of their memory
  std::filesystem::path plot;     // history: a picture, or a folder with one for each variant
  std::filesystem::path profile;
  std::int64_t runs = 1;
  std::string baseline_reset;  // accept: why earlier runs count no more
  GateArguments gate;
  WorkerArguments worker;
  KernelArguments kernel;
  KeepArguments keep;
  StarterArguments starter;
  AttachArguments attach;
  ReadArguments read;
  UndecidedPolicy undecided = UndecidedPolicy::skip;
};

}  // namespace stepgate
