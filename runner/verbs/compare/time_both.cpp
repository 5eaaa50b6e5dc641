// SPDX-License-Identifier: MIT
#include "verbs/compare/gate_parts.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/fnv1a.h"
#include "base/process/run_program.h"
#include "base/random.h"
#include "base/seconds.h"
#include "base/text/units.h"
#include "base/toml/toml_text.h"
#include "compare/gate/compare_programs.h"
#include "compare/gate/compared_workloads.h"
#include "compare/gate/gate_timing.h"
#include "compare/gate/soak.h"
#include "compare/worker/kernel_workload.h"
#include "ledger/runs/ledger.h"
#include "line/provenance.h"
#include "plugin/tables/kernel_file.h"
#include "report/text/print_gate.h"
#include "report/text/table.h"
#include "verbs/compare/introduce_both.h"
#include "verbs/compare/workers.h"
#include "verbs/outputs.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

// Number of traced loads of a step that may be slower.
constexpr int loads_to_trace = 3;
// At most this number of slower workloads is traced, the slowest ones.
constexpr std::size_t most_traced_workloads = 8;

// Mean over several loads, by part of a step. A program takes long to start, and is traced once.
StepCounts::Numbers mean_time_of(Worker& worker, const CountedPair& pair) {
  StepCounts::Numbers mean;
  const int loads = is_of_program(pair) ? 1 : loads_to_trace;
  for (int load = 0; load < loads; ++load) {
    for (const auto& [part, seconds] : worker.count({pair.workload, true}).time)
      mean[part] += seconds / loads;
  }
  return mean;
}

// Traces slower steps again, one side after the other, to find where they have grown. An error here
// changes no outcome.
void trace_alone(const GateRequest& request, std::span<CountedPair* const> slower,
                 std::vector<Finding>& findings) try {
  if (slower.empty()) return;
  for (const ComparisonSide side : both_sides) {
    // Simulated noise differs between the sides, but both use the same processor.
    const std::uint64_t noise = random_bits(request.seed, static_cast<std::uint64_t>(side));
    const auto started =
        start_worker(counting_request(request, side, {"--noise-seed", std::to_string(noise)}));
    (void)started->hello();
    for (CountedPair* pair : slower)
      (side == ComparisonSide::base ? pair->base : pair->head).time = mean_time_of(*started, *pair);
    started->quit();
  }
} catch (const WorkerError& error) {
  findings.push_back(
      of_gate(FindingKind::time, Severity::note, "mechanism",
              std::string("where slower steps have grown is not known: ") + error.what()));
}

// One comparison by pairs of launches, with its share of the gate's error rate and time.
struct TimedPart {
  std::vector<std::string> workloads;
  bool of_kernels = false;  // of workloads, in processes that trace
  double share = 1;
  std::uint64_t seed = 0;
};

// A stored run that identifies pairs of the same two programs in the same environments, with the
// same steps.
StoredRun run_of_pairs(const GateRequest& request, const Introduction& both,
                       const TimedPart& part) {
  const Arguments& arguments = request.arguments;
  const auto subject = [&gate = arguments.gate](ComparisonSide side) {
    const bool is_base = side == ComparisonSide::base;
    const std::string program =
        hexadecimal(digest_of_this_program(program_path(is_base ? gate.base : gate.head)));
    if (!gate.of_kernels()) return program;
    return program + ' ' + identity_of_files(is_base ? gate.base_kernels : gate.head_kernels);
  };
  std::uint64_t fingerprint = fnv1a_start;
  for (const Scenario& scenario : request.scenarios)
    fingerprint = fnv1a_word(scenario.fingerprint, fingerprint);
  for (const auto* words : {&part.workloads, &arguments.overrides, &arguments.worker.calibrated,
                            &arguments.gate.base_variables, &arguments.gate.head_variables}) {
    for (const std::string& word : *words) fingerprint = fnv1a(word, fingerprint);
  }
  return {.provenance = {.date = date_of(arguments),
                         .commit = {},
                         .stepgate = STEPGATE_VERSION,
                         .scenario = fingerprint,
                         .seed = part.seed,
                         .boot = {},
                         .subject = "BASE " + subject(ComparisonSide::base) + " HEAD " +
                                    subject(ComparisonSide::head),
                         .build = build_in_words()},
          .environment = {.kind = both.base.simulated ? "simulated" : "cuda",
                          .gpu = printable(both.base.device)}};
}

// Stores every pair as soon as it has ended, so that it counts however the gate ends.
void keep_every_pair(ComparisonRequest& comparison, LedgerTurn& turn, const StoredRun& begun) {
  comparison.undecided = [&, decide = comparison.undecided](const ComparisonMeasurement& so_far) {
    StoredRun run = begun;
    run.found.expect = pairs_found_in(so_far);
    write_output([&] { turn.keep(std::move(run)); });
    return decide(so_far);
  };
}

struct MeasuredPairs {
  ComparisonMeasurement measured;
  ComparisonSettings settings;
};

LaunchWorker launcher_of(const GateRequest& request, const TimedPart& part) {
  std::vector<std::string> options;
  if (part.of_kernels) options.emplace_back("--counts");
  return pairs_launcher(request.arguments, part.seed, options, options);
}

// Measures pairs, with those of earlier gates in the settings.
MeasuredPairs measure_pairs(const GateRequest& request, const Introduction& both,
                            const TimedPart& part, std::span<const CountedPair> counted) {
  const Arguments& arguments = request.arguments;
  ComparisonSettings settings = request.settings;
  settings.alpha *= part.share;
  settings.workloads_ahead = workloads_ahead_of_a_gate(part.workloads.size());
  settings.accepted_growths =
      accepted_growths(request.accepted, part.workloads, date_of(arguments));
  std::optional<LedgerTurn> turn;
  StoredRun begun;
  if (!arguments.ledger.empty()) {
    begun = run_of_pairs(request, both, part);
    turn.emplace(request.file_of_pairs(), request.file_of_pairs().stem().string());
    check_run_of_ledger(turn->before(), begun);
    settings.earlier = earlier_in(turn->before(), begun).expect;
  }
  ComparisonRequest comparison =
      comparison_request(arguments, both, part.workloads, settings, launcher_of(request, part),
                         part.seed, of_seconds(seconds(request.most_timing) * part.share), counted);
  if (part.of_kernels) time_kernels(comparison);
  if (turn) keep_every_pair(comparison, *turn, begun);
  ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
  comparison.progress = [&](std::int64_t done, std::chrono::nanoseconds spent) {
    line.show(part.of_kernels ? "kernels" : "comparison", done, spent);
  };
  MeasuredPairs pairs{measure_comparison(comparison), std::move(settings)};
  line.clear();
  return pairs;
}

std::string slower_in_words(const ComparisonVerdict& comparison,
                            std::string_view what = "workload") {
  return counted_in_words(std::ssize(comparison.workloads), what) + ", " +
         std::to_string(
             std::ranges::count(comparison.workloads, Outcome::fails, &WorkloadVerdict::outcome)) +
         " slower, ";
}

Finding failed_time(const char* what, std::string words) {
  return of_gate(FindingKind::time, Severity::failed, what, std::move(words));
}

// Kernels of these workloads that the scenarios' assertions ask for the time of.
std::vector<std::string> kernels_asked_for(const GateRequest& request,
                                           std::span<const std::string> workloads) {
  std::vector<std::string> asked;
  for (const Scenario& scenario : request.scenarios) {
    std::ranges::copy_if(
        kernel_workloads_of(scenario), std::back_inserter(asked), [&](const std::string& kernel) {
          return std::ranges::find(workloads, workload_in(kernel)) != workloads.end();
        });
  }
  return asked;
}

void print_timed(const TimedPart& part, const ComparisonVerdict& verdict, Clock::time_point start) {
  print_gate_stage(std::cout, part.of_kernels ? "kernels" : "comparison",
                   slower_in_words(verdict, part.of_kernels ? "kernel" : "workload") +
                       std::to_string(verdict.pairs) + " pairs of launches",
                   seconds(Clock::now() - start));
}

// Times kernels in traced steps, in processes of their own, since tracing slows a step.
void time_kernels_of_both(const GateRequest& request, TimedPart part,
                          std::span<const CountedPair> counted, TimedWorkloads& timed) {
  const Clock::time_point start = Clock::now();
  const auto both = introduce(launcher_of(request, part));
  if (!both) return;
  std::ranges::move(without_kernels_that_are_not_told(*both, part.workloads),
                    std::back_inserter(timed.findings));
  if (part.workloads.empty()) return;
  const auto [measured, settings] = measure_pairs(request, *both, part, counted);
  if (measured.stopped) return;
  ComparisonVerdict verdict = judge_comparison(*both, measured, settings);
  tell_steps(verdict, *timed.comparison);
  std::ranges::move(findings_of(verdict, {}), std::back_inserter(timed.findings));
  print_timed(part, verdict, start);
  timed.comparison = with_kernels(*std::move(timed.comparison), std::move(verdict));
}

}  // namespace

TimedWorkloads time_both(const GateRequest& request, const Introduction& counted_both,
                         const std::set<std::string>& differing,
                         std::vector<CountedPair>& counted) {
  TimedWorkloads timed;
  const std::vector<std::string> workloads = in_order_of_suspicion(
      workloads_in_common(counted_both, &Hello::workloads, request.arguments.gate.workloads),
      differing);
  if (workloads.empty()) return timed;
  if (request.arguments.device.spec == "reference") {
    timed.findings.push_back(
        of_gate(FindingKind::time, Severity::not_gated, "time",
                std::string("the host reference has no notion of time") +
                    (counted.empty() ? "" : ": only counts, losses and gradients were compared")));
    return timed;
  }
  try {
    const Clock::time_point start = Clock::now();
    // A process that has counted with the tracer stays slow, so other processes are timed.
    const auto both = counts_first(request)
                          ? introduce(pairs_launcher(request.arguments, request.seed))
                          : std::optional(counted_both);
    if (!both) return timed;
    if (!same_device(both->base, counted_both.base) || !same_device(both->head, both->base)) {
      timed.findings.push_back(failed_time(
          "device", "a program that is timed names another device than when it counted"));
      return timed;
    }
    const std::vector<std::string> kernels = kernels_asked_for(request, workloads);
    const double share_of_steps = static_cast<double>(workloads.size()) /
                                  static_cast<double>(workloads.size() + kernels.size());
    const TimedPart steps{.workloads = workloads, .share = share_of_steps, .seed = request.seed};
    const auto [measured, settings] = measure_pairs(request, *both, steps, counted);
    if (measured.stopped) return timed;
    timed.comparison = judge_comparison(*both, measured, settings);
    trace_alone(request, slowest_workloads(counted, *timed.comparison, most_traced_workloads),
                timed.findings);
    std::ranges::move(findings_of(*timed.comparison, counted), std::back_inserter(timed.findings));
    print_timed(steps, *timed.comparison, start);
    if (!kernels.empty()) {
      time_kernels_of_both(request,
                           {.workloads = kernels,
                            .of_kernels = true,
                            .share = 1 - share_of_steps,
                            .seed = random_bits(request.seed, kernels.size())},
                           counted, timed);
    }
    for (const std::string& note : timed.comparison->notes) print_gate_note(std::cout, note);
  } catch (const NotComparable& error) {
    timed.findings.push_back(of_gate(FindingKind::time, Severity::not_gated, "time", error.what()));
  } catch (const WorkerError& error) {
    timed.findings.push_back(failed_time("time", error.what()));
  } catch (const WaitStopped&) {
  }
  return timed;
}

TimedWorkloads soak_head(const GateRequest& request, std::optional<Introduction>& both) {
  TimedWorkloads timed;
  const Arguments& arguments = request.arguments;
  std::uint64_t launches = 0;
  const auto launch = [&] {
    const std::string seed = std::to_string(random_bits(request.seed, launches++));
    return start_worker(
        worker_request(arguments, worker_command(arguments, ComparisonSide::head, {"--seed", seed}),
                       ComparisonSide::head));
  };
  try {
    const Clock::time_point start = Clock::now();
    const std::unique_ptr<Worker> introduced = launch();
    const Hello hello = introduced->hello();
    introduced->quit();
    both = Introduction{.base = hello, .head = hello};
    refuse_stand_in(request, hello, timed.findings);
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    std::vector<SoakedWorkload> soaked;
    std::int64_t fewest = steps_of_a_soak;
    for (const std::string& workload :
         workloads_in_common(*both, &Hello::workloads, arguments.gate.workloads)) {
      line.show("soak of " + workload);
      soaked.push_back(soak(workload, request.settings.margin_of(workload), launch));
      fewest = std::min(fewest, soaked.back().steps);
    }
    line.clear();
    if (soaked.empty()) return timed;
    timed.comparison = verdict_of(soaked, *both, request.settings);
    std::ranges::move(findings_of(*timed.comparison, {}), std::back_inserter(timed.findings));
    print_gate_stage(
        std::cout, "soak",
        slower_in_words(*timed.comparison) + std::to_string(fewest) + " steps each or more",
        seconds(Clock::now() - start));
  } catch (const WorkerError& error) {
    timed.findings.push_back(failed_time("time", error.what()));
  } catch (const WaitStopped&) {
  }
  return timed;
}

}  // namespace stepgate
