// SPDX-License-Identifier: MIT
#include "line/programs/decide_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>

#include "base/interruption.h"
#include "base/process/masked_words.h"
#include "base/time_of_scope.h"
#include "judge/judge_programs.h"
#include "line/programs/held_steps.h"

namespace stepgate {
namespace {

Command command_of(const ProgramKnobs& program) {
  Command command = program.command;
  command.insert(command.end(), program.arguments.begin(), program.arguments.end());
  return command;
}

std::vector<std::string> variables_of(const ProgramKnobs& program) {
  std::vector<std::string> variables;
  for (const auto& [name, text] : program.env) variables.push_back(name + '=' + text);
  return variables;
}

std::chrono::nanoseconds time_limit_of(const ProgramKnobs& program) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(program.timeout_s));
}

StepChoice choice_of(const ProgramKnobs& program) {
  StepChoice choice{.kernel = program.step_kernel,
                    .call = program.step_call,
                    .skip = program.skip_steps,
                    .steps = program.steps,
                    .is_default = false,
                    .is_of_scenario = true};
  choice.names_skip = true;
  if (program.step_range.empty()) return choice;
  choice.range = program.step_range;
  choice.names_range = true;
  return choice;
}

HeldRequest held_request(const ProgramKnobs& program) {
  return {.command = command_of(program),
          .variables = variables_of(program),
          .folder = program.cwd,
          .start_limit = time_limit_of(program),
          .answer_limit = time_limit_of(program)};
}

DeviceIdentity device_of_programs() {
  const std::string gpus = gpus_of_this_machine();
  return {.kind = DeviceKind::cuda, .name = gpus.empty() ? "this machine" : gpus};
}

bool needs_rounds(const Scenario& scenario) {
  const auto needs = [](const Expectation& assertion) {
    return evidence_of(assertion) >= Evidence::timed ||
           std::ranges::any_of(metrics_in(assertion),
                               [](const MetricOf& of) { return of.metric == Metric::peak_live; });
  };
  return std::ranges::any_of(scenario.expect, needs) || std::ranges::any_of(scenario.regime, needs);
}

Measurement without_rounds(const Scenario& scenario, std::uint64_t seed) {
  Measurement none;
  none.planned_only = true;
  none.device = device_of_programs();
  none.scenario_fingerprint = scenario.fingerprint;
  none.seed = seed;
  return none;
}

// A segment holds a whole number of what repeats (`program.steps`).
std::vector<Subject> timed_subjects(const Scenario& scenario) {
  std::vector<Subject> subjects;
  for (const Variant& variant : scenario.variants) {
    Subject subject;
    subject.name = variant.name;
    if (variant.knobs.program.steps > 1)
      subject.periodic.push_back({.name = "program.steps",
                                  .every = variant.knobs.program.steps,
                                  .rough_seconds = 0,
                                  .counts = {}});
    subject.against_interleaving = "each variant is a program of its own";
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

Measurement measure_held(const Scenario& scenario, std::uint64_t seed,
                         const JudgeSettings& settings, const ProgressSink& progress,
                         std::vector<ProgramRun>& runs) {
  std::vector<HeldVariant> variants;
  for (const Variant& variant : scenario.variants) {
    variants.push_back({.name = variant.name,
                        .request = held_request(variant.knobs.program),
                        .skip_steps = variant.knobs.program.skip_steps});
  }
  HeldRunner runner(device_of_programs(), variants);
  const std::vector<Subject> subjects = timed_subjects(scenario);
  const Enough enough = enough_evidence(scenario, subjects, settings);
  MeasureRequest request;
  request.knobs = scenario.measure;
  for (const Variant& variant : scenario.variants) {
    request.knobs.fewest_steps =
        std::max(request.knobs.fewest_steps, 2 * variant.knobs.program.steps);
  }
  request.scenario_fingerprint = scenario.fingerprint;
  request.seed = seed;
  request.fewest_rounds = fewest_rounds_to_hold(scenario, settings);
  request.enough = [&](const Measurement& so_far) { return interrupted != 0 || enough(so_far); };
  request.progress = [&](const Progress& now) { progress.measuring(scenario, now); };
  Measurement measurement = measure(
      runner, subjects,
      [&](std::size_t subject, int, const LoadDraw& draw) { return runner.load(subject, draw); },
      request);
  for (std::size_t variant = 0; variant < runs.size(); ++variant) {
    if (runner.peak_memory_bytes(variant) > 0)
      runs[variant].memory.emplace(Metric::peak_live,
                                   static_cast<double>(runner.peak_memory_bytes(variant)));
  }
  return measurement;
}

// Why a variant is no evidence, in words; empty where it is.
std::string failure_of(const Variant& variant, const ProgramRun& run) {
  const Command command = command_of(variant.knobs.program);
  std::string failure = failure_of(run.counted, command);
  if (failure.empty() && run.counted.processes.empty())
    failure = fmt::format("'{}': {}", to_text(masked(command)), reason_without_counts(run.counted));
  return failure.empty() ? failure : variant.name + ": " + failure;
}

}  // namespace

AttachRequest counting_request(const Variant& variant) {
  const ProgramKnobs& program = variant.knobs.program;
  return {.command = command_of(program),
          .variables = variables_of(program),
          .folder = program.cwd,
          .steps = choice_of(program),
          .timeout = time_limit_of(program),
          .stops_after_window = true};
}

Decided decide_programs(const Planned& planned, const LineArguments& arguments, std::uint64_t seed,
                        JudgeSettings settings, const ProgressSink& progress) {
  const Scenario& scenario = planned.scenario;
  const std::string& device = arguments.device.spec;
  if (!device.empty() && device != "cuda") {
    return {skipped_verdict(
                scenario, device_of_programs(),
                fmt::format("a program chooses its GPU, and --device says '{}'", device), settings),
            {}};
  }
  const auto begin = std::chrono::steady_clock::now();
  const AttachFiles files = attach_files();
  std::vector<ProgramRun> runs(scenario.variants.size(), {.counted = {}, .was_started = false});
  std::string failure;
  for (std::size_t index = 0; index < runs.size() && failure.empty(); ++index) {
    const Variant& variant = scenario.variants[index];
    const AttachRequest request = counting_request(variant);
    progress.starting(scenario, to_text(masked(request.command)));
    runs[index] = {.counted = run_attached(request, files)};
    for (CountedProcess& process : runs[index].counted.processes) process.variant = variant.name;
    failure = failure_of(variant, runs[index]);
  }
  Decided decided;
  decided.measurement = without_rounds(scenario, seed_of(scenario, seed));
  if (failure.empty() && needs_rounds(scenario)) {
    try {
      decided.measurement =
          measure_held(scenario, seed_of(scenario, seed), settings, progress, runs);
    } catch (const DeviceError& error) {
      failure = error.what();
    }
  }
  throw_if_interrupted();
  decided.wall_times = decided.measurement.wall_times;
  const TimeOfScope judging(decided.wall_times[WallPart::judging]);
  decided.verdict = judge_programs(scenario, runs, decided.measurement, settings);
  if (decided.measurement.planned_only) decided.verdict.variants.clear();  // they have no times
  if (!failure.empty()) decided.verdict.failed = failure;
  if (!arguments.ledger.empty())
    decided.verdict.notes.emplace_back("a ledger keeps no runs of programs");
  decided.verdict.wall_time = std::chrono::steady_clock::now() - begin;
  return decided;
}

}  // namespace stepgate
