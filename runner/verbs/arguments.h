// SPDX-License-Identifier: MIT
// The arguments that were typed. command_line.cpp declares and checks them; a verb reads those that
// concern it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compare/gate/gate_part.h"
#include "line/line_arguments.h"
#include "report/writers.h"

namespace stepgate {

// Arguments of `stepgate gate` alone.
struct GateArguments {
  std::string base;  // programs
  std::string head;
  std::optional<std::string> base_command;  // whole command lines of workers instead: both or none
  std::optional<std::string> head_command;
  std::set<GatePart> only;                        // empty: all
  std::vector<std::filesystem::path> head_files;  // HEAD's own scenarios; empty: the same
  std::filesystem::path accepted;                 // what may be slower, by whose word
  std::string margin = "2%";
  bool stored = false;            // stored runs are BASE
  bool soak = false;              // HEAD's beginning is BASE
  bool self_test = false;         // BASE is HEAD too, with what is injected
  std::int64_t gates = 100;       // self-test: of identical programs
  std::int64_t trial_gates = 20;  // self-test: of every other trial
  double run_seconds = 1800;      // what a `run` of HEAD, and one of BASE, may take
  std::optional<std::int64_t> pairs;
  std::vector<std::string> workloads;  // patterns
  std::vector<std::string>
      passed_variables;  // that BASE and HEAD see besides (worker_environment.h)
  // "NAME=value" that one side alone sees, to compare two environments of a program.
  std::vector<std::string> base_variables;
  std::vector<std::string> head_variables;

  bool of_commands() const { return base_command.has_value(); }
  bool looks_at(GatePart part) const { return only.empty() || only.contains(part); }
};

// Arguments of `stepgate worker`, which a gate starts.
struct WorkerArguments {
  bool counts = false;                  // says what steps consist of, and times nothing
  std::vector<std::string> calibrated;  // scenario=value
};

// Arguments of `stepgate new` alone.
struct StarterArguments {
  std::string like;
  std::filesystem::path file;
};

struct Arguments : LineArguments {
  std::string variant;
  std::string filter;
  bool verbose = false;  // run: the full story of what passes, too
  std::filesystem::path json;
  bool as_json = false;           // list
  bool strict = false;            // check: refuse what could not fail
  std::filesystem::path junit;    // run: for CI systems
  std::filesystem::path summary;  // run: Markdown
  std::filesystem::path report;   // run: one page for people, as HTML
  Annotations annotations = Annotations::none;
  bool memory = false;            // plan: the memory of the step
  bool tracing = true;            // run: in a process of its own
  std::filesystem::path trace;    // run: timelines for other tools
  std::filesystem::path picture;  // run: a drawing of the steady steps; plan: of their memory
  std::filesystem::path plot;     // history: a drawing, or a folder of one for each variant
  std::filesystem::path profile;
  std::int64_t runs = 1;
  std::string baseline_reset;  // accept: why earlier runs count no more
  GateArguments gate;
  WorkerArguments worker;
  StarterArguments starter;
  UndecidedPolicy undecided = UndecidedPolicy::skip;
};

}  // namespace stepgate
