// SPDX-License-Identifier: MIT
// `stepgate read`: the counts of a step of traces of torch.profiler, where its time goes, and how
// two of them differ. Starts nothing and needs no GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <set>

#include "base/files/write_file.h"
#include "base/text/units.h"
#include "judge/judge_programs.h"
#include "judge/mechanism/diagnose.h"
#include "program/read/count_trace.h"
#include "program/read/memory_snapshot.h"
#include "program/read/split_trace.h"
#include "program/read/synthetic_scenario.h"
#include "report/text/print_snapshot.h"
#include "verbs/counted_report.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

using Path = std::filesystem::path;

// The ranks of one side of a comparison: a trace each.
struct TracedSide {
  std::string name;  // "trace" or "base"
  std::vector<CountedProcess> counted;
  std::vector<TracedStep> times;  // in the same order
};

// Only counts and times of a trace are kept, so that many traces take the memory of one.
struct ReadTrace {
  Path file;
  std::int64_t rank = -1;
  std::int64_t world_size = 0;
  CountedProcess counted;
  TracedStep time;
};

ReadTrace read_one(const Path& file, const StepChoice& choice) {
  const ProfilerTrace trace = read_profiler_trace(file);
  const CountedTrace counted = count_trace(trace, choice);
  return {.file = file,
          .rank = trace.rank,
          .world_size = trace.world_size,
          .counted = counted.counted,
          .time = split_trace(trace, counted)};
}

bool are_ranks_of_one_job(const std::vector<ReadTrace>& traces) {
  std::set<std::int64_t> ranks;
  for (const ReadTrace& trace : traces) {
    if (trace.world_size < 2 || trace.world_size != traces.front().world_size) return false;
    if (trace.rank < 0 || !ranks.insert(trace.rank).second) return false;
  }
  return true;
}

TracedSide side_of(std::string name, std::vector<ReadTrace> traces) {
  if (traces.size() > 1 && !are_ranks_of_one_job(traces)) {
    throw RequestError(
        fmt::format("the {} traces are not of different ranks of one job", traces.size()),
        "read one trace, a trace and one of before, or a trace of each rank (--base for those of "
        "before)");
  }
  std::ranges::sort(traces, {}, &ReadTrace::rank);
  TracedSide side{.name = std::move(name), .counted = {}, .times = {}};
  for (ReadTrace& trace : traces) {
    side.counted.push_back(std::move(trace.counted));
    side.times.push_back(std::move(trace.time));
  }
  return side;
}

// One side, or the trace and its base.
std::vector<TracedSide> sides_of(const ReadArguments& given, const StepChoice& choice) {
  std::vector<ReadTrace> traces, base;
  for (const Path& file : given.traces) traces.push_back(read_one(file, choice));
  for (const Path& file : given.base) base.push_back(read_one(file, choice));
  if (base.empty() && traces.size() == 2 && !are_ranks_of_one_job(traces)) {
    base.push_back(std::move(traces.back()));
    traces.pop_back();
  }
  std::vector<TracedSide> sides;
  sides.push_back(side_of("trace", std::move(traces)));
  if (!base.empty()) sides.push_back(side_of("base", std::move(base)));
  return sides;
}

std::string name_of(const Path& trace) {
  std::string letters = trace.filename().string();
  letters = letters.substr(0, letters.find('.'));
  std::erase_if(letters, [](unsigned char letter) {
    return std::isalnum(letter) == 0 && letter != '_' && letter != '-';
  });
  return letters.empty() || letters == "-" ? "trace" : letters;
}

// The request as a scenario: one variant without a name, or the trace and its base.
Scenario scenario_of(const Arguments& arguments, bool compares) {
  Scenario scenario{.name = name_of(arguments.read.traces.front()),
                    .file = "--expect",
                    .claim = arguments.read.traces.front().string(),
                    .variants = {}};
  std::vector<std::string_view> names{""};
  if (compares) names = {"trace", "base"};
  for (const std::string_view name : names)
    scenario.variants.push_back(Variant{.name = std::string(name)});
  add_expectations(arguments, "read", scenario);
  return scenario;
}

Verdict verdict_of(const Scenario& scenario, std::span<const TracedSide> sides) {
  Measurement none;
  none.planned_only = true;
  std::vector<ProgramRun> runs;
  for (const TracedSide& side : sides) runs.emplace_back().counted.processes = side.counted;
  Verdict verdict = judge_programs(scenario, runs, none, {});
  verdict.steps.clear();
  verdict.variants.clear();
  verdict.program = sides.front().counted;
  if (sides.size() > 1) verdict.program_base = sides.back().counted;
  return verdict;
}

// The time of a rank without its collectives, in which it waits for the others.
double own_time(const TracedStep& step) {
  return step.time.step - step.time.communication;
}

// The rank that the others wait for.
std::size_t slowest_rank(const TracedSide& side) {
  return static_cast<std::size_t>(std::ranges::max_element(side.times, {}, own_time) -
                                  side.times.begin());
}

// Where the time goes: of each side, or of its ranks the slowest one.
Mechanism mechanism_of_sides(std::span<const TracedSide> sides) {
  Traced traced;
  TracedRound& round = traced.rounds.emplace_back();
  std::vector<Subject> subjects;
  for (const TracedSide& side : sides) {
    const std::size_t slowest = slowest_rank(side);
    if (side.times[slowest].time.step <= 0) continue;
    const CountedProcess& process = side.counted[slowest];
    subjects.emplace_back().name =
        process.rank.empty() ? side.name : fmt::format("{}, rank {}", side.name, process.rank);
    round.variants.push_back(side.times[slowest]);
    if (traced.steps == 0) traced.steps = process.steps;
  }
  if (subjects.empty()) traced.unavailable = "no kernel ran in the counted steps";
  std::vector<PairToExplain> pairs;
  if (subjects.size() == 2) pairs.emplace_back();
  Mechanism mechanism = mechanism_of(subjects, traced, {}, pairs);
  return mechanism;
}

// Notes of all traces, each once.
std::vector<std::string> notes_of(std::span<const TracedSide> sides) {
  std::vector<std::string> notes;
  for (const TracedSide& side : sides) {
    for (const CountedProcess& process : side.counted) {
      for (const std::string& note : process.notes) {
        if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
      }
    }
  }
  notes.emplace_back(
      "a step that is recorded is slower than others: shares of its time are evidence of a cause, "
      "and no speed; kernels count as arithmetic or memory by their names");
  return notes;
}

// The allocators that the requests of a snapshot would fit into. It has no steps to count.
int read_snapshot(const Arguments& arguments) {
  const Path& file = arguments.read.traces.front();
  const bool asks_for_steps = !arguments.attach.expect.empty() || !arguments.json.empty() ||
                              !arguments.read.scenario.empty() || !arguments.read.base.empty() ||
                              arguments.read.traces.size() > 1;
  if (asks_for_steps) {
    throw RequestError(
        file.string() + " is a snapshot of an allocator, which has no steps to count or compare",
        "read it alone, with --cap");
  }
  const MemorySnapshot snapshot = read_memory_snapshot(file);
  std::optional<std::int64_t> cap;
  if (snapshot.device_free_bytes) cap = snapshot.reserved_bytes + *snapshot.device_free_bytes;
  if (!arguments.read.cap.empty()) {
    const BytesOrProblem bytes = parse_bytes(arguments.read.cap);
    if (const auto* problem = std::get_if<std::string>(&bytes))
      throw RequestError(fmt::format("--cap '{}' {}", arguments.read.cap, *problem),
                         "write it as 60 GiB");
    cap = std::get<std::int64_t>(bytes);
  }
  print_snapshot(std::cout, snapshot, cap);
  return status_of(ExitCode::passes);
}

}  // namespace

int read_traces(const Arguments& arguments) {
  std::vector<Path> inputs;
  for (const auto* files : {&arguments.read.traces, &arguments.read.base}) {
    for (const Path& file : *files) {
      if (file != "-") inputs.push_back(file);
    }
  }
  check_outputs(arguments, inputs);
  if (is_memory_snapshot(arguments.read.traces.front())) return read_snapshot(arguments);
  if (!arguments.read.cap.empty())
    throw RequestError("--cap is about a snapshot of an allocator, and this is a trace",
                       "leave it out");
  StepChoice choice = choice_of(arguments.attach);
  if (!arguments.attach.skip_steps) choice.skip = steps_before_those_of_a_profiler;
  const std::vector<TracedSide> sides = sides_of(arguments.read, choice);
  const Scenario scenario = scenario_of(arguments, sides.size() > 1);
  const ReportFiles reports(arguments);
  Verdict verdict = verdict_of(scenario, sides);
  const bool is_counted = std::ranges::any_of(
      sides.front().counted, [](const CountedProcess& each) { return each.problem.empty(); });
  if (is_counted) {
    verdict.mechanism = mechanism_of_sides(sides);
    verdict.notes = notes_of(sides);
  }
  if (!arguments.read.scenario.empty()) {
    const auto slowest = slowest_rank(sides.front());
    write_output([&] {
      write_file(arguments.read.scenario,
                 synthetic_scenario(sides.front().counted[slowest], sides.front().times[slowest]));
    });
  }
  const Report report = report_counted(arguments, "read", counted_run(arguments, scenario),
                                       std::move(verdict), reports);
  if (!scenario.expect.empty() || !arguments.junit.empty()) return status_of(*report.code);
  return status_of(is_counted ? ExitCode::passes : ExitCode::undecided);
}

}  // namespace stepgate
