// SPDX-License-Identifier: MIT
// libFuzzer: puts texts into every text of a report, of a gate, of pictures and of traces, and
// writes them by every writer. No line begins a command to a CI system, no matter which white space
// stands before it, no character is invisible or of a terminal, and every format stays whole.
#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "base/random.h"
#include "base/text/visible_stream.h"
#include "report/picture/pictures.h"
#include "report/testing/fake_trace.h"
#include "report/testing/reports.h"
#include "report/text/print_history.h"
#include "report/text/print_plan.h"
#include "report/trace/write_trace.h"
#include "report/writers.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/harm_in_output.h"

namespace {

using namespace stepgate;

// In the input: the first byte chooses outcomes and the second what is written. Then the byte 0xff
// begins the next text, and a byte below this array's length stands for one of these. All others
// are themselves.
constexpr std::array<std::string_view, 32> hostile{
    "\n",       "\r",     "\t",       "\x1b[2J",    "\x1b[31m", "\x7f",       "\u0085",
    "\u00a0",   "\u1680", "\u2003",   "\u2028",     "\u202e",   "\u205f",     "\u3000",
    "\u200b",   "\ufeff", "\u061c",   "\U000e0041", "::",       "::error::x", "##[error]",
    "##vso[x]", "##",     "<script>", "</title>",   "]]>",      "&lt;",       "\"",
    "`",        "|",      "\xe2\x80", "\xc2"};
constexpr std::uint8_t next_text = 0xff;

class Texts {
 public:
  explicit Texts(std::span<const std::uint8_t> bytes) : texts_(1) {
    for (const std::uint8_t byte : bytes) {
      if (byte == next_text)
        texts_.emplace_back();
      else if (byte < hostile.size())
        texts_.back() += hostile.at(byte);
      else
        texts_.back() += static_cast<char>(byte);
    }
  }
  // The texts in turn, from the first again behind the last.
  std::string next() { return texts_[taken_++ % texts_.size()]; }
  operator std::string() { return next(); }

 private:
  std::vector<std::string> texts_;
  std::size_t taken_ = 0;
};

void check_text(std::string_view what, std::string_view output) {
  const auto harm = harm_in(output);
  require(!harm, std::string(what) + " has " + harm.value_or(""));
}
void check_xml(std::string_view what, std::string_view output) {
  check_text(what, output);
  const auto fault = fault_of_xml(output);
  require(!fault, std::string(what) + " has " + fault.value_or(""));
}
void check_json(std::string_view what, std::string_view output) {
  check_text(what, output);
  require(nlohmann::json::accept(output), std::string(what) + " is JSON");
}
void check_json_lines(std::string_view what, const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) check_json(what, line);
}

template <class Write>
std::string text_by(Write&& write) {
  std::ostringstream out;
  write(out);
  return out.str();
}

// Prints as a verb does: everything for people goes through VisibleStreams.
template <class Print>
void check_printed(std::string_view what, Print&& print) {
  std::ostringstream shown;
  std::streambuf* const own = std::cout.rdbuf(shown.rdbuf());
  {
    const VisibleStreams streams(false, false);
    print(std::cout);
  }
  std::cout.rdbuf(own);
  check_text(what, shown.str());
}

// Each line is one command of ours, about a file, a line and a title, and nothing after it is one.
void check_annotations(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find("::", 2);
    require(end != std::string::npos, "an annotation has an end");
    std::string_view command = std::string_view(line).substr(0, end);
    require(command.starts_with("::error ") || command.starts_with("::warning "),
            "an annotation is an error or a warning");
    command.remove_prefix(command.find(' ') + 1);
    for (; !command.empty();
         command.remove_prefix(std::min(command.find(',') + 1, command.size()))) {
      const std::string_view property = command.substr(0, command.find('='));
      require(property == "file" || property == "line" || property == "title",
              "an annotation has no other property");
      if (command.find(',') == std::string_view::npos) break;
    }
    check_text("an annotation", std::string_view(line).substr(end + 2));
    check_text("an annotation", "title" + line.substr(2, end - 2));
  }
}

AssertionVerdict assertion_of(Texts& text, Outcome outcome) {
  AssertionVerdict assertion;
  assertion.name = text;
  assertion.text = text;
  assertion.place = {text, 3, 1};
  assertion.reason = text;
  assertion.outcome = outcome;
  assertion.clocks = ClockSplit{.left = text, .right = text};
  assertion.estimate = Estimate{.value = 1.2, .interval = RatioInterval{1.1, 1.3}, .limit = 1.05};
  assertion.stored.emplace().anchor_name = text;
  assertion.stored->commits = {text, text};
  assertion.stored->newest = text;
  assertion.stored->upgrades = text;
  return assertion;
}

CountedProcess process_of(Texts& text, bool has_problem) {
  CountedProcess process{.process = 7, .rank = text, .variant = text, .program = text};
  if (has_problem) process.problem = text;
  process.cupti = text;
  process.marks = text;
  process.steps = 20;
  process.mean.fill(1);
  process.each = {process.mean};
  process.places = {
      {.count = CallCount::waits, .call = text, .place = {}, .range = text, .a_step = 1}};
  process.places.front().place.own.file = text;
  process.places.front().place.own.function = text;
  process.notes = {text};
  process.versions = {{"gpu", text}, {text, text}};
  return process;
}

DeviceIdentity device_of(Texts& text) {
  DeviceIdentity device = fake_gpu();
  for (std::string* words :
       {&device.name, &device.driver, &device.runtime, &device.uuid, &device.cpu,
        &device.power_limit, &device.pcie, &device.link, &device.launcher})
    *words = text;
  return device;
}

Verdict verdict_of(Texts& text, std::uint8_t choice) {
  constexpr std::array outcomes{
      Outcome::passes,      Outcome::fails,          Outcome::undecided,     Outcome::skipped,
      Outcome::no_baseline, Outcome::not_comparable, Outcome::machine_slower};
  Verdict verdict{.scenario = text, .claim = text};
  verdict.device = device_of(text);
  DescribedStep& step = verdict.steps.emplace_back();
  step.variant = text;
  step.words.fill(text);
  step.other = text;
  VariantSummary& variant = verdict.variants.emplace_back();
  variant.name = text;
  variant.step_seconds_mean = 1e-3;
  const Outcome outcome = outcomes.at(choice % outcomes.size());
  verdict.outcome = outcome;
  verdict.assertions = {assertion_of(text, outcome), assertion_of(text, Outcome::passes)};
  verdict.regime = {assertion_of(text, outcome == Outcome::skipped ? Outcome::fails : outcome)};
  verdict.environment = {text, text};
  verdict.notes = {text, text};
  verdict.notes_told_always = 1;
  verdict.calibrated = Calibrated{.knob = text, .value = text, .aim = text};
  Mechanism& mechanism = verdict.mechanism.emplace();
  VariantMechanism& traced = mechanism.variants.emplace_back();
  traced.variant = text;
  traced.diagnosis = text;
  mechanism.separations = {{.first = text, .other = text, .summary = text}};
  if (choice & 8) mechanism.unavailable = text;
  if (choice & 16) verdict.broken = text.next();
  if (choice & 32) verdict.failed = text.next();
  if (choice & 64) verdict.disturbance = text.next();
  if (choice & 128) verdict.program = {process_of(text, false), process_of(text, true)};
  if (outcome == Outcome::skipped) verdict.skipped_because = text;
  return verdict;
}

RunInfo run_info_of(Texts& text) {
  return {.stepgate = text,
          .build = text,
          .commit = text,
          .date = text,
          .host = text,
          .asked_for = text,
          .command = {.options = {text, text}, .choice = {text}}};
}

void check_for_machines(const Report& report) {
  check_xml("HTML", text_by([&](std::ostream& out) { write_html(out, report); }));
  check_xml("JUnit", text_by([&](std::ostream& out) { write_junit(out, report); }));
  check_text("Markdown", summary_markdown(report));
  check_annotations(text_by([&](std::ostream& out) { write_annotations(out, report); }));
}

FakeTrace fake_trace_of(Texts& text) {
  FakeTrace fake = fake_trace({.variant = text, .kernel_name = text});
  fake.plan.scenario = text;
  for (Operation& operation : fake.plan.operations) operation.name = text;
  for (Stream& stream : fake.plan.streams) stream.name = text;
  for (HostCall& call : fake.trace.calls) call.name = text;
  return fake;
}

std::string timeline_of(const FakeTrace& fake, Texts& text) {
  const DrawnVariant drawn{fake.plan, {{fake.trace}}, text};
  return text_by(
      [&](std::ostream& out) { draw_timeline(out, device_of(text), std::span(&drawn, 1)); });
}

void check_run(Texts& text, std::uint8_t choice) {
  const std::vector<Verdict> verdicts{verdict_of(text, choice), verdict_of(text, choice >> 3)};
  RunSoFar run = ended_run(verdicts);
  run.run = run_info_of(text);
  if (choice & 1) run.failures = {{"device", {text, 3, 1}, text}};
  const std::vector<std::vector<Picture>> pictures{
      {{text, text, timeline_of(fake_trace_of(text), text)}}};
  run.pictures = pictures;
  const Report report = report_of(run);
  check_printed("the text of a run", [&](std::ostream& out) {
    for (const ReportedScenario& scenario : report.scenarios) {
      if (scenario.decided == nullptr) continue;
      print_verdict(out, scenario, Style::plain);
      print_outcome(out, scenario, Style::plain);
      if (scenario.decided->verdict.program) print_program(out, scenario, Style::plain);
    }
    print_suite_table(out, report, Style::plain);
    print_tally(out, report, Style::plain);
  });
  check_json_lines("JSON of a run", text_by([&](std::ostream& out) {
                     for (const ReportedScenario& scenario : report.scenarios) {
                       if (scenario.decided != nullptr)
                         write_json(out, report.run, scenario, {}, {});
                     }
                     write_json(out, report, {}, {});
                   }));
  check_for_machines(report);
}

Hello hello_of(Texts& text) {
  return {.program = text,
          .version = text,
          .device = text,
          .workloads = {text},
          .planned = {text},
          .left_out = {{text, text}},
          .calibrated = {text}};
}

void check_gate(Texts& text, std::uint8_t choice) {
  GateVerdict verdict{.severity = Severity::blocks, .unused = {text}};
  for (const Severity severity : {Severity::blocks, Severity::undecided, Severity::not_gated,
                                  Severity::failed, Severity::note}) {
    Finding& finding = verdict.findings.emplace_back();
    finding.kind = static_cast<FindingKind>(choice % 5);
    finding.severity = severity;
    finding.workload = text;
    finding.what = text;
    finding.words = text;
    finding.mechanism = text;
    finding.place = {text, 7, 1};
    if (severity != Severity::note) continue;
    finding.accepted = Accepted{.workload = text,
                                .what = text,
                                .limit_text = text,
                                .who = text,
                                .why = text,
                                .until = text,
                                .place = {text, 1, 1}};
  }
  GateLooks looks{.counted = {text}};
  ComparisonVerdict& comparison = looks.comparison.emplace();
  comparison.introduction = {hello_of(text), hello_of(text)};
  comparison.notes = {text};
  comparison.workloads.push_back({.name = text, .outcome = Outcome::passes, .reason = text});
  looks.assertions = {{.scenario = text,
                       .name = text,
                       .outcome = Outcome::passes,
                       .reason = text,
                       .place = {text, 2, 1}}};
  const Report report = gate_report(
      run_info_of(text),
      {.base = text, .head = text, .both = Introduction{hello_of(text), hello_of(text)}}, looks,
      verdict, UndecidedPolicy::skip);
  check_printed("the text of a gate", [&](std::ostream& out) {
    print_gate_looks(out, *report.gate);
    print_gate(out, report, Style::plain);
  });
  check_json_lines("JSON of a gate",
                   text_by([&](std::ostream& out) { write_gate_json(out, report); }));
  check_for_machines(report);
}

void check_pictures(Texts& text) {
  const FakeTrace fake = fake_trace_of(text);
  check_xml("a timeline", timeline_of(fake, text));
  const DeviceIdentity device = device_of(text);
  check_json("a trace", text_by([&](std::ostream& out) {
               write_trace(out, {device, fake.plan, std::span(&fake.trace, 1)});
             }));
  VariantHistory history{.file = text, .scenario = text, .variant = text, .device = text};
  history.anchor = text;
  for (int week = 0; week < 3; ++week) {
    const auto index = static_cast<std::size_t>(week);
    history.runs.push_back({.date = text,
                            .commit = text,
                            .device = text,
                            .driver = text,
                            .week = static_cast<double>(week),
                            .is_compared = true});
    history.units.push_back({.week = static_cast<double>(week), .runs = {index}});
  }
  history.periods = {{.why = text, .runs = 3}};
  check_xml("a history", text_by([&](std::ostream& out) { draw_history(out, history); }));
  const std::vector<std::string> missing{text};
  check_xml("the page of a history", text_by([&](std::ostream& out) {
              write_history_html(out, run_info_of(text), std::span(&history, 1), missing,
                                 ExitCode::passes);
            }));
  check_printed("the text of a history", [&](std::ostream& out) { print_history(out, history); });
  check_json_lines("JSON of a history", text_by([&](std::ostream& out) {
                     write_history_json(out, run_info_of(text), std::span(&history, 1),
                                        ExitCode::passes);
                   }));
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Every other input is made anew, of a few hostile pieces.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  constexpr std::size_t most_pieces = 12;
  Random random(seed);
  if (random.below(2) == 0 || most < 3) return LLVMFuzzerMutate(data, size, most);
  const std::size_t pieces = 1 + random.below(std::min(most - 2, most_pieces));
  data[0] = static_cast<std::uint8_t>(random.bits());
  data[1] = static_cast<std::uint8_t>(random.bits());
  for (std::uint8_t& piece : std::span(data, 2 + pieces).subspan(2)) {
    const std::uint64_t chosen = random.below(hostile.size() + 1);
    piece = chosen == hostile.size() ? next_text : static_cast<std::uint8_t>(chosen);
  }
  return 2 + pieces;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  Texts text(std::span(data, size).subspan(2));
  switch (data[1] % 3) {
    case 0:
      check_run(text, data[0]);
      break;
    case 1:
      check_gate(text, data[0]);
      break;
    default:
      check_pictures(text);
  }
  return 0;
}
