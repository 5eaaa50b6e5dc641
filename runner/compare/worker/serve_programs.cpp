// SPDX-License-Identifier: MIT
#include "compare/worker/serve_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <utility>

#include "base/process/child.h"
#include "base/process/masked_words.h"
#include "base/text/diagnostic.h"
#include "compare/worker/protocol.h"
#include "judge/judge_programs.h"
#include "measure/trace/time_breakdown.h"
#include "program/accepted_counts.h"
#include "program/read/split_trace.h"

namespace stepgate {
namespace {

// A process has about so much beside what PyTorch reserves: its context and loaded kernels.
constexpr std::int64_t memory_of_a_context = std::int64_t{1} << 30;
constexpr std::int64_t traced_steps = 20;
// The first steps of a trace, in which torch.profiler still starts.
constexpr std::int64_t steps_to_settle = 2;
constexpr std::size_t longest_words = 160;
constexpr std::size_t most_lines = 1000;

void add_lines(const CountedProcess& process, std::vector<CountedLine>& lines) {
  std::map<std::pair<std::string, std::string>, CountedLine> own;
  for (const CountedPlace& place : process.places) {
    const SourceLine& source = place.place.own;
    if (source.line <= 0) continue;
    CountedLine& line = own[{std::string(row_of(place.count).name),
                             printable(line_in_words(source), longest_words)}];
    line.file = printable(source.file, longest_words);
    line.line = source.line;
    line.a_step += place.a_step;
  }
  for (auto& [key, line] : own) {
    if (lines.size() == most_lines) return;
    line.count = key.first;
    line.words = key.second;
    lines.push_back(std::move(line));
  }
}

// The most of every count that any process has.
StepCounts counts_of(const AttachedRun& run) {
  StepCounts counts;
  counts.untraced = reason_without_counts(run);
  if (counts.untraced.empty()) counts.untraced = reason_for_doubt(run);
  if (!counts.untraced.empty()) return counts;
  counts.untraced = "an attached program is counted and not traced";
  CallCounts most{};
  const std::vector<const CountedProcess*> counted = counted_of(run);
  for (const CountedProcess* process : counted) {
    for (std::size_t index = 0; index < most.size(); ++index)
      most[index] = std::max(most[index], process->mean[index]);
    counts.versions.insert(process->versions.begin(), process->versions.end());
    add_lines(*process, counts.lines);
  }
  for (const CallCountRow& row : call_count_table()) {
    if (row.compared == CountIs::neither) continue;
    if (!row.metric) {
      counts.planned.emplace(row.name, most[static_cast<std::size_t>(row.count)]);
    } else if (const auto value = value_of(most, *row.metric)) {
      counts.planned.emplace(stepgate::row_of(*row.metric).name, *value);
    }
  }
  counts.planned.emplace(stepgate::row_of(Metric::host_waits_per_step).name,
                         *value_of(most, Metric::host_waits_per_step));
  counts.counted =
      fmt::format("{} steps from step {} on of {} process{}", counted.front()->steps,
                  counted.front()->first_step, counted.size(), counted.size() == 1 ? "" : "es");
  return counts;
}

class ProgramServer {
 public:
  ProgramServer(std::span<const ServedProgram> programs, const AttachFiles& files)
      : programs_(programs), files_(files) {}

  // Returns nullopt when there is no answer, since the session ends.
  std::optional<std::string> answer(std::string_view line) {
    const auto request = read_request(line);
    if (const auto* problem = std::get_if<Problem>(&request))
      return error_line(fmt::format("the request {}", problem->fact));
    try {
      return std::visit([this](const auto& asked) { return answer(asked); },
                        std::get<Request>(request));
    } catch (const HeldError& error) {
      held_.reset();
      return error_line(error.what(), !error.is_about_clock());
    } catch (const RequestError& error) {
      held_.reset();
      const Diagnostic& first = error.diagnostics().front();
      return error_line(first.message + "; " + first.hint);
    }
  }

 private:
  std::optional<std::string> answer(const SayHello&) {
    Hello hello{.program = printable(to_text(masked(programs_.front().counted.command))),
                .device = gpus_of_this_machine(),
                .counts = true};
    for (const ServedProgram& program : programs_) hello.workloads.push_back(program.workload);
    return to_line(hello);
  }

  void end_held() {
    if (held_) held_->quit();
    held_.reset();
  }

  const ServedProgram* named(const std::string& workload) const {
    const auto found = std::ranges::find(programs_, workload, &ServedProgram::workload);
    return found == programs_.end() ? nullptr : &*found;
  }

  static std::string no_such_workload(const std::string& workload) {
    return error_line(fmt::format("there is no workload '{}'; hello lists them", workload));
  }

  std::optional<std::string> answer(const CountWorkload& count) {
    const ServedProgram* program = named(count.workload);
    if (program == nullptr) return no_such_workload(count.workload);
    end_held();
    if (count.times) return to_line(times_of(*program));
    const AttachedRun run = run_attached(program->counted, files_);
    if (const std::string failure = failure_of(run, program->counted.command); !failure.empty())
      return error_line(failure + " before its steps were counted");
    return to_line(counts_of(run));
  }

  std::optional<std::string> answer(const LoadWorkload& load) {
    const ServedProgram* program = named(load.workload);
    if (program == nullptr) return no_such_workload(load.workload);
    const StepChoice& steps = program->counted.steps;
    if (steps.names_range || !steps.kernel.empty() || !steps.call.empty()) {
      return error_line(
          "a program whose steps are a range, a kernel or a call is not held at their "
          "ends, and not timed; say --only counts",
          false);
    }
    end_held();
    held_.emplace(program->held, files_);
    const HeldRun run = held_->run(1, program->warm_up_steps);
    Loaded loaded{.wash_out_steps = held_->steps_to_settle()};
    if (run.reserved_memory_bytes > 0 && held_->hello().device_memory_bytes > 0) {
      loaded.memory_bytes = run.reserved_memory_bytes + memory_of_a_context;
      loaded.device_memory_bytes = held_->hello().device_memory_bytes;
    }
    return to_line(loaded);
  }

  std::optional<std::string> answer(const RunSteps& run) {
    if (!held_) return error_line("no workload is loaded");
    const HeldRun ran = held_->run(run.steps, run.wash_out_steps);
    return to_line(Ran{.steps = ran.steps, .elapsed = ran.elapsed});
  }

  // The program stays held until the worker needs its place or quits: its end takes a while, which
  // is no time of its steps, and would disturb those that are timed next.
  std::optional<std::string> answer(const UnloadWork&) { return unloaded_line(); }

  std::optional<std::string> answer(const Quit&) {
    end_held();
    return std::nullopt;
  }

  // Where the time of a step goes, by a trace of torch.profiler. Collectives of several ranks are
  // those of the rank that waits least in them: the others wait for its work.
  StepCounts times_of(const ServedProgram& program) {
    HeldProgram held(program.held, files_);
    (void)held.run(1, program.warm_up_steps);
    StepCounts counts{.untraced = "a program is counted by its calls"};
    const std::vector<std::filesystem::path> traces =
        held.trace(traced_steps, held.steps_to_settle());
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      const ProfilerTrace trace = read_profiler_trace(traces[rank]);
      const TracedStep step = split_trace(trace, count_trace(trace, {.skip = steps_to_settle}));
      for (const auto& [part, seconds] : named_parts(step.time)) {
        const bool is_of_rank = traces.size() > 1 && part != "step" && part != "communication";
        const std::string name =
            is_of_rank ? fmt::format("rank {}: {}", rank, part) : std::string(part);
        double& least = counts.time.try_emplace(name, seconds).first->second;
        least = std::min(least, seconds);
      }
    }
    held.quit();
    return counts;
  }

  std::span<const ServedProgram> programs_;
  const AttachFiles& files_;
  std::optional<HeldProgram> held_;
};

}  // namespace

void serve_programs(std::istream& in, std::ostream& out, std::span<const ServedProgram> programs,
                    const AttachFiles& files) {
  ProgramServer server(programs, files);
  for (std::string line; std::getline(in, line);) {
    const auto answer = server.answer(line);
    if (!answer) return;
    out << *answer << '\n';
    flush_answer(out);
  }
}

}  // namespace stepgate
