// SPDX-License-Identifier: MIT
// A job that a verb gives another process of this program, `stepgate serve`, as one line of JSON on
// its standard input. After this line, both use the protocol of the task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/process/command.h"
#include "base/record/json_forms.h"
#include "line/line_arguments.h"
#include "scenario/scenario.h"

namespace stepgate {

// Traces scenarios as the lines of trace_all.h request.
struct TraceTask {
  bool operator==(const TraceTask&) const = default;
};

// Runs as one rank as messages of rank_protocol.h request.
struct RankTask {
  std::int64_t rank = 0;
  bool traces = false;
  std::int64_t probes = 0;  // number of ranks for measuring collectives; 0: runs scenarios
  std::optional<std::uint64_t> noise;  // as LineArguments::noise
  std::vector<std::string> injected;
  std::string fault;  // for tests: "load:KILL"
  bool operator==(const RankTask&) const = default;
};

// Measures a run of the job's only scenario and stores it, as `accept` does, without further
// output.
struct AcceptTask {
  std::string commit;
  std::string baseline_reset;
  bool gate_checked = false;  // an earlier run of the same command has checked the gate
  std::optional<int> ranks;
  std::optional<double> stall_seconds;
  std::optional<double> budget_seconds;
  bool operator==(const AcceptTask&) const = default;
};

using Task = std::variant<TraceTask, RankTask, AcceptTask>;

struct Job {
  std::string baselines;
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::vector<std::string> tags;
  std::vector<std::string> excluded_tags;
  std::string device;  // empty: the best available
  std::uint64_t seed = 0;
  Task task;
  bool operator==(const Job&) const = default;
};

template <>
inline constexpr auto fields_of<TraceTask> = fields<>;
template <>
inline constexpr auto fields_of<RankTask> =
    fields<described<&RankTask::rank, Whole{0, most_ranks - 1}>, &RankTask::traces,
           described<&RankTask::probes, Whole{0, most_ranks}>, &RankTask::noise,
           &RankTask::injected, &RankTask::fault>;
template <>
inline constexpr auto fields_of<AcceptTask> =
    fields<&AcceptTask::commit, &AcceptTask::baseline_reset, &AcceptTask::gate_checked,
           &AcceptTask::ranks, &AcceptTask::stall_seconds, &AcceptTask::budget_seconds>;
template <>
inline constexpr auto fields_of<Job> =
    fields<&Job::baselines, &Job::files, &Job::overrides, &Job::tags, &Job::excluded_tags,
           &Job::device, &Job::seed, &Job::task>;

// Makes the job for a task, with the scenarios and knobs of the requesting verb.
Job job_of(const LineArguments&, std::string device, std::uint64_t seed, Task);
// Returns the arguments with which a user would start the job; data of the task is left out.
LineArguments arguments_of(const Job&);

std::string to_line(const Job&);
// Throws RequestError for a job that no verb of this build makes.
Job read_job(std::string_view line);

// The command that starts this program for reading a job.
Command serve_command();

}  // namespace stepgate
