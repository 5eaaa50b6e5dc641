// SPDX-License-Identifier: MIT
// The values of the worker protocol: one JSON object per line, a request from stepgate and an
// answer from the worker. ci/WORKER.md describes it for authors of workers. This has the reading
// and writing for both sides; child.h starts the processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/record/fields.h"
#include "base/record/json_forms.h"
#include "device/gradients.h"
#include "plan/plan_facts.h"

namespace stepgate {

// Must change whenever an older worker would misunderstand or be misunderstood.
constexpr int protocol_version = 1;

namespace worker_wire {

inline constexpr std::size_t most_workloads = 10'000;
inline constexpr Whole steps{1, 1'000'000'000};
inline constexpr Whole bytes{0, 1'000'000'000'000'000};
inline constexpr Whole steps_if_any{0, steps.most};
// Names are printed in reports, so they must not contain control sequences for a terminal.
inline constexpr Text name{1, 200};
inline constexpr Text words{0, 1000};
inline constexpr ListOf<name> names{most_workloads};
inline constexpr ListOf<name> different_names{most_workloads, true};
inline constexpr ListOf<OfType{}> records{most_workloads};
// Counts and times are never negative.
inline constexpr ObjectOf<Amount{}> numbers{most_workloads, words};

inline constexpr ObjectOf<words> texts{most_workloads, words};

// A gradient in the text form of text_of.
struct Sketch {
  static RecordJson write(const GradientSketch& sketch) { return text_of(sketch); }
  static void read(const RecordJson& json, GradientSketch& sketch) {
    const auto read = json.is_string() ? sketch_of(json.get_ref<const std::string&>())
                                       : std::optional<GradientSketch>();
    if (!read) throw WrongRecord(json, "is no gradient");
    sketch = *read;
  }
};
inline constexpr ObjectOf<Sketch{}> gradients{most_workloads, words};

}  // namespace worker_wire

struct SayHello {};
struct LoadWorkload {
  std::string workload;
};
struct RunSteps {
  std::int64_t steps = 1;           // scored; at least 1
  std::int64_t wash_out_steps = 0;  // run first, unscored
};
struct UnloadWork {};
// Allowed only for a worker with `counts` in its hello.
struct CountWorkload {
  std::string workload;
  bool times = false;  // measure the parts of a step too
};
struct Quit {};

template <>
inline constexpr auto fields_of<SayHello> = fields<>;
template <>
inline constexpr auto fields_of<LoadWorkload> =
    fields<described<&LoadWorkload::workload, Named("work"), worker_wire::name>>;
template <>
inline constexpr auto fields_of<RunSteps> =
    fields<described<&RunSteps::steps, worker_wire::steps>,
           described<&RunSteps::wash_out_steps, Named("wash_out"), may_be_missing,
                     worker_wire::steps_if_any>>;
template <>
inline constexpr auto fields_of<UnloadWork> = fields<>;
template <>
inline constexpr auto fields_of<CountWorkload> =
    fields<described<&CountWorkload::workload, Named("work"), worker_wire::name>,
           described<&CountWorkload::times, only_if_any>>;
template <>
inline constexpr auto fields_of<Quit> = fields<>;

using Request = std::variant<SayHello, LoadWorkload, RunSteps, UnloadWork, CountWorkload, Quit>;

std::string to_line(const Request&);

// A scenario without any workload that can be timed, and the reason.
struct LeftOut {
  std::string scenario;
  std::string why;
  bool operator==(const LeftOut&) const = default;
};

struct Hello {
  std::string program;
  std::string version;
  std::string device;      // in words; may be empty
  bool simulated = false;  // reported times are not wall times
  bool stand_in = false;   // simulated because there was no GPU, without being asked to
  std::vector<std::string> workloads;
  // The following fields are optional.
  bool counts = false;                    // whether it counts the parts of its workloads' steps
  std::vector<std::string> planned = {};  // workloads that are counted and never timed
  // Kernels of workloads whose time it tells from traces, by name (kernel_workload.h). They are
  // loaded and run as workloads are.
  std::vector<std::string> kernels = {};
  std::vector<LeftOut> left_out = {};
  std::vector<std::string> calibrated = {};  // "scenario=value", where a value was found
  std::int64_t memory_bytes = 0;             // of the device; 0 means unknown
  bool operator==(const Hello&) const = default;
};

struct Loaded {
  std::int64_t wash_out_steps = 0;  // smallest sensible wash-out of a run
  std::int64_t period_steps = 1;    // of all periodic work; runs are multiples of it
  // Work that the workload does only every n steps, whose counts are not given. A run whose length
  // is not a multiple of n does not measure it fully. Optional.
  std::vector<PeriodicWork> periodic = {};
  // The most memory of the device that the workload's processes use, and what the device has, where
  // that is known once it is loaded: so many pairs can be loaded at once. 0: unknown.
  std::int64_t memory_bytes = 0;
  std::int64_t device_memory_bytes = 0;
};

struct Ran {
  std::int64_t steps = 0;  // scored
  std::chrono::nanoseconds elapsed{0};
};

// A line of a user's program from which calls come.
struct CountedLine {
  std::string count;  // "waits" (program/count_steps.h)
  std::string words;  // "train.py main: loss.item()", the same where only its number changes
  std::string file;
  std::int64_t line = 0;  // counted from 1; 0: unknown
  double a_step = 0;
  bool operator==(const CountedLine&) const = default;
};

// The counts of one step of a workload, by name of the metric. Another build may have more metrics.
struct StepCounts {
  using Numbers = std::map<std::string, double>;
  Numbers planned;       // from the plan
  Numbers traced;        // from a trace, where they must equal the plan; empty without one
  std::string untraced;  // why there is no trace
  Numbers operations;    // of the plan, by "phase: name", how often
  Numbers waits;         // from the trace: blocking calls, by phase
  Numbers time;          // from the trace: the parts of the step in seconds, if requested
  std::vector<std::string> losses;  // the bits of the first losses, in hexadecimal
  // The following fields are optional.
  std::map<std::string, GradientSketch> gradients = {};  // of an early step, by parameter
  double gradient_bound = 0;  // allowed relative difference from another build
  // Allowed relative difference of losses; 0 where they must be the same bits. Another build of a
  // library of kernels may add in another order, and cuDNN's attention in any.
  double loss_bound = 0;
  // By parameter: relative difference between its first gradient and that of a repetition of the
  // step with the same kernels, after all counting.
  Numbers begun_again = {};
  Numbers kernels = {};  // from the trace: seconds of a step by kernel, beside `time`
  // The following fields are those of a user's program, whose counts are `planned`, by the name of
  // the metric or of the row of call_count_table. It has no counts where its steps could not be
  // counted; `untraced` then says why.
  std::string counted = {};                          // "20 steps from step 11 on of 1 process"
  std::map<std::string, std::string> versions = {};  // that some counts belong to: "torch"
  std::vector<CountedLine> lines = {};
};

template <>
inline constexpr auto fields_of<LeftOut> = fields<described<&LeftOut::scenario, worker_wire::name>,
                                                  described<&LeftOut::why, worker_wire::words>>;
template <>
inline constexpr auto fields_of<Hello> =
    fields<described<&Hello::program, worker_wire::name>,
           described<&Hello::version, only_if_any, worker_wire::name>,
           described<&Hello::device, only_if_any, worker_wire::name>,
           described<&Hello::simulated, may_be_missing>,
           described<&Hello::stand_in, may_be_missing>,
           described<&Hello::workloads, Named("works"), worker_wire::different_names>,
           described<&Hello::counts, may_be_missing>,
           described<&Hello::planned, may_be_missing, worker_wire::different_names>,
           described<&Hello::kernels, only_if_any, worker_wire::different_names>,
           described<&Hello::left_out, may_be_missing, worker_wire::records>,
           described<&Hello::calibrated, may_be_missing, worker_wire::names>,
           described<&Hello::memory_bytes, may_be_missing, worker_wire::bytes>>;
template <>
inline constexpr auto fields_of<PeriodicWork> =
    fields<described<&PeriodicWork::name, worker_wire::name>,
           described<&PeriodicWork::every, worker_wire::steps>,
           described<&PeriodicWork::rough_seconds, Named("seconds"), Amount{}>,
           described<&PeriodicWork::counts, not_carried>>;
template <>
inline constexpr auto fields_of<Loaded> =
    fields<described<&Loaded::wash_out_steps, Named("wash_out"), may_be_missing,
                     worker_wire::steps_if_any>,
           described<&Loaded::period_steps, Named("period"), may_be_missing, worker_wire::steps>,
           described<&Loaded::periodic, may_be_missing, worker_wire::records>,
           described<&Loaded::memory_bytes, only_if_any, worker_wire::bytes>,
           described<&Loaded::device_memory_bytes, only_if_any, worker_wire::bytes>>;
template <>
inline constexpr auto fields_of<Ran> =
    fields<described<&Ran::steps, worker_wire::steps>,
           described<&Ran::elapsed, Named("elapsed_ns"), Whole{1, 3'600'000'000'000}>>;
template <>
inline constexpr auto fields_of<CountedLine> =
    fields<described<&CountedLine::count, worker_wire::name>,
           described<&CountedLine::words, worker_wire::words>,
           described<&CountedLine::file, worker_wire::words>,
           described<&CountedLine::line, Whole{0, INT32_MAX}>,
           described<&CountedLine::a_step, Amount{}>>;
template <>
inline constexpr auto fields_of<StepCounts> =
    fields<described<&StepCounts::planned, worker_wire::numbers>,
           described<&StepCounts::traced, worker_wire::numbers>,
           described<&StepCounts::untraced, worker_wire::words>,
           described<&StepCounts::operations, worker_wire::numbers>,
           described<&StepCounts::waits, worker_wire::numbers>,
           described<&StepCounts::time, worker_wire::numbers>,
           described<&StepCounts::losses, worker_wire::names>,
           described<&StepCounts::gradients, may_be_missing, worker_wire::gradients>,
           described<&StepCounts::gradient_bound, may_be_missing, Amount{.is_share = true}>,
           described<&StepCounts::loss_bound, only_if_any, Amount{.is_share = true}>,
           described<&StepCounts::begun_again, may_be_missing, worker_wire::numbers>,
           described<&StepCounts::kernels, only_if_any, worker_wire::numbers>,
           described<&StepCounts::counted, only_if_any, worker_wire::words>,
           described<&StepCounts::versions, only_if_any, worker_wire::texts>,
           described<&StepCounts::lines, only_if_any, worker_wire::records>>;

std::string to_line(const Hello&);
std::string to_line(const StepCounts&);
std::string to_line(const Loaded&);
std::string to_line(const Ran&);
std::string unloaded_line();
// `is_comparable` is false where the program works and its times mean nothing.
std::string error_line(const std::string& message, bool is_comparable = true);

// A problem with a line: "has no 'steps'".
struct Problem {
  std::string fact;
};
struct WorkerSays {
  std::string error;
  bool is_comparable = true;
};

template <class Value>
using Answer = std::variant<Value, WorkerSays, Problem>;

std::variant<Request, Problem> read_request(std::string_view line);

Answer<Hello> read_hello(std::string_view line);
Answer<Loaded> read_loaded(std::string_view line);
Answer<Ran> read_ran(std::string_view line);
Answer<UnloadWork> read_unloaded(std::string_view line);
Answer<StepCounts> read_counts(std::string_view line);

}  // namespace stepgate
