// SPDX-License-Identifier: MIT
#include "verbs/machine_reports.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <string_view>

#include "base/files/write_file.h"
#include "base/text/text_stream.h"
#include "base/text/visible_stream.h"
#include "ledger/series/history.h"
#include "line/provenance.h"
#include "report/picture/pictures.h"
#include "report/writers.h"
#include "verbs/outputs.h"

namespace stepgate {
namespace {

// Appends to the page of the step; what others wrote there counts towards its size limit.
void append_to_step_summary(const std::filesystem::path& file, const Report& run) {
  append_to_file(file, [&](std::size_t taken) {
    return summary_markdown(run, taken < most_summary_bytes ? most_summary_bytes - taken : 0);
  });
}

constexpr std::size_t most_picture_bytes_of_a_run_at_work = most_picture_bytes / 4;

// Adds pictures of the stored runs of every variant, if an assertion compares with stored runs.
void add_histories(const Planned& planned, std::vector<Picture>& pictures) {
  if (!planned.baseline) return;
  std::vector<VariantHistory> histories = histories_of(*planned.baseline, planned.scenario);
  judge_drifts(histories);
  for (const VariantHistory& history : histories) {
    TextStream svg;
    draw_history(svg, history);
    pictures.push_back({"Stored runs of " + history.variant,
                        "How the stored runs of " + history.scenario + "/" + history.variant +
                            " changed over the weeks: " + std::string(in_words(history.outcome)),
                        svg.str()});
  }
}

// Draws the variants' timelines where they were traced, and their planned memory.
std::vector<Picture> pictures_of(const Planned& planned, const DeviceIdentity& device) {
  std::vector<Picture> pictures;
  const std::string& name = planned.scenario.name;
  if (planned.traced && !planned.traced->timelines.empty()) {
    const std::span plans = std::span(planned.plans).first(planned.traced->timelines.size());
    TextStream svg;
    draw_timeline(svg, device, plans, *planned.traced);
    pictures.push_back({"Timelines",
                        "Host and device over the steady steps of every variant of " + name +
                            ", one above the other on one axis of time",
                        svg.str()});
  }
  add_histories(planned, pictures);
  if (planned.plans.empty()) return pictures;  // it runs programs
  const std::span plans = std::span(planned.plans).first(planned.scenario.variants.size());
  TextStream svg;
  draw_memory(svg, plans);
  pictures.push_back({"Memory",
                      "What is live in device memory over the operations of a step of every "
                      "variant of " +
                          name + ", by purpose, by its plan",
                      svg.str()});
  return pictures;
}

std::string new_token() {
  std::random_device device;
  std::string token = "stepgate-";
  for (int word = 0; word < 4; ++word) token += fmt::format("{:08x}", device());
  return token;
}

// A request may have several errors with places; all other errors have no place.
std::vector<RunFailure> failures_of(const std::exception& error) {
  std::vector<RunFailure> failures;
  if (const auto* request = dynamic_cast<const RequestError*>(&error)) {
    for (const Diagnostic& wrong : request->diagnostics()) {
      const std::string hint = wrong.hint.empty() ? "" : "; " + wrong.hint;
      failures.push_back({"request", wrong.place, wrong.message + hint});
    }
    return failures;
  }
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return {{"request",
             {file->path1().generic_string(), 0, 0},
             "cannot be read: " + file->code().message()}};
  }
  if (dynamic_cast<const NotGatedError*>(&error) != nullptr)
    return {{"not gated", {}, error.what()}};
  return {{"device", {}, std::string("the device failed: ") + error.what()}};
}

}  // namespace

RunInfo run_info_of(const Arguments& arguments, const std::filesystem::path& scenario_file,
                    std::uint64_t seed) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = 0;
  const char* rounds = std::getenv(json_rounds_variable);
  return {.stepgate = STEPGATE_VERSION,
          .build = build_in_words(),
          .commit = commit_of(arguments, scenario_file),
          .date = date_of(arguments),
          .host = host.data(),
          .seed = seed,
          .asked_for = arguments.device.spec,
          .command = arguments.command,
          .has_rounds = rounds == nullptr || std::string_view(rounds) != "none"};
}

RunInfo run_info_of(const Arguments& arguments, const std::vector<Planned>& all,
                    const OpenedDevice& opened, std::uint64_t seed) {
  RunInfo run = run_info_of(arguments, all, seed);
  const bool measures = needs_device(all);
  run.simulated = measures && opened.device->identity().kind == DeviceKind::simulated;
  run.gated = !(measures && opened.stand_in);
  // A machine without a GPU would simulate.
  if (measures && arguments.device.spec.empty() &&
      opened.device->identity().kind == DeviceKind::cuda)
    run.command.options.insert(run.command.options.end(), {"--device", "cuda"});
  return run;
}

RunInfo run_info_of(const Arguments& arguments, const std::vector<Planned>& all,
                    std::uint64_t seed) {
  RunInfo run = run_info_of(arguments, all.front().scenario.file, seed);
  run.scenarios = static_cast<int>(all.size());
  return run;
}

ReportFiles::ReportFiles(const Arguments& arguments) : arguments_(arguments) {
  if (arguments.annotations != Annotations::github) return;
  token_ = new_token();
  as_it_is(std::cout) << stop_commands(token_) << std::flush;
}

void ReportFiles::write(const Report& report) const {
  write(report, State::at_work);
}

void ReportFiles::write(const Report& report, State state) const {
  // A file that cannot be replaced, such as a pipe, is written only at the end.
  const auto is_due = [&](const std::filesystem::path& file) {
    return !file.empty() && (state == State::ended || !is_stream(file));
  };
  if (is_due(arguments_.junit)) {
    TextStream text;
    write_junit(text, report);
    write_output([&] { write_file(arguments_.junit, text.str()); });
  }
  if (is_due(arguments_.summary))
    write_output([&] { write_file(arguments_.summary, summary_markdown(report)); });
  if (!is_due(arguments_.report)) return;
  TextStream page;
  // The page is rewritten often during a run, so passing scenarios are not drawn before its end.
  write_html(page, report, report.code ? most_picture_bytes : most_picture_bytes_of_a_run_at_work);
  write_output([&] { write_file(arguments_.report, page.str()); });
}

void ReportFiles::end(const Report& report) const {
  if (!token_.empty()) {
    std::ostream& out = as_it_is(std::cout);
    out << resume_commands(token_);
    write_annotations(out, report);
    out << std::flush;
  }
  write(report, State::ended);
  const std::filesystem::path& page = arguments_.step_summary;
  if (!page.empty()) write_output([&] { append_to_step_summary(page, report); });
}

MachineReports::MachineReports(const Arguments& arguments)
    : arguments_(arguments), files_(arguments) {
  run_.undecided = arguments.undecided;
}

void MachineReports::plan(const std::vector<Planned>& all, RunInfo run) {
  run_.run = std::move(run);
  for (const Planned& planned : all) run_.scenarios.push_back(&planned.scenario);
  write();
}

void MachineReports::draw(std::span<const Planned> all, const DeviceIdentity& device) {
  if (arguments_.report.empty()) return;
  for (const Planned& planned : all) pictures_.push_back(pictures_of(planned, device));
  run_.pictures = pictures_;
}

void MachineReports::begin(RunInfo run, const std::string& not_gated) {
  run_.run = std::move(run);
  if (!not_gated.empty()) run_.failures.push_back({"not gated", {}, not_gated});
}

const ReportedScenario& MachineReports::add(Verdict verdict) {
  const Scenario* scenario = run_.scenarios.at(run_.decided.size());
  return run_.decided.emplace_back(
      reported_scenario(std::move(verdict), scenario, run_.undecided, run_.run));
}

void MachineReports::write() const {
  files_.write(report_of(run_));
}

Report MachineReports::finish(double suite_alpha) {
  std::vector<Verdict> verdicts;
  for (const ReportedScenario& scenario : run_.decided)
    verdicts.push_back(scenario.decided->verdict);
  run_.suite = judge_suite(verdicts, suite_alpha);
  run_.ended = true;
  return report_of(run_);
}

void MachineReports::end(const Report& report) const {
  files_.end(report);
}

ExitCode MachineReports::fail(const std::exception& error, ExitCode code) {
  try {
    if (run_.run.date.empty()) run_.run = run_info_of(arguments_, arguments_.files.front(), 0);
    for (RunFailure& failure : failures_of(error)) run_.failures.push_back(std::move(failure));
    run_.suite.reset();
    run_.ended = true;
    const Report report = report_of(run_);
    if (report.code) code = gravest(code, *report.code);
    end(report);
  } catch (const std::exception& second) {  // the caller should get the first error
    if (std::string_view(second.what()) != error.what()) std::cerr << second.what() << '\n';
  }
  return code;
}

void MachineReports::interrupted() {
  run_.failures.push_back({"interrupted", {}, "the run was interrupted"});
  run_.ended = true;
  end(report_of(run_));
}

}  // namespace stepgate
