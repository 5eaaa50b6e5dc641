// SPDX-License-Identifier: MIT
// `stepgate run` decides one scenario after the other with all stations.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <utility>

#include "base/files/line_file.h"
#include "base/files/write_file.h"
#include "base/interruption.h"
#include "base/text/text_stream.h"
#include "base/time_of_scope.h"
#include "line/decide_on_device.h"
#include "line/fit_to_device.h"
#include "line/programs/decide_programs.h"
#include "line/ranks/rank_team.h"
#include "line/trace/trace_all.h"
#include "line/wrong_libraries.h"
#include "report/picture/pictures.h"
#include "report/text/print_list.h"
#include "report/trace/write_trace.h"
#include "report/writers.h"
#include "scenario/read/lint.h"
#include "verbs/failure.h"
#include "verbs/machine_reports.h"
#include "verbs/outputs.h"
#include "verbs/terminal_progress.h"
#include "verbs/verbs.h"

namespace stepgate {

namespace {

// Wall times of the whole run, from its begin.
struct RunTimes {
  WallTimes by_part;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

// The JSON output of a run; does nothing if no file was requested, or once it cannot be written.
class JsonFile {
 public:
  explicit JsonFile(const std::filesystem::path& path) {
    if (!path.empty()) write_output([&] { file_.emplace(path); });
  }

  template <class... Reported>
  void append(const Reported&... reported) {
    if (!file_) return;
    TextStream line;
    write_json(line, reported...);
    bool is_written = false;
    write_output([&] {
      file_->append(line.str());
      is_written = true;
    });
    if (!is_written) file_.reset();
  }

 private:
  std::optional<LineFile> file_;
};

// The settings of text output.
struct Telling {
  Style style;
  bool verbose;
};

// Writes the timelines of the traced scenarios as pictures and trace files. `count` is the number
// of scenarios in the run.
void write_timelines(std::span<const Planned> some, std::size_t count, const DeviceIdentity& device,
                     const Arguments& arguments) {
  for (const Planned& planned : some) {
    if (!planned.traced || planned.traced->timelines.empty()) continue;
    const Traced& traced = *planned.traced;
    for (std::size_t index = 0; index < traced.timelines.size() && !arguments.trace.empty();
         ++index) {
      const StepPlan& plan = planned.plans[index];
      TextStream text;
      write_trace(text, {.device = device, .plan = plan, .ranks = traced.timelines[index]});
      write_output([&] { write_file(trace_file(arguments.trace, plan), text.str()); });
    }
    if (arguments.picture.empty()) continue;
    const std::span plans = std::span(planned.plans).first(traced.timelines.size());
    TextStream text;
    draw_timeline(text, device, plans, traced);
    write_output(
        [&] { write_file(picture_file(arguments.picture, plans.front(), count), text.str()); });
  }
}

// A suite's take a second to write and read.
Timelines timelines_of(const Arguments& arguments) {
  const bool draws =
      !arguments.trace.empty() || !arguments.picture.empty() || !arguments.report.empty();
  return draws ? Timelines::drawn : Timelines::judged;
}

// Traces and calibrates all parts, before anything is timed; false when a signal came in between.
bool trace_all_parts(std::span<const PartOfRun> parts, std::vector<Planned>& all,
                     const Arguments& arguments, std::uint64_t seed) {
  const JudgeSettings settings = settings_for(all);
  const auto scenarios = std::ranges::count_if(all, [](const Planned& planned) {
    return !runs_programs(planned.scenario) && !is_planned_only(planned.scenario);
  });
  const Traces traces =
      resolved_spec(arguments.device).starts_with("cuda") ? Traces::measured : Traces::simulated;
  const ProgressSink progress =
      tracing_progress(static_cast<std::size_t>(scenarios), traces, style_of(descriptor_of_text()));
  for (const PartOfRun& part : parts) {
    if (part.of_programs) continue;
    std::vector<Traced> traced =
        trace_part(part, arguments, settings, seed, timelines_of(arguments), progress);
    if (interrupted) return false;
    for (std::size_t index = 0; index < traced.size(); ++index) {
      Planned& planned = part.scenarios[index];
      if (!is_planned_only(planned.scenario)) planned.traced = std::move(traced[index]);
    }
  }
  apply_calibrations(all, arguments, seed);
  return true;
}

// Decides the scenarios of a run, one part after the other.
class RunOfParts {
 public:
  RunOfParts(const Arguments& arguments, std::uint64_t seed, const std::vector<Planned>& all,
             MachineReports& reports, RunTimes& times)
      : arguments_(arguments),
        seed_(seed),
        all_(all),
        settings_(settings_for(all)),
        telling_{.style = style_of(descriptor_of_text()), .verbose = arguments.verbose},
        reports_(reports),
        times_(times) {}

  // Decides a part on a device of its own, which is closed afterwards. Returns the scenario where a
  // signal came; null if none did.
  const Scenario* decide_part(const PartOfRun& part) {
    if (is_over_) return nullptr;
    if (part.of_programs) return decide_programs_of(part);
    std::optional<TimeOfScope> opening(times_.by_part[WallPart::opening]);
    const OpenedDevice opened = open_device_of(part, arguments_, seed_);
    const DeviceIdentity device = opened.device->identity();
    if (!info_ && part.scenarios.size() < all_.size()) refuse_wrong_requests(device);
    add_baselines(part.scenarios, device, arguments_);
    const auto ledger = ledger_for(arguments_, part.scenarios, *opened.device, seed_);
    write_timelines(part.scenarios, all_.size(), device, arguments_);
    reports_.draw(part.scenarios, device);
    if (!info_) begin(run_info_of(arguments_, all_, opened, seed_), opened.note);
    opening.reset();
    DecideOnDevice line({.device = *opened.device,
                         .identity = device,
                         .seed = seed_,
                         .settings = settings_,
                         .ledger = ledger});
    return decide_each(part,
                       [&](const Planned& planned) { return line.decide(planned, progress()); });
  }

  // Refuses invalid requests of later parts too, before anything is timed, since they use the same
  // kind of device.
  void refuse_wrong_requests(const DeviceIdentity& device) const {
    std::vector<Planned> tried = all_;
    fit_to_device(tried, device, seed_);
    add_baselines(tried, device, arguments_);
  }

  // Completes the run after all parts are decided.
  int finish() {
    const Report report = reports_.finish(settings_.suite_alpha);
    const auto whole = std::chrono::steady_clock::now() - times_.begin;
    if (all_.size() > 1) json_->append(report, times_.by_part, whole);
    // Wall times are not part of the report, which must be equal for equal seeds.
    const Style& style = telling_.style;
    if (arguments_.verbose) {
      print_fitted(std::cerr, style_of(STDERR_FILENO),
                   [&](std::ostream& out) { print_wall_times(out, times_.by_part, whole); });
    }
    draw_sweeps(report);
    print_fitted(std::cout, style, [&](std::ostream& out) {
      if (arguments_.verbose && all_.size() > 1) print_suite_table(out, report, style);
      if (all_.size() > 1) print_figures(out, report, style);
      print_sweeps(out, report, style);
      print_tally(out, report, style);
    });
    reports_.end(report);
    return status_of(*report.code);
  }

 private:
  void draw_sweeps(const Report& report) const {
    if (arguments_.picture.empty()) return;
    for (const ReportedSweep& sweep : report.sweeps) {
      TextStream text;
      draw_sweep(text, sweep);
      write_output([&] { write_file(picture_file(arguments_.picture, sweep), text.str()); });
    }
  }

  ProgressSink progress() const {
    return terminal_progress(arguments_.verbose ? Forecasts::printed : Forecasts::hidden,
                             position());
  }

  // Nothing of a run of one.
  std::string position() const {
    return all_.size() < 2 ? "" : position_in_words(decided_, all_.size(), {deciding_, decided_});
  }

  const Scenario* decide_programs_of(const PartOfRun& part) {
    reports_.draw(part.scenarios, {});
    if (!info_) begin(run_info_of(arguments_, all_, seed_), "");
    return decide_each(part, [&](const Planned& planned) {
      return decide_programs(planned, arguments_, seed_, settings_, progress());
    });
  }

  // Decides and prints one scenario after the other. Returns that at which a signal came; null if
  // none did.
  const Scenario* decide_each(const PartOfRun& part,
                              const std::function<Decided(const Planned&)>& decide_one_of) {
    for (const Planned& planned : part.scenarios) {
      if (is_over_) return nullptr;
      if (!decide(planned, decide_one_of)) return &planned.scenario;
      reports_.write();
    }
    return nullptr;
  }

  // Decides one scenario and prints it; returns false when interrupted.
  bool decide(const Planned& planned, const std::function<Decided(const Planned&)>& decide_one_of) {
    Decided decided;
    try {
      decided = decide_one_of(planned);
    } catch (const Interrupted&) {
      return false;
    }
    if (interrupted) return false;
    for (std::string& note : notes_of_checks(planned.scenario)) {
      decided.verdict.notes.insert(decided.verdict.notes.begin(), std::move(note));
      ++decided.verdict.notes_told_always;
    }
    const ReportedScenario& scenario = reports_.add(std::move(decided.verdict));
    ++decided_;
    is_over_ = arguments_.fail_fast && scenario.end == CaseEnd::failed;
    const auto print = telling_.verbose ? print_verdict : print_outcome;
    print_fitted(std::cout, telling_.style,
                 [&](std::ostream& out) { print(out, scenario, telling_.style); });
    std::cout << std::flush;  // shows every decided scenario in a log at once
    if (planned.traced) decided.wall_times += planned.traced->wall_times;
    json_->append(*info_, scenario, decided.measurement, decided.wall_times);
    times_.by_part += decided.wall_times;
    return true;
  }

  // Begins the report with what the devices of all parts share.
  void begin(RunInfo info, const std::string& note) {
    info_ = std::move(info);
    json_.emplace(arguments_.json);
    if (!info_->gated) {
      print_fitted(std::cout, telling_.style, [&](std::ostream& out) { out << note << "\n\n"; });
    }
    reports_.begin(*info_, info_->gated ? "" : note);
  }

  const Arguments& arguments_;
  std::uint64_t seed_;
  const std::vector<Planned>& all_;
  JudgeSettings settings_;
  Telling telling_;
  MachineReports& reports_;
  RunTimes& times_;
  std::optional<RunInfo> info_;
  std::size_t decided_ = 0;
  bool is_over_ = false;  // a scenario has failed, and --fail-fast was asked for
  std::chrono::steady_clock::time_point deciding_ = std::chrono::steady_clock::now();
  std::optional<JsonFile> json_;
};

// A program would find the launcher's variables, take itself for one of its ranks, and wait for
// the others.
void refuse_programs(std::span<const Planned> all) {
  for (const Planned& planned : all) {
    if (!runs_programs(planned.scenario)) continue;
    throw RequestError(
        fmt::format("'{}' runs a program, and a launcher has started stepgate as one of its ranks",
                    planned.scenario.name),
        "run it without the launcher, and let program.command start ranks");
  }
}

int run_all(const Arguments& arguments, RankTeam* launched, std::vector<Planned>& all,
            MachineReports& reports, RunTimes& times) {
  const std::uint64_t seed = seed_of(arguments);
  std::optional<TimeOfScope> planning(times.by_part[WallPart::planning]);
  all = plan_all(arguments, seed, Programs::kept);
  for (const Planned& planned : all) {
    print_fitted(std::cout, style_of(descriptor_of_text()), [&](std::ostream& out) {
      print_warnings(out, replaced_settings(planned.scenario, arguments.overrides));
    });
  }
  if (launched != nullptr) refuse_programs(all);
  if (resolved_spec(arguments.device).starts_with("cuda")) refuse_wrong_libraries(all);
  const std::unique_ptr<RankTeam> own =
      launched == nullptr ? own_ranks_for(arguments, all) : nullptr;
  const std::vector<PartOfRun> parts =
      parts_of_run(all, launched != nullptr ? launched : own.get(), arguments);
  reports.plan(all, run_info_of(arguments, all.front().scenario.file, seed));
  if (needs_device(all)) check_device(arguments.device);
  if (launched != nullptr && needs_device(all)) launched->gather();
  if (!arguments.tracing) refuse_calibration(all);
  planning.reset();
  if (arguments.tracing && !trace_all_parts(parts, all, arguments, seed))
    return say_interrupted("no scenario is decided");
  RunOfParts run(arguments, seed, all, reports, times);
  for (const PartOfRun& part : parts) {
    if (const Scenario* const left = run.decide_part(part))
      return say_interrupted("'" + left->name + "' is not decided");
  }
  return run.finish();
}

int run_reported(const Arguments& arguments, RankTeam* launched) {
  if (arguments.ranks.count) refuse_one_gpu(arguments);
  check_outputs(arguments);
  MachineReports reports(arguments);
  std::vector<Planned> all;
  RunTimes times;
  try {
    const int code = run_all(arguments, launched, all, reports, times);
    if (interrupted && code == interrupted_exit_code(interrupted)) reports.interrupted();
    return code;
  } catch (const Interrupted&) {
    reports.interrupted();
    throw;
  } catch (const std::exception& error) {
    return status_of(reports.fail(error, say_failure()));
  }
}

// Runs as a launcher's rank 0; the other ranks end with the same exit code.
int run_as_leader(const Arguments& arguments, const LaunchedAs& as) {
  const std::unique_ptr<RankTeam> team = lead(arguments, as);
  int status = 0;
  try {
    status = run_reported(arguments, team.get());
  } catch (const Interrupted&) {
    team->end(interrupted_exit_code(interrupted));
    throw;
  } catch (const std::exception&) {
    status = status_of(say_failure());
  }
  status = status_after_outputs(status);
  team->end(status);
  return status;
}

// The usual folder need not exist; one that is named is meant to have something.
void require_baselines(const std::filesystem::path& folder) {
  std::error_code unreadable;
  if (folder == default_baselines_folder || std::filesystem::is_directory(folder, unreadable))
    return;
  throw RequestError(fmt::format("there is no folder of baselines '{}'", folder.string()),
                     "check what --baselines, STEPGATE_BASELINES or stepgate.toml names, or make "
                     "it: `stepgate accept` stores runs there");
}

}  // namespace

int run_scenarios(const Arguments& arguments) {
  require_baselines(arguments.device.baselines.users);
  const auto launched = launched_as(variables_of_this_process());
  if (launched && launched->rank > 0) {
    return attend(arguments, *launched,
                  {.refused = status_of(ExitCode::wrong_request),
                   .left = status_of(ExitCode::device_failed)});
  }
  stop_when_interrupted();
  return launched ? run_as_leader(arguments, *launched) : run_reported(arguments, nullptr);
}

}  // namespace stepgate
