// SPDX-License-Identifier: MIT
#include "verbs/compare/introduce_both.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "compare/gate/compared_workloads.h"
#include "verbs/compare/workers.h"

namespace stepgate {
namespace {

// Distinguishes a BASE that is too old to count from one that does not work at all.
bool answers_without_counting(const Arguments& arguments) {
  try {
    const auto started = start_worker(worker_request(
        arguments, worker_command(arguments, ComparisonSide::base), ComparisonSide::base));
    (void)started->hello();
    started->quit();
    return true;
  } catch (const WorkerError&) {
    return false;
  }
}

FindingKind kind_of_introduction(const GateRequest& request) {
  return request.looks_at(GatePart::counts) ? FindingKind::counts : FindingKind::time;
}

Finding finding_about_hello(const GateRequest& request, ComparisonSide side,
                            const WorkerError& error) {
  const FindingKind kind = kind_of_introduction(request);
  if (side == ComparisonSide::base && !request.arguments.gate.of_commands() &&
      answers_without_counting(request.arguments)) {
    return of_gate(
        kind, Severity::not_gated, std::string(name_of(kind)),
        fmt::format("BASE does not say what its steps consist of ({}); where its "
                    "`worker` knows no --counts, gate against a newer BASE, or say --only time",
                    error.what()));
  }
  return of_gate(kind, Severity::failed, std::string(name_of(kind)), error.what());
}

// Returns whether the worker says hello; otherwise adds a finding.
bool says_hello(const GateRequest& request, ComparisonSide side, Worker& worker,
                std::vector<Finding>& findings) try {
  (void)worker.hello();
  return true;
} catch (const WorkerError& error) {
  findings.push_back(finding_about_hello(request, side, error));
  return false;
}

// Starts both concurrently, unless HEAD needs calibrated values from BASE.
void start_both_counting(GateRequest& request, IntroducedBoth& introduced) {
  const bool apart = calibrates(request);
  introduced.base = start_worker(counting_request(request, ComparisonSide::base));
  if (!apart) introduced.head = start_worker(counting_request(request, ComparisonSide::head));
  if (!says_hello(request, ComparisonSide::base, *introduced.base, introduced.findings)) return;
  request.arguments.worker.calibrated = introduced.base->hello().calibrated;
  if (apart) introduced.head = start_worker(counting_request(request, ComparisonSide::head));
  if (!says_hello(request, ComparisonSide::head, *introduced.head, introduced.findings)) return;
  introduced.both = Introduction{introduced.base->hello(), introduced.head->hello()};
}

}  // namespace

ChildRequest counting_request(const GateRequest& request, ComparisonSide side,
                              std::vector<std::string> more) {
  more.insert(more.end(), {"--counts", "--seed", std::to_string(request.seed)});
  return worker_request(request.arguments, worker_command(request.arguments, side, std::move(more)),
                        side);
}

IntroducedBoth introduce_both(GateRequest& request) {
  IntroducedBoth introduced;
  try {
    if (counts_first(request)) {
      start_both_counting(request, introduced);
    } else {
      introduced.both = introduce(pairs_launcher(request.arguments, request.seed));
    }
  } catch (const WorkerError& error) {  // it wrote unrequested output or ended
    const FindingKind kind = kind_of_introduction(request);
    introduced.findings.push_back(
        of_gate(kind, Severity::failed, std::string(name_of(kind)), error.what()));
  } catch (const WaitStopped&) {
  }
  if (!introduced.both) return introduced;
  const GateScope scope = scope_of(request);
  for (const Hello* hello : {&introduced.both->base, &introduced.both->head}) {
    if (simulates_unasked(*hello, scope)) check_device(request.arguments.device);
  }
  JudgedIntroduction judged = judge_introduction(*introduced.both, scope);
  introduced.comparable = judged.comparable;
  std::ranges::move(judged.findings, std::back_inserter(introduced.findings));
  // Checks the number of pairs before counting, which takes minutes.
  (void)most_pairs(request.arguments.gate.pairs,
                   workloads_in_common(*introduced.both, &Hello::workloads, scope.patterns).size(),
                   request.settings);
  return introduced;
}

}  // namespace stepgate
