// SPDX-License-Identifier: MIT
#include "line/trace/trace_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <sstream>
#include <system_error>

#include "base/files/temporary_folder.h"
#include "base/interruption.h"
#include "base/process/attached_tool.h"
#include "base/process/child.h"
#include "base/time_of_scope.h"
#include "line/job.h"
#include "measure/trace/traced_file.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"

namespace stepgate {
namespace {

// Time limit for an answer: longer than a trace, or than the start of CUPTI on a slow machine.
constexpr std::chrono::seconds stall{120};

Traced read(const std::filesystem::path& file) {
  TracedOrDamaged read = read_traced(file);
  if (auto* traced = std::get_if<Traced>(&read)) return std::move(*traced);
  Traced damaged;
  damaged.unavailable = "the trace " + std::get<DamagedTrace>(read).reason;
  return damaged;
}

// A separator that no displayed path contains (require_a_path_to_show).
constexpr char between_paths = '\t';
constexpr std::string_view timelines_too = "timelines";

}  // namespace

std::string to_line(const TraceLine& line) {
  return fmt::format("{1}{0}{2}{0}{3}{0}{4}", between_paths, line.file, line.scenario, line.into,
                     line.with_timelines ? timelines_too : "");
}

TraceLine read_trace_line(const std::string& line) {
  std::vector<std::string> parts;
  std::istringstream rest(line + between_paths);
  for (std::string part; std::getline(rest, part, between_paths);) parts.push_back(part);
  if (parts.size() != 4) return {};
  return {.file = parts[0],
          .scenario = parts[1],
          .into = parts[2],
          .with_timelines = parts[3] == timelines_too};
}

std::vector<std::size_t> tracing_order(std::span<const Planned> all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](std::size_t index) {
    return std::ranges::none_of(
        all[index].plans, [](const PlannedStep& plan) { return plan.facts().uses_managed_memory; });
  });
  return order;
}

std::vector<Traced> trace_all(const LineArguments& arguments, std::span<const Planned> all,
                              std::uint64_t seed, Timelines timelines,
                              const ProgressSink& progress) {
  std::vector<Traced> traced(all.size());
  std::vector<std::size_t> order = tracing_order(all);
  std::erase_if(order, [&](std::size_t index) { return is_planned_only(all[index].scenario); });
  std::size_t done = 0;
  const auto give_up = [&](const std::string& reason) {
    for (; done < order.size(); ++done) traced[order[done]].unavailable = reason;
  };
  if (order.empty()) return traced;
  if (const auto mark = attached_tool()) {
    give_up("another tool is attached to this process: " + *mark + " is set");
    return traced;
  }
  try {
    const TemporaryFolder folder;
    const auto file_of = [&](std::size_t index) {
      return folder.path() / (std::to_string(index) + ".json");
    };
    auto begun = std::chrono::steady_clock::now();
    Child child(
        {.command = serve_command(), .name = "the tracing process", .stall = stall, .stopped = [] {
           return interrupted != 0;
         }});
    child.ask(to_line(job_of(arguments, resolved_spec(arguments.device), seed, TraceTask{})));
    for (; done < order.size(); ++done) {
      const std::size_t index = order[done];
      progress.tracing(all[index].scenario);
      const std::string answer =
          child.exchange(to_line({.file = all[index].scenario.file,
                                  .scenario = all[index].scenario.name,
                                  .into = file_of(index).string(),
                                  .with_timelines = timelines == Timelines::drawn}));
      traced[index] = read(file_of(index));
      // Adds the time that the process does not account for. For the first scenario this is mostly
      // the start of the process.
      const auto now = std::chrono::steady_clock::now();
      WallTimes& times = traced[index].wall_times;
      times[done == 0 ? WallPart::tracer : WallPart::trace_reading] += now - begun - times.sum();
      begun = now;
      progress.traced(all[index], traced[index]);
      if (answer != tracer_lost_its_device) continue;
      ++done;
      give_up("the device was lost while '" + all[index].scenario.name + "' was traced");
    }
    const TimeOfScope ending(traced[order.front()].wall_times[WallPart::tracer]);
    child.finish("");
  } catch (const WorkerError& error) {
    give_up(error.what());
  } catch (const std::system_error& error) {  // no folder or process can be created
    give_up(std::string("the tracing process cannot be started: ") + error.what());
  } catch (const WaitStopped&) {  // the run ends before it decides anything
  }
  return traced;
}

void apply_calibrations(std::vector<Planned>& all, const LineArguments& arguments,
                        std::uint64_t seed) {
  for (Planned& planned : all) {
    if (!planned.traced || !planned.traced->calibrated) continue;
    const Calibrated& found = *planned.traced->calibrated;
    if (found.is_kept) continue;
    planned.scenario = with_knob(planned, arguments, found.knob, found.value);
    planned.plans = with_facts(build_step_plans(planned.scenario, seed));
  }
}

}  // namespace stepgate
