// SPDX-License-Identifier: MIT
#include "line/job.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/process/run_program.h"
#include "base/text/diagnostic.h"
#include "base/text/json_line.h"

namespace stepgate {
namespace {

// The names are in the order of Task's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Task>> task_names{"trace", "rank",
                                                                             "accept"};

RequestError no_job(const std::string& fact) {
  return {"the job on standard input " + fact,
          "`stepgate serve` is started by other verbs: use those (`stepgate --help`)"};
}

}  // namespace

// The JSON form of a task: {"rank": {"rank": 1, ...}}.
template <>
struct JsonForm<Task> {
  static RecordJson write(const Task& task) {
    RecordJson json;
    json[std::string(task_names[task.index()])] =
        std::visit([](const auto& one) { return record_json(one); }, task);
    return json;
  }
  static void read(const RecordJson& json, Task& task) {
    const auto named = [&](std::string_view name) { return json.contains(name); };
    const auto name = std::ranges::find_if(task_names, named);
    if (name == task_names.end()) throw WrongRecord(json, "is a task that nobody carries out");
    try {
      task = read_alternative<Task>(static_cast<std::size_t>(name - task_names.begin()),
                                    json[std::string(*name)]);
    } catch (const WrongRecord& wrong) {
      throw wrong.within(*name);
    }
  }
};

Job job_of(const LineArguments& arguments, std::string device, std::uint64_t seed, Task task) {
  Job job{.baselines = arguments.device.baselines.users.string(),
          .files = {},
          .overrides = arguments.overrides,
          .tags = arguments.tags,
          .excluded_tags = arguments.excluded_tags,
          .device = std::move(device),
          .seed = seed,
          .task = std::move(task)};
  for (const auto& file : arguments.files) job.files.push_back(file.string());
  return job;
}

LineArguments arguments_of(const Job& job) {
  LineArguments arguments;
  arguments.files = {job.files.begin(), job.files.end()};
  arguments.overrides = job.overrides;
  arguments.tags = job.tags;
  arguments.excluded_tags = job.excluded_tags;
  arguments.device.spec = job.device;
  arguments.device.baselines.users = job.baselines;
  arguments.seed = job.seed;
  return arguments;
}

std::string to_line(const Job& job) {
  return json_line(record_json(job));
}

Job read_job(std::string_view line) try {
  if (line.empty()) throw no_job("is missing");
  const RecordJson json = parsed_object(line);
  Job job = record_from<Job>(json);
  // Refuses unknown members, which would otherwise be ignored silently.
  if (record_json(job) != json) throw no_job("has more than a job of this build");
  return job;
} catch (const WrongRecord& wrong) {
  throw no_job(wrong.what());
}

Command serve_command() {
  return {path_of_this_program().string(), "serve"};
}

}  // namespace stepgate
