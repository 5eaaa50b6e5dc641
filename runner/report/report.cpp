// SPDX-License-Identifier: MIT
#include "report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/text/number_words.h"
#include "base/text/visible_text.h"
#include "report/append.h"
#include "report/command_again.h"
#include "report/reported_sweep.h"

namespace stepgate {
namespace {

constexpr std::array all_outcomes{
    Outcome::passes,      Outcome::fails,          Outcome::undecided,     Outcome::skipped,
    Outcome::no_baseline, Outcome::not_comparable, Outcome::machine_slower};

// A failed assertion stays failed, whatever other errors there are. An outcome without a case here
// becomes an error, never a pass.
CaseEnd case_end(const ReportedVerdict& decided, Outcome outcome, UndecidedPolicy policy) {
  if (outcome == Outcome::fails) return CaseEnd::failed;
  if (!decided.fault.empty()) return CaseEnd::error;
  if (outcome == Outcome::passes) return CaseEnd::passed;
  if (outcome == Outcome::undecided || outcome == Outcome::skipped) return end_of_undecided(policy);
  return CaseEnd::error;
}

// `among_others` says why the suite makes it fail; empty where it does not.
ReportedCase reported_case(const ReportedVerdict& decided, const ReportedAssertion& assertion,
                           const std::string& among_others, UndecidedPolicy policy) {
  const Verdict& verdict = decided.verdict;
  ReportedCase reported{.title = verdict.scenario + "." + assertion.name, .place = assertion.place};
  const Outcome outcome = among_others.empty() ? assertion.outcome : Outcome::fails;
  reported.end = case_end(decided, outcome, policy);
  reported.type = in_words(outcome);
  reported.why = assertion.reason;
  if (outcome != Outcome::fails && !decided.fault.empty()) {
    reported.type = verdict.failed && !verdict.not_run ? "device" : decided.fault;
    reported.why = decided.why;
    if (!reported.why.starts_with(assertion.reason))
      reported.by_itself = fmt::format("by itself: {}: {}", in_words(outcome), assertion.reason);
  } else if (exit_code(outcome, policy) == ExitCode::not_gated) {
    reported.type = "not gated";
  }
  if (!among_others.empty()) reported.why += "; " + among_others;
  reported.message = fmt::format("{}: {}", assertion.text, reported.why);
  reported.assertion = &assertion;
  return reported;
}

// The case that says why the assertions of a scenario are skipped, with the line of the regime. It
// is not a failure, in agreement with the exit code.
ReportedCase reported_regime(const std::string& scenario, const ReportedAssertion& assertion,
                             UndecidedPolicy policy) {
  ReportedCase reported{.title = scenario + ".regime." + assertion.name,
                        .place = assertion.place,
                        .end = end_of_undecided(policy),
                        .type = std::string(in_words(Outcome::skipped))};
  reported.why = reported.message =
      fmt::format("the regime does not pass: {}: {}", assertion.text, assertion.reason);
  return reported;
}

ReportedScenario reported_unrun(const Scenario& scenario, const RunInfo& run) {
  ReportedScenario reported{.name = scenario.name, .again = command_again(run, scenario.file)};
  const std::string why = "the run ended before this was decided";
  for (const Expectation& assertion : scenario.expect) {
    const std::string message = fmt::format("{}: {}", assertion.text, why);
    reported.cases.push_back({.title = scenario.name + "." + assertion.name,
                              .place = assertion.place,
                              .type = std::string(not_run),
                              .why = message,
                              .message = message});
  }
  return reported;
}

ReportedCase own_case(const RunFailure& failure, CaseEnd end) {
  return {.title = "stepgate." + failure.type,
          .place = failure.place,
          .end = end,
          .type = failure.type,
          .why = failure.message,
          .message = failure.message};
}

CaseCounts counts_of(std::span<const ReportedCase> cases) {
  CaseCounts counts;
  for (const ReportedCase& one : cases) ++counts.by_end[static_cast<std::size_t>(one.end)];
  return counts;
}

std::string ended_in_words(const ReportedScenario& scenario) {
  const auto type_of_first = [&](auto&& wanted) {
    const auto found = std::ranges::find_if(scenario.cases, wanted, &ReportedCase::end);
    return found == scenario.cases.end() ? "" : found->type;
  };
  if (scenario.counts[CaseEnd::failed] > 0)
    return type_of_first([](CaseEnd end) { return end == CaseEnd::failed; });
  if (scenario.decided == nullptr) {
    if (scenario.cases.empty()) return std::string(not_run);
    const std::string wrong = type_of_first([](CaseEnd end) { return end != CaseEnd::passed; });
    return wrong.empty() ? "passed" : wrong;
  }
  return scenario.decided->ended;
}

void sum_up(ReportedScenario& scenario) {
  scenario.counts = counts_of(scenario.cases);
  scenario.ended = ended_in_words(scenario);
  const bool has_fault = scenario.decided != nullptr && !scenario.decided->fault.empty();
  scenario.end = scenario.counts.gravest().value_or(has_fault ? CaseEnd::error : CaseEnd::passed);
  if (scenario.end == CaseEnd::passed && has_fault) scenario.end = CaseEnd::error;
}

// Files of the same name in different folders have the same scenario name, but readers of a report
// keep one case per name. So each case gets a unique name.
void name_apart(std::vector<ReportedScenario>& scenarios) {
  std::set<std::string> taken;
  std::map<std::string, int> highest;  // last number used for each title
  for (ReportedScenario& scenario : scenarios) {
    for (ReportedCase& one : scenario.cases) {
      const std::string title = one_line(one.title);
      one.name = title;
      for (int& number = highest.emplace(title, 1).first->second; !taken.insert(one.name).second;)
        one.name = fmt::format("{} ({})", title, ++number);
    }
  }
}

std::string among_others_in_words(const SuiteVerdict& suite) {
  return fmt::format("undecided alone, by the evidence among all {} comparisons", suite.lines);
}

// Marks assertions that are undecided alone but fail in the suite.
void refute_among_others(ReportedScenario& scenario, const SuiteVerdict& suite,
                         UndecidedPolicy policy, const RunInfo& run) {
  if (scenario.decided == nullptr || !scenario.decided->fault.empty()) return;
  for (ReportedCase& one : scenario.cases) {
    if (one.assertion == nullptr || one.assertion->outcome != Outcome::undecided) continue;
    if (std::ranges::find(suite.failed_among_others, one.title) == suite.failed_among_others.end())
      continue;
    one = reported_case(*scenario.decided, *one.assertion, among_others_in_words(suite), policy);
    scenario.again = command_again(run);  // alone it would be undecided
  }
}

// Returns the comparisons with the most evidence against the suite, the strongest first.
std::vector<std::string> lines_against(std::span<const ReportedScenario> scenarios) {
  constexpr std::size_t most_named = 3;
  std::vector<std::pair<double, std::string>> lines;
  for (const ReportedScenario& scenario : scenarios) {
    if (scenario.decided->verdict.broken) continue;
    for (const AssertionVerdict& assertion : scenario.decided->verdict.assertions) {
      if (!assertion.timed || assertion.in_doubt || assertion.timed->evidence_against <= 1)
        continue;
      lines.emplace_back(-assertion.timed->evidence_against, scenario.name + "." + assertion.name);
    }
  }
  std::sort(lines.begin(), lines.end());
  std::vector<std::string> names;
  for (const auto& [evidence, name] : lines) {
    if (names.size() < most_named) names.push_back(name);
  }
  return names;
}

std::string suite_in_words(const SuiteVerdict& suite, std::span<const ReportedScenario> scenarios) {
  return fmt::format(
      "the suite as a whole: the evidence against its {} comparisons together is {}, and {} is "
      "enough; wrongly so in at most {} of runs; most of it against {}",
      suite.lines, number_in_words(suite.evidence, 3), number_in_words(1 / suite.alpha, 3),
      share_in_words(suite.alpha), fmt::join(lines_against(scenarios), ", "));
}

ReportedSuite reported_suite(const SuiteVerdict& suite,
                             std::span<const ReportedScenario> scenarios) {
  ReportedSuite reported{.verdict = suite, .failed = {}};
  for (const std::string& line : suite.failed_among_others)
    reported.failed.push_back(line + ", " + among_others_in_words(suite));
  if (suite.failed) reported.failed.push_back(suite_in_words(suite, scenarios));
  return reported;
}

// Adds the assertions that determine the outcome of a scenario that does not pass. A scenario that
// is skipped as a whole adds its own name.
void add_deciding_lines(const Verdict& verdict, std::vector<std::string>& names) {
  if (verdict.outcome == Outcome::passes) return;
  if (!verdict.skipped_because.empty()) return names.push_back(verdict.scenario);
  for (const AssertionVerdict& assertion : verdict.assertions) {
    if (assertion.outcome == verdict.outcome)
      names.push_back(verdict.scenario + "." + assertion.name);
  }
}

// "x", or "x, x.line failed": failed assertions are named whatever else happened to the scenario.
std::string with_failed_lines(const Verdict& verdict) {
  std::string words = verdict.scenario;
  for (const AssertionVerdict& assertion : verdict.assertions) {
    if (assertion.outcome == Outcome::fails)
      append(words, ", {}.{} fails", verdict.scenario, assertion.name);
  }
  return words;
}

// `unrun` scenarios come after those that are decided.
std::vector<TallyEntry> tally_of(std::span<const ReportedScenario> scenarios,
                                 std::span<const Scenario* const> unrun) {
  std::vector<TallyEntry> rows{
      {.how = device_failed}, {.how = not_run}, {.how = program_failed}, {.how = "broken"}};
  constexpr std::size_t faults = 4;
  for (const Outcome outcome : all_outcomes) rows.push_back({.how = in_words(outcome)});
  for (const ReportedScenario& scenario : scenarios) {
    const ReportedVerdict& decided = *scenario.decided;
    const Verdict& verdict = decided.verdict;
    const std::size_t of_failure = verdict.program ? 2 : 0;
    const std::size_t fault = verdict.not_run ? 1 : verdict.failed ? of_failure : 3;
    TallyEntry& row = decided.fault.empty()
                          ? rows[faults + static_cast<std::size_t>(
                                              std::ranges::find(all_outcomes, verdict.outcome) -
                                              all_outcomes.begin())]
                          : rows[fault];
    ++row.count;
    if (decided.fault.empty()) {
      add_deciding_lines(verdict, row.names);
    } else {
      row.names.push_back(with_failed_lines(verdict));
    }
  }
  for (const Scenario* scenario : unrun) {
    ++rows[1].count;
    rows[1].names.push_back(scenario->name);
  }
  std::erase_if(rows, [](const TallyEntry& row) { return row.count == 0; });
  for (TallyEntry& row : rows) {
    if (row.count > 1 && row.how == in_words(Outcome::passes)) row.how = "pass";
    if (row.count > 1 && row.how == in_words(Outcome::fails)) row.how = "fail";
  }
  return rows;
}

ExitCode code_of(const RunFailure& failure) {
  if (failure.type == "request") return ExitCode::wrong_request;
  return failure.type == "not gated" ? ExitCode::not_gated : ExitCode::device_failed;
}

std::optional<ExitCode> code_of(const RunSoFar& run) {
  if (!run.ended) return std::nullopt;
  std::optional<ExitCode> code;
  const auto add = [&](ExitCode more) { code = code ? gravest(*code, more) : more; };
  if (run.suite) {
    add(exit_code(*run.suite));
    if (!run.run.gated) add(ExitCode::not_gated);
  }
  for (const ReportedScenario& scenario : run.decided)
    add(exit_code(scenario.decided->verdict, run.undecided));
  for (const RunFailure& failure : run.failures) {
    if (failure.type == "interrupted") return std::nullopt;
    add(code_of(failure));
  }
  return code;
}

}  // namespace

std::size_t CaseCounts::all() const {
  return std::accumulate(by_end.begin(), by_end.end(), std::size_t{0});
}

std::optional<CaseEnd> CaseCounts::gravest() const {
  for (const CaseEnd end : {CaseEnd::failed, CaseEnd::error, CaseEnd::skipped, CaseEnd::passed}) {
    if ((*this)[end] > 0) return end;
  }
  return std::nullopt;
}

CaseEnd end_of_undecided(UndecidedPolicy policy) {
  switch (policy) {
    case UndecidedPolicy::skip:
      return CaseEnd::skipped;
    case UndecidedPolicy::fail:
      return CaseEnd::failed;
    case UndecidedPolicy::pass:
      return CaseEnd::passed;
  }
  return CaseEnd::error;
}

ReportedScenario reported_scenario(Verdict verdict, const Scenario* scenario,
                                   UndecidedPolicy policy, const RunInfo& run) {
  ReportedScenario reported{.name = verdict.scenario};
  reported.decided =
      std::make_shared<const ReportedVerdict>(reported_verdict(std::move(verdict), scenario));
  for (const ReportedAssertion& assertion : reported.decided->assertions)
    reported.cases.push_back(reported_case(*reported.decided, assertion, "", policy));
  for (const ReportedAssertion& assertion : reported.decided->regime) {
    if (assertion.outcome == Outcome::fails)
      reported.cases.push_back(reported_regime(reported.name, assertion, policy));
  }
  sum_up(reported);
  if (reported.end != CaseEnd::passed)
    reported.again = command_again(run, scenario == nullptr ? "" : scenario->file);
  return reported;
}

void count_and_name(Report& report) {
  name_apart(report.scenarios);
  for (ReportedScenario& scenario : report.scenarios) {
    sum_up(scenario);
    for (std::size_t end = 0; end < report.counts.by_end.size(); ++end)
      report.counts.by_end[end] += scenario.counts.by_end[end];
  }
}

Report report_of(const RunSoFar& run) {
  const std::span all(run.scenarios);
  const auto unrun = run.ended && run.failures.empty()
                         ? all.subspan(std::min(run.decided.size(), all.size()))
                         : std::span<const Scenario* const>();
  Report report{.run = run.run,
                .simulated = run.run.simulated,
                .ended_early = !run.failures.empty() || !unrun.empty(),
                .scenarios = run.decided,
                .tally = tally_of(run.decided, unrun),
                .code = code_of(run)};
  bool any_failed = false;
  for (const ReportedScenario& scenario : run.decided) {
    report.simulated |= scenario.decided->simulated;
    report.ended_early |= scenario.decided->verdict.not_run;
    any_failed |= scenario.decided->verdict.outcome == Outcome::fails;
  }
  ReportedScenario own{.name = "stepgate", .again = command_again(run.run)};
  for (const RunFailure& failure : run.failures)
    own.cases.push_back(own_case(failure, CaseEnd::error));
  if (run.suite) {
    report.suite = reported_suite(*run.suite, run.decided);
    report.failed_as_suite = !any_failed && !report.suite->failed.empty();
    bool any_case_failed = false;
    for (ReportedScenario& scenario : report.scenarios) {
      refute_among_others(scenario, *run.suite, run.undecided, run.run);
      any_case_failed |= counts_of(scenario.cases)[CaseEnd::failed] > 0;
    }
    if (run.suite->failed && !any_case_failed) {
      own.cases.push_back(own_case({"suite", {}, report.suite->failed.back()}, CaseEnd::failed));
      own.cases.back().type = in_words(Outcome::fails);
    }
  }
  for (const ReportedScenario& scenario : run.decided) {
    if (scenario.decided == nullptr) continue;
    report.figures.insert(report.figures.end(), scenario.decided->figures.begin(),
                          scenario.decided->figures.end());
  }
  report.sweeps = reported_sweeps(run.scenarios, run.decided);
  for (std::size_t index = run.decided.size(); index < run.scenarios.size(); ++index)
    report.scenarios.push_back(reported_unrun(*run.scenarios[index], run.run));
  for (std::size_t index = 0; index < std::min(run.pictures.size(), report.scenarios.size());
       ++index)
    report.scenarios[index].pictures = run.pictures[index];
  if (!own.cases.empty()) report.scenarios.insert(report.scenarios.begin(), std::move(own));
  count_and_name(report);
  return report;
}

}  // namespace stepgate
