// SPDX-License-Identifier: MIT
// `stepgate run`: the whole line, scenario after scenario.
#include <unistd.h>

#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "report/draw_timeline.h"
#include "report/print_verdict.h"
#include "report/write_json.h"
#include "report/write_trace.h"
#include "support/line_file.h"
#include "support/write_file.h"
#include "verbs/decide.h"
#include "verbs/decide_with_evidence.h"
#include "verbs/fit_to_device.h"
#include "verbs/interruption.h"
#include "verbs/trace_all.h"
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

// Decides one scenario and prints it; false when a signal came in between.
bool decide(const Planned& planned, Device& device, std::uint64_t seed,
            const JudgeSettings& settings, const std::optional<EvidenceRequest>& evidence,
            Style style, JsonFile& json, Decisions& decisions) {
  const bool measures = !is_planned_only(planned.scenario);
  Decided decided = evidence && measures
                        ? decide_with_evidence(planned, device, seed, settings, *evidence)
                        : decide_one(planned, device, seed, settings);
  if (interrupted) {
    std::cerr << "interrupted: '" << planned.scenario.name << "' is not decided\n";
    return false;
  }
  print_verdict(std::cout, decided.verdict, style);
  std::cout << std::flush;  // a log that is read while it grows shows every decided scenario
  json.append(decided.verdict, decided.measurement);
  decisions.verdicts.push_back(decided.verdict);
  decisions.measurements.push_back(std::move(decided.measurement));
  return true;
}

// Before a run, which should not end with nowhere to put its result.
void check_outputs(const Arguments& arguments) {
  if (!arguments.json.empty()) check_writable(arguments.json);
  for (const ExportRequest& request : arguments.exports) check_writable(request.file);
  for (const auto& file : {arguments.trace, arguments.picture}) {
    if (!file.empty()) check_writable(file);
  }
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
      write_trace(text, {.device = device, .plan = plan, .trace = traced.timelines[index]});
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

}  // namespace

int run_scenarios(const Arguments& arguments) {
  const std::uint64_t seed = seed_of(arguments);
  std::vector<Planned> all = plan_all(arguments, seed);
  check_outputs(arguments);
  if (arguments.tracing) {
    std::vector<Traced> traced = trace_all(arguments, all, seed);
    if (interrupted) return interrupted_exit_code(interrupted);
    for (std::size_t index = 0; index < all.size(); ++index) {
      if (!is_planned_only(all[index].scenario)) all[index].traced = std::move(traced[index]);
    }
    apply_calibrations(all, arguments, seed);
  } else {
    refuse_calibration(all);
  }
  const OpenedDevice opened = open_device_for(arguments, seed);
  fit_to_device(all, opened.device->identity(), seed);
  add_baselines(all, opened.device->identity(), arguments);
  add_certificates(all, opened.device->identity(), arguments);
  const auto evidence = evidence_for(arguments, all, *opened.device, seed);
  write_timelines(all, opened.device->identity(), arguments);
  if (!opened.note.empty()) std::cout << opened.note << "\n\n";
  const Style style = isatty(STDOUT_FILENO) ? Style::terminal : Style::plain;
  const JudgeSettings settings = settings_for(all);
  JsonFile json(arguments.json, run_info_of(arguments, all.front().scenario.file, seed));
  Decisions decisions;
  for (const Planned& planned : all) {
    if (!decide(planned, *opened.device, seed, settings, evidence, style, json, decisions))
      return interrupted_exit_code(interrupted);
  }
  const SuiteVerdict suite = judge_suite(decisions.verdicts, settings.suite_alpha);
  if (decisions.verdicts.size() > 1) {
    json.append(suite);
    print_suite_summary(std::cout, decisions.verdicts, suite, style);
  }
  write_outputs(arguments, decisions);
  return exit_code(decisions.verdicts, suite, arguments.undecided);
}

}  // namespace stepgate
