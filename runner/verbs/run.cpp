// SPDX-License-Identifier: MIT
// `stepgate run`: the whole line, scenario after scenario.
#include <unistd.h>

#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "report/json/write_json.h"
#include "report/picture/draw_timeline.h"
#include "report/text/print_verdict.h"
#include "report/trace/write_trace.h"
#include "support/files/line_file.h"
#include "support/files/write_file.h"
#include "support/interruption.h"
#include "verbs/decide_on_device.h"
#include "verbs/fit_to_device.h"
#include "verbs/machine_reports.h"
#include "verbs/outputs.h"
#include "verbs/ranks/rank_team.h"
#include "verbs/trace/trace_all.h"
#include "verbs/verbs.h"

namespace stepgate {

namespace {

// What a run has decided so far.
struct Decisions {
  std::vector<Verdict> verdicts;
  std::vector<Measurement> measurements;
};

// The JSON of a run; nothing where nobody asked for it.
class JsonFile {
 public:
  JsonFile(const std::filesystem::path& path, RunInfo run) : run_(std::move(run)) {
    if (!path.empty()) file_.emplace(path);
  }

  template <class... Reported>
  void append(const Reported&... reported) {
    if (!file_) return;
    std::ostringstream line;
    write_json(line, run_, reported...);
    file_->append(line.str());
  }

 private:
  RunInfo run_;
  std::optional<LineFile> file_;
};

// How it is told to people.
struct Telling {
  Style style;
  bool verbose;
};

// Decides one scenario and prints it; false when a signal came in between.
bool decide(const Planned& planned, DecideOnDevice& line, const Telling& telling, JsonFile& json,
            Decisions& decisions) {
  Decided decided;
  try {
    decided = line.decide(planned);
  } catch (const Interrupted&) {
    return false;
  }
  if (interrupted) return false;
  if (telling.verbose) {
    print_verdict(std::cout, decided.verdict, telling.style);
  } else {
    print_outcome(std::cout, decided.verdict, telling.style);
  }
  std::cout << std::flush;  // a log that is read while it grows shows every decided scenario
  json.append(decided.verdict, decided.measurement);
  decisions.verdicts.push_back(decided.verdict);
  decisions.measurements.push_back(std::move(decided.measurement));
  return true;
}

// The timelines of the traced scenarios, for people and for other tools.
void write_timelines(const std::vector<Planned>& all, const DeviceIdentity& device,
                     const Arguments& arguments) {
  for (const Planned& planned : all) {
    if (!planned.traced || planned.traced->timelines.empty()) continue;
    const Traced& traced = *planned.traced;
    for (std::size_t index = 0; index < traced.timelines.size() && !arguments.trace.empty();
         ++index) {
      const StepPlan& plan = planned.plans[index];
      std::ostringstream text;
      write_trace(text, {.device = device, .plan = plan, .ranks = traced.timelines[index]});
      write_file(trace_file(arguments.trace, plan), text.str());
    }
    if (arguments.picture.empty()) continue;
    const std::span plans = std::span(planned.plans).first(traced.timelines.size());
    std::ostringstream text;
    draw_timeline(text, device, plans, traced);
    write_file(picture_file(arguments.picture, plans.front(), all.size()), text.str());
  }
}

void write_outputs(const Arguments& arguments, const Decisions& decisions) {
  for (const ExportRequest& request : arguments.exports) {
    for (const ExportedFile& file : request.write(request.file, decisions.measurements)) {
      write_file(file.path, file.content);
    }
  }
}

// What the run leaves in `all` and `decisions` when it throws is what it got to.
int run_all(const Arguments& arguments, RankTeam* launched, std::vector<Planned>& all,
            MachineReports& reports, Decisions& decisions) {
  const std::uint64_t seed = seed_of(arguments);
  all = plan_all(arguments, seed);
  reports.plan(all, run_info_of(arguments, all.front().scenario.file, seed));
  if (needs_device(all)) check_device(arguments.device);
  const std::unique_ptr<RankTeam> own =
      launched == nullptr ? own_ranks_for(arguments, all) : nullptr;
  RankTeam* team = needs_device(all) && launched != nullptr ? launched : own.get();
  if (arguments.tracing) {
    std::vector<Traced> traced = team != nullptr ? trace_with_ranks(*team, arguments, all, seed)
                                                 : trace_all(arguments, all, seed);
    if (interrupted) return say_interrupted("no scenario is decided");
    for (std::size_t index = 0; index < all.size(); ++index) {
      if (!is_planned_only(all[index].scenario)) all[index].traced = std::move(traced[index]);
    }
    apply_calibrations(all, arguments, seed);
  } else {
    refuse_calibration(all);
  }
  const OpenedDevice opened = open_device_of_run(arguments, team, all, seed);
  add_baselines(all, opened.device->identity(), arguments);
  add_certificates(all, opened.device->identity(), arguments);
  const auto evidence = evidence_for(arguments, all, *opened.device, seed);
  write_timelines(all, opened.device->identity(), arguments);
  reports.draw(all, opened.device->identity());
  const RunInfo info = run_info_of(arguments, all, opened, seed);
  if (!info.gated) {
    std::cout << opened.note << "\n\n";
    reports.not_gated(opened.note);
  }
  const JudgeSettings settings = settings_for(all);
  const Telling telling{.style = style_of(descriptor_of_text()), .verbose = arguments.verbose};
  DecideOnDevice line({.device = *opened.device,
                       .identity = opened.device->identity(),
                       .seed = seed,
                       .settings = settings,
                       .evidence = evidence,
                       .forecasts = arguments.verbose ? Forecasts::printed : Forecasts::hidden});
  JsonFile json(arguments.json, info);
  for (const Planned& planned : all) {
    if (!decide(planned, line, telling, json, decisions))
      return say_interrupted("'" + planned.scenario.name + "' is not decided");
    reports.decided(decisions.verdicts);
  }
  const SuiteVerdict suite = judge_suite(decisions.verdicts, settings.suite_alpha);
  if (decisions.verdicts.size() > 1) json.append(suite);
  if (arguments.verbose && decisions.verdicts.size() > 1)
    print_suite_table(std::cout, decisions.verdicts, telling.style);
  print_tally(std::cout, decisions.verdicts, suite, info, telling.style);
  write_outputs(arguments, decisions);
  reports.finish(decisions.verdicts, suite);
  const ExitCode code = exit_code(decisions.verdicts, suite, arguments.undecided);
  return status_of(info.gated ? code : gravest(code, ExitCode::not_gated));
}

}  // namespace

namespace {

int run_reported(const Arguments& arguments, RankTeam* launched) {
  if (arguments.ranks.count) refuse_one_gpu(arguments);
  check_outputs(arguments);
  MachineReports reports(arguments);
  std::vector<Planned> all;
  Decisions decisions;
  try {
    const int code = run_all(arguments, launched, all, reports, decisions);
    if (interrupted && code == interrupted_exit_code(interrupted))
      reports.interrupted(decisions.verdicts);
    return code;
  } catch (const std::exception& error) {
    reports.fail(decisions.verdicts, error);
    throw;
  }
}

// Of a launcher's rank 0: the others end as it does.
int run_as_leader(const Arguments& arguments, const LaunchedAs& as) {
  const std::unique_ptr<RankTeam> team = lead(arguments, as);
  const auto end = [&](ExitCode code) { team->end(status_of(code)); };
  try {
    const int code = run_reported(arguments, team.get());
    team->end(code);
    return code;
  } catch (const RequestError&) {
    end(ExitCode::wrong_request);
    throw;
  } catch (const NotGatedError&) {
    end(ExitCode::not_gated);
    throw;
  } catch (const Interrupted&) {
    team->end(interrupted_exit_code(interrupted));
    throw;
  } catch (const std::exception&) {
    end(ExitCode::device_failed);
    throw;
  }
}

}  // namespace

int run_scenarios(const Arguments& arguments) {
  const auto launched = launched_as(variables_of_this_process());
  if (launched && launched->rank > 0) return attend(arguments, *launched);
  stop_when_interrupted();
  return launched ? run_as_leader(arguments, *launched) : run_reported(arguments, nullptr);
}

}  // namespace stepgate
