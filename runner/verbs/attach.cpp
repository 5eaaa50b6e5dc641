// SPDX-License-Identifier: MIT
// `stepgate attach`: runs a user's program, counts what a step of it does, and holds the counts
// against assertions and accepted counts.
#include "program/run_attached.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <iostream>
#include <iterator>
#include <regex>

#include "base/files/read_file.h"
#include "base/files/write_file.h"
#include "base/interruption.h"
#include "base/process/masked_words.h"
#include "judge/judge_programs.h"
#include "program/accepted_counts.h"
#include "verbs/counted_report.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// A name for reports: letters that a line of output could act on are left out of it.
std::string name_of_program(const Command& command) {
  const Command shown = masked(command);
  std::filesystem::path name = shown.front();
  for (const std::string& word : shown) {
    if (std::filesystem::path(word).extension() == ".py") {
      name = word;
      break;
    }
  }
  std::string letters = name.stem().string();
  std::erase_if(letters, [](unsigned char letter) {
    return std::isalnum(letter) == 0 && letter != '_' && letter != '-' && letter != '.';
  });
  return letters.empty() ? "program" : letters;
}

// The request as a scenario with one variant, which has no name.
Scenario scenario_of(const Arguments& arguments) {
  Scenario scenario{.name = name_of_program(arguments.attach.command),
                    .file = "--expect",
                    .claim = to_text(masked(arguments.attach.command)),
                    .variants = {Variant{}}};
  add_expectations(arguments, "attach", scenario);
  return scenario;
}

}  // namespace

StepChoice choice_of(const AttachArguments& given) {
  StepChoice choice{.kernel = given.step_kernel, .call = given.step_call};
  if (!given.step_range.empty()) {
    choice.range = given.step_range;
    choice.names_range = true;
  }
  if (given.skip_steps) choice.skip = *given.skip_steps;
  choice.names_skip = given.skip_steps.has_value();
  if (given.steps) choice.steps = *given.steps;
  choice.is_default = !given.steps;
  try {
    (void)std::regex(given.step_kernel);
  } catch (const std::regex_error&) {
    throw RequestError(
        fmt::format("--step-kernel '{}' is no regular expression", given.step_kernel),
        "write part of the kernel's name, with \\ before signs");
  }
  return choice;
}

namespace {

std::string fresh_in_words(const ComparedCount& compared) {
  std::string words;
  for (const CountedPlace* place : compared.fresh)
    words += fmt::format("{}{} is new", words.empty() ? ": " : ", ", place_in_words(*place));
  return words;
}

// One assertion for every accepted count, of the process that has most of it.
AssertionVerdict against(const AcceptedCounts& accepted, const std::string& file,
                         const ComparedCount& compared, const CountedProcess& process,
                         std::vector<std::string>& notes) {
  const std::string_view name = compared.row->name;
  AssertionVerdict verdict{
      .name = std::string(name),
      .text = fmt::format("{} <= {:g}", name, compared.accepted),
      .place = accepted.lines[static_cast<std::size_t>(compared.row->count)],
      .evidence = Evidence::exact,
      .outcome = Outcome::passes,
      .left = compared.now,
      .right = compared.accepted,
      .unit = compared.row->count == CallCount::copy_bytes ? MetricUnit::bytes : MetricUnit::count,
      .reason = fmt::format("{:g} a step, accepted {:g}", compared.now, compared.accepted)};
  switch (compared.change) {
    case CountChange::same:
      break;
    case CountChange::fewer:
      notes.push_back(
          fmt::format("{} {:g} -> {:g}: better than {} says; accept it again, or it may come back",
                      name, compared.accepted, compared.now, file));
      break;
    case CountChange::more:
      verdict.outcome = Outcome::fails;
      verdict.reason = fmt::format("{:g} -> {:g} a step{}{}", compared.accepted, compared.now,
                                   process.rank.empty() ? "" : " of rank " + process.rank,
                                   fresh_in_words(compared));
      if (!compared.fresh.empty()) {
        const SourceLine& line = compared.fresh.front()->place.own;
        verdict.place = {line.file, static_cast<int>(line.line), 1};
      }
      break;
    case CountChange::other_versions:
      verdict.outcome = Outcome::skipped;
      verdict.reason = fmt::format("{:g} -> {:g} a step, not compared: {}", compared.accepted,
                                   compared.now, compared.difference);
      break;
  }
  return verdict;
}

std::vector<AssertionVerdict> all_against(const AcceptedCounts& accepted, const std::string& file,
                                          const std::vector<const CountedProcess*>& counted,
                                          std::vector<std::string>& notes) {
  std::vector<std::vector<ComparedCount>> compared;
  for (const CountedProcess* process : counted)
    compared.push_back(compare_counts(accepted, *process));
  std::vector<AssertionVerdict> verdicts;
  for (std::size_t row = 0; row < compared.front().size(); ++row) {
    std::size_t worst = 0;
    for (std::size_t process = 1; process < compared.size(); ++process) {
      const auto badness = [&](std::size_t index) {
        const ComparedCount& one = compared[index][row];
        return std::pair(one.change == CountChange::more, one.now);
      };
      if (badness(process) > badness(worst)) worst = process;
    }
    verdicts.push_back(against(accepted, file, compared[worst][row], *counted[worst], notes));
  }
  // A count of other versions decides nothing, and does not leave the others without an answer.
  std::erase_if(verdicts, [&](const AssertionVerdict& verdict) {
    if (verdict.outcome != Outcome::skipped) return false;
    notes.push_back(fmt::format("{} {}", verdict.name, verdict.reason));
    return true;
  });
  return verdicts;
}

Verdict verdict_of(const Scenario& scenario, const ProgramRun& run,
                   const std::optional<AcceptedCounts>& accepted, const std::string& file) {
  Measurement none;
  none.planned_only = true;
  Verdict verdict = judge_programs(scenario, std::span(&run, 1), none, {});
  verdict.steps.clear();
  verdict.variants.clear();
  if (!accepted) return verdict;
  const std::string missing = reason_without_counts(run.counted);
  if (!missing.empty()) {
    verdict.assertions.push_back({.name = "accepted_counts",
                                  .text = "counts as in " + file,
                                  .place = {file, 0, 0},
                                  .evidence = Evidence::exact,
                                  .outcome = Outcome::undecided,
                                  .reason = "nothing was counted: " + missing});
  } else {
    const std::string doubt = reason_for_doubt(run.counted);
    for (AssertionVerdict& one :
         all_against(*accepted, file, counted_of(run.counted), verdict.notes)) {
      if (!doubt.empty() && one.outcome == Outcome::passes) {
        one.outcome = Outcome::undecided;
        one.reason += "; " + doubt;
      }
      verdict.assertions.push_back(std::move(one));
    }
  }
  verdict.outcome = worst(verdict.assertions);
  return verdict;
}

// Every count of the process that has most of it, with that process's lines.
CountedProcess worst_counts(const std::vector<const CountedProcess*>& counted) {
  CountedProcess worst = *counted.front();
  worst.places.clear();
  for (const CallCountRow& row : call_count_table()) {
    const auto index = static_cast<std::size_t>(row.count);
    const CountedProcess& most = **std::ranges::max_element(
        counted, {}, [&](const CountedProcess* process) { return process->mean[index]; });
    worst.mean[index] = most.mean[index];
    std::ranges::copy_if(most.places, std::back_inserter(worst.places),
                         [&](const CountedPlace& place) { return place.count == row.count; });
  }
  return worst;
}

void accept(const AttachedRun& run, const Arguments& arguments) {
  write_output([&] {
    write_file(arguments.attach.accept,
               to_text(accepted_of(worst_counts(counted_of(run)),
                                   to_text(masked(arguments.attach.command)))));
    std::cout << "accepted: " << arguments.attach.accept.string() << '\n';
  });
}

}  // namespace

int attach_program(const Arguments& arguments) {
  const AttachArguments& given = arguments.attach;
  if (is_json_or_compressed(given.command.front())) {
    throw RequestError(
        given.command.front() + " is JSON or compressed, and no program",
        fmt::format("stepgate read {} reads traces of torch.profiler", given.command.front()));
  }
  std::vector<std::filesystem::path> inputs{given.against};
  std::ranges::copy_if(given.command, std::back_inserter(inputs), [](const std::string& word) {
    std::error_code unknown;
    return std::filesystem::is_regular_file(word, unknown);
  });
  check_outputs(arguments, inputs);
  const Scenario scenario = scenario_of(arguments);
  std::optional<AcceptedCounts> accepted;
  if (!given.against.empty()) accepted = read_accepted_counts(given.against);
  const AttachFiles files = attach_files();
  AttachRequest request{.command = given.command,
                        .variables = given.variables,
                        .steps = choice_of(given),
                        .stops_after_window = given.stop,
                        .quiet = given.quiet};
  if (given.timeout_seconds) {
    request.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(*given.timeout_seconds));
  }
  const bool decides = accepted || !scenario.expect.empty() || !arguments.junit.empty();
  stop_when_interrupted();
  const ReportFiles reports(arguments);
  RunSoFar so_far = counted_run(arguments, scenario);
  reports.write(report_of(so_far));
  const ProgramRun counted{.counted = run_attached(request, files)};
  const AttachedRun& run = counted.counted;
  Verdict verdict = verdict_of(scenario, counted, accepted, given.against.string());
  const std::string failure = failure_of(run, given.command);
  const std::string missing = reason_without_counts(run);
  // A program that failed, or that no library was in, is no evidence for what an assertion says.
  if (decides && !failure.empty()) verdict.failed = failure;
  if (decides && failure.empty() && run.processes.empty()) verdict.failed = missing;
  const Report report =
      report_counted(arguments, "attach", std::move(so_far), std::move(verdict), reports);
  if (!decides && !missing.empty()) std::cerr << "nothing was counted: " << missing << '\n';
  if (!given.accept.empty()) {
    const std::string doubt = reason_for_doubt(run);
    const std::string reason = !failure.empty() ? failure : !missing.empty() ? missing : doubt;
    if (!reason.empty()) {
      std::cerr << fmt::format(
          "nothing is accepted: {}; let the program end well, with steps that are counted\n",
          reason);
      return status_of(decides ? gravest(*report.code, ExitCode::wrong_request)
                               : ExitCode::wrong_request);
    }
    if (decides && *report.code != ExitCode::passes) {
      std::cerr << "nothing is accepted: not every assertion passes\n";
    } else {
      accept(run, arguments);
    }
  }
  if (!decides) return run.timed_out ? status_of(ExitCode::device_failed) : run.code;
  return status_of(*report.code);
}

}  // namespace stepgate
