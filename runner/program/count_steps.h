// SPDX-License-Identifier: MIT
// From the records of a process to the counts of one of its steps.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/read_records.h"
#include "scenario/assertions/metric.h"

namespace stepgate {

// Counts of a step. A call that fails, or that becomes a node of a graph while its stream is
// captured, counts nowhere.
enum class CallCount {
  waits,            // waits that the program asks for: device, stream, event
  device_waits,     // those of them that wait for the whole device
  blocking_copies,  // copies in which the host can wait: synchronous, or with a pageable end
  blocking_frees,   // releases and pins in which the host can wait
  pageable_copies,
  copies_to_device,
  copies_to_host,
  copies,  // all of them, those in graphs too
  copy_bytes,
  device_allocs,
  device_frees,
  pinned_allocs,
  launches,  // of kernels and of graphs
  graph_launches,
  graph_kernels,  // launched by graphs
  fills,
  polls,
  collectives,     // launches of NCCL's kernels, outside graphs
  unknown_copies,  // copies whose ends are not known: they may be pageable
};
constexpr std::size_t call_count_count = 19;
using CallCounts = std::array<double, call_count_count>;

// Uses of a count in comparisons. `exact`: every GPU has the same. `version`: it is the same only
// with the same GPU, CUDA and libraries. `neither`: it is shown and never compared.
enum class CountIs { exact, version, neither };

struct CallCountRow {
  CallCount count;
  std::string_view name;   // in files and JSON
  std::string_view words;  // in tables
  CountIs compared;
  std::optional<Metric> metric;  // in assertions
};
std::span<const CallCountRow> call_count_table();
const CallCountRow& row_of(CallCount);

// The value of a metric, if the counts have it.
std::optional<double> value_of(const CallCounts&, Metric);

// The steps that are counted.
struct StepChoice {
  std::string range = attached::default_step_range;  // NVTX range that begins a step
  bool names_range = false;                          // the user chose it
  std::string kernel;  // regular expression of a kernel that ends a step; empty: none is named
  std::string call;    // CUDA call that ends a step, as "cudaGraphLaunch"; empty: none is named
  std::int64_t skip = 10;
  std::int64_t steps = 20;
  // A program with fewer steps: the later half of them is counted, behind a `skip` that the user
  // chose all of them, and none where the user chose `steps`.
  bool is_default = true;
  bool names_skip = false;
  // Reasons name keys of a scenario, and not options of a command line.
  bool is_of_scenario = false;

  // "--skip-steps" or "program.skip_steps".
  std::string name_of(std::string_view option) const;
};

// A line from which calls of one kind come.
struct CountedPlace {
  CallCount count = CallCount::waits;
  std::string call;       // "cudaStreamSynchronize"
  CallPlace place;        // no line where the process runs no Python
  std::string range;      // innermost NVTX range; empty: none
  double a_step = 0;      // over the steps of which all lines are known
  std::int64_t seen = 0;  // lines that were taken
  double bytes = 0;       // of one copy, on average
};

struct CountedProcess {
  std::uint64_t process = 0;
  std::string rank;
  std::string variant;          // of a scenario; empty: the one program of `attach`
  std::string program;          // the command in a few words
  std::string problem;          // why no step is counted, in words; empty: they are
  bool hides_calls = false;     // its calls were not recorded, or not all of its window
  std::string cupti;            // "CUPTI 13.0.1 of .../nvidia/cu13"
  std::string marks;            // "60 ends of AdamW.step"
  std::int64_t first_step = 0;  // counted from 1
  std::int64_t steps = 0;
  CallCounts mean{};
  std::vector<CallCounts> each;
  std::vector<CountedPlace> places;             // most per step first
  std::vector<std::string> notes;               // what a reader of the counts should know
  std::map<Metric, std::string> unknown = {};   // metrics that its records cannot tell, and why
  double launches_in_all = 0;                   // of the whole life of the process
  std::map<std::string, std::string> versions;  // "gpu", "torch", "cuda"
};

// Until when names of kernels are looked at. All else takes time by the size of the files.
using Deadline = std::chrono::steady_clock::time_point;
constexpr Deadline no_deadline = Deadline::max();

// Boundaries that the chosen steps have.
std::size_t boundaries_wanted(const StepChoice&);
// Boundaries between steps that are known so far, of the source that is counted.
std::size_t boundaries_in(const RecordedProcess&, const StepChoice&, Deadline = no_deadline);

CountedProcess count_steps(const RecordedProcess&, const StepChoice&, Deadline = no_deadline);

// Steps in which a count differs from that of most steps: "351, 357 in steps 20, 30 (every 10th)";
// empty where all are alike.
std::string uneven_in_words(const CountedProcess&, CallCount);

}  // namespace stepgate
