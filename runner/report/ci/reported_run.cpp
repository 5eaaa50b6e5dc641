// SPDX-License-Identifier: MIT
#include "report/ci/reported_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text/visible_text.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

constexpr const char* own_name = "stepgate";

bool is_failed_among_others(const ReportedRun& run, const std::string& line) {
  if (run.suite == nullptr) return false;
  const std::vector<std::string>& lines = run.suite->failed_among_others;
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

// A failed assertion stays failed, whatever else is broken. An outcome that is not named here is
// an error rather than an assertion that passed.
CaseEnd case_end(const Verdict& verdict, Outcome outcome, UndecidedPolicy policy) {
  if (outcome == Outcome::fails) return CaseEnd::failed;
  if (verdict.broken || verdict.failed) return CaseEnd::error;
  if (outcome == Outcome::passes) return CaseEnd::passed;
  if (outcome == Outcome::undecided || outcome == Outcome::skipped) return end_of_undecided(policy);
  return CaseEnd::error;
}

ReportedCase reported_case(const ReportedRun& run, const Verdict& verdict,
                           const AssertionVerdict& assertion) {
  ReportedCase reported;
  reported.title = verdict.scenario + "." + assertion.name;
  reported.place = assertion.place;
  const bool among_others = assertion.outcome == Outcome::undecided && !verdict.broken &&
                            !verdict.failed && is_failed_among_others(run, reported.title);
  const Outcome outcome = among_others ? Outcome::fails : assertion.outcome;
  reported.end = case_end(verdict, outcome, run.undecided);
  reported.type = in_words(outcome);
  std::string why = assertion.reason;
  if (outcome != Outcome::fails && verdict.failed) {
    reported.type = verdict.not_run ? not_run : "device";
    why = *verdict.failed;
  } else if (outcome != Outcome::fails && verdict.broken) {
    reported.type = "broken";
    why = *verdict.broken;
  } else if (exit_code(outcome, run.undecided) == ExitCode::not_gated) {
    reported.type = "not gated";
  }
  if (among_others) why += "; failed by the evidence among all comparisons of the run";
  reported.message = fmt::format("{}: {}", assertion.text, why);
  reported.assertion = &assertion;
  return reported;
}

// Why the assertions of a scenario are skipped, at the line that says so: no failure, since the
// exit code is none.
ReportedCase reported_regime(const ReportedRun& run, const Verdict& verdict,
                             const AssertionVerdict& assertion) {
  ReportedCase reported;
  reported.title = verdict.scenario + ".regime." + assertion.name;
  reported.place = assertion.place;
  reported.end = end_of_undecided(run.undecided);
  reported.type = in_words(Outcome::skipped);
  reported.message =
      fmt::format("the regime does not pass: {}: {}", assertion.text, assertion.reason);
  return reported;
}

ReportedScenario reported_unrun(const Scenario& scenario) {
  ReportedScenario reported{.name = scenario.name,
                            .verdict = nullptr,
                            .cases = {},
                            .scenario = &scenario,
                            .pictures = {}};
  for (const Expectation& assertion : scenario.expect) {
    reported.cases.push_back({.name = {},
                              .title = scenario.name + "." + assertion.name,
                              .place = assertion.place,
                              .end = CaseEnd::error,
                              .type = std::string(not_run),
                              .message = assertion.text + ": the run ended before this was decided",
                              .assertion = nullptr});
  }
  return reported;
}

ReportedScenario reported_verdict(const ReportedRun& run, const Verdict& verdict) {
  ReportedScenario reported{.name = verdict.scenario,
                            .verdict = &verdict,
                            .cases = {},
                            .scenario = nullptr,
                            .pictures = {}};
  for (const AssertionVerdict& assertion : verdict.assertions)
    reported.cases.push_back(reported_case(run, verdict, assertion));
  for (const AssertionVerdict& assertion : verdict.regime) {
    if (assertion.outcome == Outcome::fails)
      reported.cases.push_back(reported_regime(run, verdict, assertion));
  }
  return reported;
}

// Cases of the run as a whole that belong to no assertion: failures, and a suite that fails
// although no assertion of it is.
ReportedScenario of_the_run(const ReportedRun& run, std::span<const ReportedScenario> scenarios) {
  ReportedScenario reported{
      .name = own_name, .verdict = nullptr, .cases = {}, .scenario = nullptr, .pictures = {}};
  for (const RunFailure& failure : run.failures) {
    reported.cases.push_back({.name = {},
                              .title = "stepgate." + failure.type,
                              .place = failure.place,
                              .end = CaseEnd::error,
                              .type = failure.type,
                              .message = failure.message,
                              .assertion = nullptr});
  }
  if (run.suite != nullptr && run.suite->failed && count_of(scenarios, CaseEnd::failed) == 0) {
    reported.cases.push_back(
        {.name = {},
         .title = "stepgate.suite",
         .place = {},
         .end = CaseEnd::failed,
         .type = "fails",
         .message = fmt::format("the suite as a whole: the evidence against its {} comparisons "
                                "together is {:.3g}, and {:.3g} is enough",
                                run.suite->lines, run.suite->evidence, 1 / run.suite->alpha),
         .assertion = nullptr});
  }
  return reported;
}

bool is_simulated(const ReportedRun& run) {
  return std::any_of(run.verdicts.begin(), run.verdicts.end(), [](const Verdict& verdict) {
    return !verdict.planned_only && verdict.device.kind != DeviceKind::cuda;
  });
}

ExitCode code_of(const RunFailure& failure) {
  if (failure.type == "request") return ExitCode::wrong_request;
  return failure.type == "not gated" ? ExitCode::not_gated : ExitCode::device_failed;
}

std::optional<ExitCode> code_of(const ReportedRun& run) {
  if (!run.ended) return std::nullopt;
  std::optional<ExitCode> code;
  if (run.suite != nullptr) code = exit_code(run.verdicts, *run.suite, run.undecided);
  for (const RunFailure& failure : run.failures) {
    if (failure.type == "interrupted") return std::nullopt;
    code = code ? gravest(*code, code_of(failure)) : code_of(failure);
  }
  return code;
}

}  // namespace

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

ReportedCases reported_cases(const ReportedRun& run) {
  std::vector<ReportedScenario> all;
  for (const Verdict& verdict : run.verdicts) all.push_back(reported_verdict(run, verdict));
  for (std::size_t index = run.verdicts.size(); index < run.scenarios.size(); ++index)
    all.push_back(reported_unrun(*run.scenarios[index]));
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (index < run.scenarios.size()) all[index].scenario = run.scenarios[index];
    if (index < run.pictures.size()) all[index].pictures = run.pictures[index];
  }
  if (ReportedScenario own = of_the_run(run, all); !own.cases.empty())
    all.insert(all.begin(), std::move(own));
  name_apart(all);
  return {
      .verb = "run",
      .run = run.run,
      .simulated = is_simulated(run),
      .ended_early = !run.failures.empty() || std::ranges::any_of(run.verdicts, &Verdict::not_run),
      .scenarios = std::move(all),
      .code = code_of(run),
      .gate = nullptr};
}

std::size_t count_of(std::span<const ReportedScenario> scenarios, CaseEnd end) {
  std::ptrdiff_t count = 0;
  for (const ReportedScenario& scenario : scenarios) {
    count += std::count_if(scenario.cases.begin(), scenario.cases.end(),
                           [&](const ReportedCase& one) { return one.end == end; });
  }
  return static_cast<std::size_t>(count);
}

}  // namespace stepgate
