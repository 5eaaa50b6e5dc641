// SPDX-License-Identifier: MIT
#include "verbs/compare/gate_parts.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <utility>

#include "base/seconds.h"
#include "base/text/units.h"
#include "ledger/baseline/baseline_file.h"
#include "report/text/print_gate.h"
#include "report/text/table.h"
#include "verbs/compare/head_assertions.h"
#include "verbs/compare/stored_assertions.h"
#include "verbs/compare/workers.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

// Runs BASE too where a finding of HEAD is open, unless both are the same program.
void ask_base(const GateRequest& request, DecidedAssertions& decided) {
  const auto files = files_with_open_findings(decided.findings, request.scenarios);
  if (files.empty()) return;
  if (run_same_program(request.arguments)) return know_from_itself(decided.findings);
  const RunOfProgram base = run_program_on(request.arguments, ComparisonSide::base,
                                           request.arguments.gate.base, files, request.seed);
  decided.head.stopped = base.stopped;
  if (!base.stopped) know_from_base(decided.findings, base);
}

// HEAD is not to blame for a stored file that cannot be read. Throws RequestError where one is.
void check_stored_files(const GateRequest& request) {
  for (const auto& folder : folders_of_devices(request.arguments.device.baselines.users))
    for (const Scenario& scenario : request.scenarios)
      (void)read_baseline_if_any(folder / (scenario.name + ".toml"), scenario.name);
}

void print_assertions(const std::string& stage, const RunOfProgram& head, std::int64_t count,
                      const std::string& what, Clock::time_point start) {
  print_gate_stage(std::cout, stage,
                   counted_in_words(head.scenarios, "scenario") + ", " +
                       counted_in_words(std::ssize(head.assertions), "assertion") + ", " +
                       std::to_string(count) + " " + what,
                   seconds(Clock::now() - start));
}

bool is_failed(const Finding& finding) {
  return finding.outcome && finding.severity == Severity::blocks;
}

}  // namespace

DecidedAssertions ask_head(const GateRequest& request) {
  const Arguments& arguments = request.arguments;
  const Clock::time_point start = Clock::now();
  ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
  line.show("HEAD decides its assertions, within " + seconds_text(arguments.gate.run_seconds));
  DecidedAssertions decided{.head =
                                run_program_on(arguments, ComparisonSide::head, arguments.gate.head,
                                               arguments.files, request.seed)};
  if (decided.head.stopped) return decided;
  decided.findings = judge_run(decided.head, request.scenarios);
  ask_base(request, decided);
  line.clear();
  print_assertions("assertions", decided.head, std::ranges::count_if(decided.findings, is_failed),
                   "fails", start);
  return decided;
}

std::optional<DecidedAssertions> ask_head_as_stored(const GateRequest& request) {
  const Clock::time_point start = Clock::now();
  const StoredAssertions stored(request.scenarios, request.settings.margin, request.seed);
  if (stored.files().empty()) return std::nullopt;
  ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
  line.show("HEAD runs its scenarios");
  DecidedAssertions decided{.head = run_program_on(request.arguments, ComparisonSide::head,
                                                   request.arguments.gate.head, stored.files(),
                                                   request.seed, stored.bases())};
  line.clear();
  if (decided.head.stopped) return decided;
  if (decided.head.refused) check_stored_files(request);
  excuse_by_other_anchors(decided.head.assertions);
  decided.findings = judge_run(decided.head, {});
  for (Finding& finding : decided.findings) stored.translate(finding);
  const auto& assertions = decided.head.assertions;
  print_assertions("stored", decided.head,
                   std::ssize(assertions) -
                       std::ranges::count(assertions, Outcome::passes, &HeadAssertion::outcome),
                   "not held", start);
  return decided;
}

}  // namespace stepgate
