// SPDX-License-Identifier: MIT
// `stepgate gate` decides whether HEAD may be merged. It checks counts, a comparison, HEAD's own
// assertions, and changes to the scenarios, in this order; an early finding does not stop later
// checks.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>

#include "base/files/write_file.h"
#include "base/interruption.h"
#include "base/process/run_program.h"
#include "base/seconds.h"
#include "base/text/text_stream.h"
#include "compare/gate/compare_programs.h"
#include "compare/gate/compared_workloads.h"
#include "line/decide_with_ledger.h"
#include "line/planned.h"
#include "line/provenance.h"
#include "report/text/print_gate.h"
#include "report/text/table.h"
#include "report/writers.h"
#include "verbs/compare/gate_parts.h"
#include "verbs/compare/introduce_both.h"
#include "verbs/compare/stored_assertions.h"
#include "verbs/compare/workers.h"
#include "verbs/failure.h"
#include "verbs/machine_reports.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

// The subjects that were compared, and the findings.
struct Looked {
  GateSubject subject;
  std::vector<CountedPair> counted = {};
  std::optional<ComparisonVerdict> comparison = {};
  std::vector<HeadAssertion> assertions = {};
  std::vector<Finding> findings = {};

  void add(std::vector<Finding> found) { std::ranges::move(found, std::back_inserter(findings)); }
  GateLooks looks() const {
    GateLooks looks{.counted = {}, .comparison = comparison, .assertions = assertions};
    for (const CountedPair& pair : counted) looks.counted.push_back(pair.workload);
    return looks;
  }
};

std::string base_in_words(const Arguments& arguments) {
  if (arguments.gate.soak) return "its own beginning";
  if (arguments.gate.stored)
    return "the stored runs in " + arguments.device.baselines.users.string();
  if (arguments.gate.of_kernels()) return arguments.gate.base_kernels;
  return arguments.gate.base_command.value_or(arguments.gate.base);
}

GateSubject subject_of(const GateRequest& request) {
  const GateArguments& gate = request.arguments.gate;
  std::map<std::string, SweepPoint> points;
  for (const Scenario& scenario : request.scenarios) {
    if (scenario.point) points.emplace(scenario.name, *scenario.point);
  }
  return {.base = base_in_words(request.arguments),
          .head = gate.of_kernels() ? gate.head_kernels : gate.head_command.value_or(gate.head),
          .both = {},
          .margin = request.settings.margin,
          .margin_source = gate.margin_source,
          .only = {gate.only.begin(), gate.only.end()},
          .wider = std::ssize(request.settings.wider),
          .most_timing = request.most_timing,
          .points = std::move(points)};
}

RunInfo info_of(const GateRequest& request, const std::vector<std::filesystem::path>& files) {
  return run_info_of(request.arguments, files.empty() ? default_scenarios : files.front(),
                     request.seed);
}

// Launches a user's program again where HEAD does more: what one launch does by chance, the next
// one need not do.
void count_again(const GateRequest& request, std::span<const CountedPair> first,
                 JudgedCounts& judged) try {
  constexpr int launches = 2;
  std::vector<std::string> workloads;
  for (const CountedPair& pair : first) {
    if (std::ranges::any_of(judged.findings, [&](const Finding& finding) {
          return finding.workload == pair.workload && finding.severity == Severity::blocks;
        }))
      workloads.push_back(pair.workload);
  }
  if (workloads.empty()) return;
  std::vector<CountedPair> again;
  for (int launch = 0; launch < launches; ++launch) {
    const auto base = start_worker(counting_request(request, ComparisonSide::base));
    const auto head = start_worker(counting_request(request, ComparisonSide::head));
    (void)base->hello();
    (void)head->hello();
    CountedBoth both = count_both(*base, *head, workloads, [](const std::string&) {});
    std::ranges::transform(both.failures, std::back_inserter(judged.findings), finding_of);
    std::ranges::move(both.pairs, std::back_inserter(again));
  }
  keep_what_comes_again(judged.findings, first, again);
} catch (const WorkerError& error) {
  judged.findings.push_back(of_gate(FindingKind::counts, Severity::failed, "counts", error.what()));
}

std::set<std::string> count(IntroducedBoth introduced, const GateRequest& request, Looked& looked,
                            Clock::time_point start) try {
  const Introduction& both = *introduced.both;
  if (!both.base.counts || !both.head.counts) return {};
  ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
  const std::vector<std::string>& patterns = request.arguments.gate.workloads;
  std::vector<std::string> workloads = workloads_in_common(both, &Hello::workloads, patterns);
  std::ranges::move(workloads_in_common(both, &Hello::planned, patterns),
                    std::back_inserter(workloads));
  CountedBoth counted =
      count_both(*introduced.base, *introduced.head, workloads,
                 [&line](const std::string& workload) { line.show("counts of " + workload); });
  JudgedCounts judged = judge_counts(counted.pairs, counted.failures);
  if (request.arguments.gate.of_program()) count_again(request, counted.pairs, judged);
  looked.counted = std::move(counted.pairs);
  looked.add(std::move(judged.findings));
  if (counted.failures.empty()) {
    line.clear();
    print_gate_stage(std::cout, "counts",
                     counted_in_words(std::ssize(workloads), "workload") + ", " +
                         std::to_string(judged.differing.size()) + " differ",
                     seconds(Clock::now() - start));
  }
  return judged.differing;
} catch (const WaitStopped&) {
  return {};
}

void take(const GateRequest& request, DecidedAssertions decided, Looked& looked) {
  if (decided.head.stopped) return;
  if (!looked.subject.both) {
    looked.subject.both = introduction_of(decided.head);
    refuse_stand_in(request, looked.subject.both->head, looked.findings);
  }
  looked.assertions = std::move(decided.head.assertions);
  looked.add(std::move(decided.findings));
}

void take(TimedWorkloads timed, Looked& looked) {
  looked.comparison = std::move(timed.comparison);
  looked.add(std::move(timed.findings));
}

void decide_assertions(const GateRequest& request, Looked& looked) {
  if (!request.arguments.gate.of_commands()) return take(request, ask_head(request), looked);
  looked.add({of_gate(FindingKind::assertion, Severity::not_gated, "assertions",
                      "a command line of a worker decides no assertions; --only counts or --only "
                      "time compares the rest")});
}

void compare_with_stored(const GateRequest& request, Looked& looked) {
  print_gate_terms(std::cout, looked.subject);
  auto decided = ask_head_as_stored(request);
  if (!decided) return refuse_nothing_compared(looked.findings);
  for (HeadAssertion& assertion : decided->head.assertions) translate(assertion, request.scenarios);
  take(request, std::move(*decided), looked);
}

void compare_with_beginning(const GateRequest& request, Looked& looked) {
  print_gate_terms(std::cout, looked.subject);
  take(soak_head(request, looked.subject.both), looked);
  if (!looked.comparison && !interrupted) refuse_nothing_compared(looked.findings);
}

void compare_with_base(GateRequest& request, Looked& looked) {
  const Clock::time_point start = Clock::now();
  const bool compares_workloads =
      request.looks_at(GatePart::counts) || request.looks_at(GatePart::time);
  IntroducedBoth introduced;
  if (compares_workloads) introduced = introduce_both(request);
  looked.subject.both = introduced.both;
  looked.add(std::move(introduced.findings));
  print_gate_terms(std::cout, looked.subject);
  if (compares_workloads && !introduced.comparable) return;
  std::set<std::string> differing;
  if (!interrupted && request.looks_at(GatePart::counts))
    differing = count(std::move(introduced), request, looked, start);
  if (!interrupted && request.looks_at(GatePart::time))
    take(time_both(request, *looked.subject.both, differing, looked.counted), looked);
  if (!interrupted && request.looks_at(GatePart::assertions)) decide_assertions(request, looked);
  if (compares_workloads ? looked.counted.empty() && !looked.comparison
                         : !decides_any(looked.assertions))
    refuse_nothing_compared(looked.findings);
}

void write_json_file(const Arguments& arguments, const std::string& text) {
  if (!arguments.json.empty()) write_output([&] { write_file(arguments.json, text); });
}

// The line of the first function that the scenarios launch.
Place place_in_source(const std::filesystem::path& source, std::span<const Scenario> scenarios) {
  Place place{.file = source.string()};
  std::ifstream file(source);
  for (std::string line; std::getline(file, line);) {
    ++place.line;
    for (const Scenario& scenario : scenarios)
      for (const Variant& variant : scenario.variants)
        for (const auto& [name, replacement] : variant.knobs.kernels)
          if (line.find(replacement.function + '(') != std::string::npos) return place;
  }
  place.line = 0;
  return place;
}

int report_gate(const GateRequest& request, Looked looked, const RunInfo& info,
                const ReportFiles& files) {
  const Arguments& arguments = request.arguments;
  place(looked.findings, request.scenarios);
  if (!arguments.gate.source.empty())
    place_at_source(looked.findings, request.scenarios,
                    place_in_source(arguments.gate.source, request.scenarios));
  const GateVerdict verdict =
      judge_gate(std::move(looked.findings), request.accepted, date_of(arguments));
  GateLooks looks = looked.looks();
  const Report report =
      gate_report(info, std::move(looked.subject), std::move(looks), verdict, arguments.undecided);
  const Style style = style_of(descriptor_of_text());
  print_fitted(std::cout, style, [&](std::ostream& out) {
    if (arguments.verbose) print_gate_looks(out, *report.gate);
    print_gate(out, report, style);
  });
  TextStream json;
  write_gate_json(json, report);
  write_json_file(arguments, json.str());
  files.end(report);
  return status_of(*report.code);
}

void look_at_everything(GateRequest& request, Looked& looked) {
  looked.add(look_at_scenarios(request));
  looked.subject = subject_of(request);
  if (request.arguments.gate.soak) {
    compare_with_beginning(request, looked);
  } else if (request.arguments.gate.stored) {
    compare_with_stored(request, looked);
  } else {
    compare_with_base(request, looked);
  }
}

bool blocks(const Looked& looked) {
  return std::ranges::any_of(
      looked.findings, [](const Finding& finding) { return finding.severity == Severity::blocks; });
}

int gate(GateRequest request) {
  const Arguments& arguments = request.arguments;
  check_outputs(arguments, inputs_of(arguments));
  // HEAD may write where this gate writes, so links that it puts in place of files are not
  // followed.
  if (!arguments.ledger.empty()) check_ledger_writable(request.file_of_pairs(), arguments);
  const ReportFiles files(arguments);
  RunInfo info = info_of(request, arguments.files);
  // Replaces reports of an earlier gate first, in case this one cannot start.
  files.write(gate_that_has_not_ended(info, "the gate has not ended"));
  write_json_file(arguments, "");
  Looked looked{.subject = subject_of(request)};
  try {
    check_programs(arguments.gate);
    if (!arguments.gate.source.empty() && !std::filesystem::is_regular_file(arguments.gate.source))
      throw RequestError(fmt::format("--source '{}' is no file", arguments.gate.source.string()),
                         "name the source of the kernels");
    check_device_name(arguments.device);
    if (!arguments.gate.accepted.empty())
      request.accepted = read_accepted(arguments.gate.accepted, date_of(arguments));
    if (!arguments.gate.of_commands()) info = info_of(request, scenario_files(arguments));
    look_at_everything(request, looked);
    if (!interrupted) return report_gate(request, std::move(looked), info, files);
    files.end(gate_that_has_not_ended(info, "the gate was interrupted"));
    return say_interrupted("HEAD is not gated");
  } catch (const std::exception& error) {
    if (!blocks(looked) || interrupted) {
      files.end(gate_that_has_not_ended(info, error.what()));
      throw;
    }
    (void)say_failure();  // which does not hide what was found before
    looked.add({of_gate(FindingKind::assertion, Severity::failed, "gate", error.what())});
    return report_gate(request, std::move(looked), info, files);
  }
}

}  // namespace

int gate_programs(const Arguments& arguments) {
  stop_when_interrupted();
  if (arguments.gate.self_test) return test_the_gate(arguments);
  if (arguments.gate.of_program() && arguments.gate.only.contains(GatePart::assertions))
    throw RequestError("a gate of a program decides no assertions",
                       "leave out --only assertions; `stepgate run` decides them");
  if (arguments.gate.of_commands() && arguments.gate.only.contains(GatePart::assertions))
    throw RequestError("a command line of a worker decides no assertions",
                       "leave out --only assertions, or give --base and --head PROGRAM");
  if (arguments.gate.of_kernels()) {
    Arguments same = arguments;
    same.gate.base = same.gate.head = path_of_this_program().string();
    same.gate.base_overrides = {"kernels=" + arguments.gate.base_kernels};
    same.gate.head_overrides = {"kernels=" + arguments.gate.head_kernels};
    return gate(request_of(same));
  }
  if (arguments.gate.head.empty() && !arguments.gate.of_commands())
    throw RequestError("there is no HEAD to gate", "give --head PROGRAM");
  return gate(request_of(arguments));
}

}  // namespace stepgate
