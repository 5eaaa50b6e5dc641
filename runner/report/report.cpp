// SPDX-License-Identifier: MIT
#include "report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "report/append.h"
#include "support/text/number_words.h"
#include "support/text/visible_text.h"

namespace stepgate {
namespace {

constexpr std::array all_outcomes{
    Outcome::holds,       Outcome::refuted,        Outcome::undecided,     Outcome::skipped,
    Outcome::no_baseline, Outcome::not_comparable, Outcome::machine_slower};

// --- cases

// A refuted sentence stays refuted, whatever else is broken. An outcome that is not named here is
// an error rather than a sentence that passed.
CaseEnd case_end(const ReportedVerdict& decided, Outcome outcome, UndecidedPolicy policy) {
  if (outcome == Outcome::refuted) return CaseEnd::failed;
  if (!decided.fault.empty()) return CaseEnd::error;
  if (outcome == Outcome::holds) return CaseEnd::passed;
  if (outcome == Outcome::undecided || outcome == Outcome::skipped) return end_of_undecided(policy);
  return CaseEnd::error;
}

// `among_others`: in words how the suite refutes it; empty where it does not.
ReportedCase reported_case(const ReportedVerdict& decided, const ReportedSentence& sentence,
                           const std::string& among_others, UndecidedPolicy policy) {
  const Verdict& verdict = decided.verdict;
  ReportedCase reported{.title = verdict.scenario + "." + sentence.name, .place = sentence.place};
  const Outcome outcome = among_others.empty() ? sentence.outcome : Outcome::refuted;
  reported.end = case_end(decided, outcome, policy);
  reported.type = in_words(outcome);
  reported.why = sentence.reason;
  if (outcome != Outcome::refuted && !decided.fault.empty()) {
    reported.type = verdict.failed && !verdict.not_run ? "device" : decided.fault;
    reported.why = decided.why;
    if (!reported.why.starts_with(sentence.reason))
      reported.by_itself = fmt::format("by itself: {}: {}", in_words(outcome), sentence.reason);
  } else if (exit_code(outcome, policy) == ExitCode::not_gated) {
    reported.type = "not gated";
  }
  if (!among_others.empty()) reported.why += "; " + among_others;
  reported.message = fmt::format("{}: {}", sentence.text, reported.why);
  reported.sentence = &sentence;
  return reported;
}

// Why the sentences of a scenario are skipped, at the line that says so: no failure, since the exit
// code is none.
ReportedCase reported_regime(const std::string& scenario, const ReportedSentence& sentence,
                             UndecidedPolicy policy) {
  ReportedCase reported{.title = scenario + ".regime." + sentence.name,
                        .place = sentence.place,
                        .end = end_of_undecided(policy),
                        .type = std::string(in_words(Outcome::skipped))};
  reported.why = reported.message =
      fmt::format("the regime does not hold: {}: {}", sentence.text, sentence.reason);
  return reported;
}

ReportedScenario reported_unrun(const Scenario& scenario) {
  ReportedScenario reported{.name = scenario.name};
  const std::string why = "the run ended before this was decided";
  for (const Expectation& sentence : scenario.expect) {
    const std::string message = fmt::format("{}: {}", sentence.text, why);
    reported.cases.push_back({.title = scenario.name + "." + sentence.name,
                              .place = sentence.place,
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

// Two files of one name in different folders are two scenarios of one name, and who reads a report
// keeps one case of a name.
void name_apart(std::vector<ReportedScenario>& scenarios) {
  std::set<std::string> taken;
  std::map<std::string, int> highest;  // numbers behind titles: thousands may be the same
  for (ReportedScenario& scenario : scenarios) {
    for (ReportedCase& one : scenario.cases) {
      const std::string title = one_line(one.title);
      one.name = title;
      for (int& number = highest.emplace(title, 1).first->second; !taken.insert(one.name).second;)
        one.name = fmt::format("{} ({})", title, ++number);
    }
  }
}

// --- the suite

std::string among_others_in_words(const SuiteVerdict& suite) {
  return fmt::format("undecided alone, by the evidence among all {} comparisons", suite.lines);
}

// The suite refutes some sentences that are undecided by themselves.
void refute_among_others(ReportedScenario& scenario, const SuiteVerdict& suite,
                         UndecidedPolicy policy) {
  if (scenario.decided == nullptr || !scenario.decided->fault.empty()) return;
  for (ReportedCase& one : scenario.cases) {
    if (one.sentence == nullptr || one.sentence->outcome != Outcome::undecided) continue;
    if (std::ranges::find(suite.refuted_among_others, one.title) ==
        suite.refuted_among_others.end())
      continue;
    one = reported_case(*scenario.decided, *one.sentence, among_others_in_words(suite), policy);
  }
}

// The comparisons that speak most against the suite, the first first.
std::vector<std::string> lines_against(std::span<const ReportedScenario> scenarios) {
  constexpr std::size_t most_named = 3;
  std::vector<std::pair<double, std::string>> lines;
  for (const ReportedScenario& scenario : scenarios) {
    if (scenario.decided->verdict.broken) continue;
    for (const SentenceVerdict& sentence : scenario.decided->verdict.sentences) {
      if (!sentence.timed || sentence.in_doubt || sentence.timed->evidence_against <= 1) continue;
      lines.emplace_back(-sentence.timed->evidence_against, scenario.name + "." + sentence.name);
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
  ReportedSuite reported{.verdict = suite, .refuted = {}};
  for (const std::string& line : suite.refuted_among_others)
    reported.refuted.push_back(line + ", " + among_others_in_words(suite));
  if (suite.refuted) reported.refuted.push_back(suite_in_words(suite, scenarios));
  return reported;
}

// --- the tally

// Adds the sentences that make the outcome of their scenario what it is, where that is not the good
// one. A scenario that is skipped as a whole adds its own name.
void add_deciding_lines(const Verdict& verdict, std::vector<std::string>& names) {
  if (verdict.outcome == Outcome::holds) return;
  if (!verdict.skipped_because.empty()) return names.push_back(verdict.scenario);
  for (const SentenceVerdict& sentence : verdict.sentences) {
    if (sentence.outcome == verdict.outcome)
      names.push_back(verdict.scenario + "." + sentence.name);
  }
}

// "x", or "x, x.line refuted": what is refuted counts whatever else became of its scenario.
std::string with_refuted_lines(const Verdict& verdict) {
  std::string words = verdict.scenario;
  for (const SentenceVerdict& sentence : verdict.sentences) {
    if (sentence.outcome == Outcome::refuted)
      append(words, ", {}.{} refuted", verdict.scenario, sentence.name);
  }
  return words;
}

std::vector<TallyEntry> tally_of(std::span<const ReportedScenario> scenarios) {
  std::vector<TallyEntry> rows{{.how = "failed"}, {.how = not_run}, {.how = "broken"}};
  constexpr std::size_t faults = 3;
  for (const Outcome outcome : all_outcomes) rows.push_back({.how = in_words(outcome)});
  for (const ReportedScenario& scenario : scenarios) {
    const ReportedVerdict& decided = *scenario.decided;
    const Verdict& verdict = decided.verdict;
    const std::size_t fault = verdict.not_run ? 1 : verdict.failed ? 0 : 2;
    TallyEntry& row = decided.fault.empty()
                          ? rows[faults + static_cast<std::size_t>(
                                              std::ranges::find(all_outcomes, verdict.outcome) -
                                              all_outcomes.begin())]
                          : rows[fault];
    ++row.count;
    if (decided.fault.empty()) {
      add_deciding_lines(verdict, row.names);
    } else {
      row.names.push_back(with_refuted_lines(verdict));
    }
  }
  std::erase_if(rows, [](const TallyEntry& row) { return row.count == 0; });
  return rows;
}

// --- the exit code

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
    for (const ReportedScenario& scenario : run.decided)
      add(exit_code(scenario.decided->verdict, run.undecided));
    if (!run.run.gated) add(ExitCode::not_gated);
  }
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
                                   UndecidedPolicy policy) {
  ReportedScenario reported{.name = verdict.scenario};
  reported.decided =
      std::make_shared<const ReportedVerdict>(reported_verdict(std::move(verdict), scenario));
  for (const ReportedSentence& sentence : reported.decided->sentences)
    reported.cases.push_back(reported_case(*reported.decided, sentence, "", policy));
  for (const ReportedSentence& sentence : reported.decided->regime) {
    if (sentence.outcome == Outcome::refuted)
      reported.cases.push_back(reported_regime(reported.name, sentence, policy));
  }
  sum_up(reported);
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
  Report report{.run = run.run,
                .simulated = run.run.simulated,
                .ended_early = !run.failures.empty(),
                .scenarios = run.decided,
                .tally = tally_of(run.decided),
                .code = code_of(run)};
  bool any_refuted = false;
  for (const ReportedScenario& scenario : run.decided) {
    report.simulated |= scenario.decided->simulated;
    report.ended_early |= scenario.decided->verdict.not_run;
    any_refuted |= scenario.decided->verdict.outcome == Outcome::refuted;
  }
  ReportedScenario own{.name = "stepgate"};
  for (const RunFailure& failure : run.failures)
    own.cases.push_back(own_case(failure, CaseEnd::error));
  if (run.suite) {
    report.suite = reported_suite(*run.suite, run.decided);
    report.refuted_as_suite = !any_refuted && !report.suite->refuted.empty();
    bool any_failed = false;
    for (ReportedScenario& scenario : report.scenarios) {
      refute_among_others(scenario, *run.suite, run.undecided);
      any_failed |= counts_of(scenario.cases)[CaseEnd::failed] > 0;
    }
    if (run.suite->refuted && !any_failed) {
      own.cases.push_back(own_case({"suite", {}, report.suite->refuted.back()}, CaseEnd::failed));
      own.cases.back().type = in_words(Outcome::refuted);
    }
  }
  for (std::size_t index = run.decided.size(); index < run.scenarios.size(); ++index)
    report.scenarios.push_back(reported_unrun(*run.scenarios[index]));
  for (std::size_t index = 0; index < std::min(run.pictures.size(), report.scenarios.size());
       ++index)
    report.scenarios[index].pictures = run.pictures[index];
  if (!own.cases.empty()) report.scenarios.insert(report.scenarios.begin(), std::move(own));
  count_and_name(report);
  return report;
}

}  // namespace stepgate
