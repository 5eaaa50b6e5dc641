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
#include "device/open_device.h"
#include "report/writers.h"
#include "verbs/baselines_folder.h"

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
  std::optional<std::uint64_t> noise;   // seed of a simulated device, apart from that of the steps
  std::vector<std::string> injected;    // what a step does that its plan does not say, for tests
};

// Arguments of a run on several ranks.
struct RankArguments {
  std::optional<int> count;          // that this process starts; absent: what the plans need
  std::filesystem::path rendezvous;  // where a launcher's ranks find each other
  std::string fault;                 // for tests: "1:load:KILL"
};

// Arguments of `stepgate new` alone.
struct StarterArguments {
  std::string like;
  std::filesystem::path file;
};

struct Arguments {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> overrides;
  std::string variant;
  std::string filter;
  std::vector<std::string> tags;           // run: only scenarios with any of them
  std::vector<std::string> excluded_tags;  // run: and with none of these
  bool verbose = false;                    // run: the full story of what passes, too
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
  std::string date;
  std::filesystem::path
      ledger;           // run, gate: what earlier runs found; history: instead of baselines
  std::string subject;  // run: what is under test; this build when empty
  std::string commit;
  std::int64_t runs = 1;
  std::string baseline_reset;  // accept: why earlier runs count no more
  DeviceChoice device{.spec = {}, .baselines = default_baselines(), .seed = 0};
  std::optional<double> budget_seconds;
  std::optional<std::uint64_t> seed;
  std::optional<double> stall_seconds;  // see stall_seconds_of
  GateArguments gate;
  WorkerArguments worker;
  StarterArguments starter;
  RankArguments ranks;
  UndecidedPolicy undecided = UndecidedPolicy::skip;
};

// A process that this one starts, a worker or a rank, must answer within so many seconds.
inline double stall_seconds_of(const Arguments& arguments) {
  constexpr double usual = 60;
  return arguments.stall_seconds.value_or(usual);
}

}  // namespace stepgate
