// SPDX-License-Identifier: MIT
#include "verbs/compare/gate_parts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/fnv1a.h"
#include "base/process/run_program.h"
#include "base/random.h"
#include "compare/gate/compared_workloads.h"
#include "compare/gate/gate_stages.h"
#include "compare/gate/gate_timing.h"
#include "compare/gate/self_test.h"
#include "line/planned.h"
#include "line/ranks/rank_team.h"
#include "report/text/print_gate.h"
#include "report/text/table.h"
#include "verbs/compare/workers.h"
#include "verbs/outputs.h"

namespace stepgate {
namespace {

// The program's hello and counts for the given files.
struct Base {
  Hello hello;
  std::vector<std::string> workloads;
  std::vector<CountedPair> counted;  // both sides are the same program
};

// Counts the workloads once, as a gate does before timing; the number of pairs that fit into memory
// depends on it.
Base look_at_base(const Arguments& arguments, std::uint64_t seed) {
  const std::vector<std::string> more{"--counts", "--seed", std::to_string(seed)};
  const auto worker = start_worker(worker_request(
      arguments, worker_command(arguments, ComparisonSide::base, more), ComparisonSide::base));
  Base base{.hello = worker->hello(), .workloads = {}, .counted = {}};
  if (base.hello.simulated && !arguments.device.spec.starts_with("simulated"))
    throw NotGatedError(std::string(simulated_unasked));
  if (base.hello.workloads.empty()) {
    const std::vector<LeftOut>& none = base.hello.left_out;
    throw RequestError(none.empty() ? "no step of these scenarios is timed"
                                    : none.front().scenario + ": " + printable(none.front().why),
                       "name scenarios whose steps a device runs");
  }
  refuse_unmatched(arguments.gate.workloads, base.hello.workloads);
  base.workloads =
      workloads_in_common({base.hello, base.hello}, &Hello::workloads, arguments.gate.workloads);
  print_self_tests(std::cout, arguments.gate.base, base.hello, seed);
  for (const LeftOut& none : base.hello.left_out)
    print_gate_note(std::cout, none.scenario + " is left out: " + none.why);
  for (const std::string& workload : base.workloads) {
    if (!base.hello.counts) break;
    const StepCounts counts = worker->count({workload});
    base.counted.push_back({.workload = workload, .base = counts, .head = counts});
  }
  worker->quit();
  return base;
}

// Runs the gates of one workload.
class Gates {
 public:
  // Workers read only the workload's scenario file, so that other files do not slow launches.
  Gates(Arguments arguments, const Base& base, std::string workload, const Scenario& scenario,
        std::uint64_t seed)
      : arguments_(std::move(arguments)),
        base_(base),
        work_(std::move(workload)),
        seed_(random_bits(seed, fnv1a(work_, fnv1a_start))),
        settings_{.margin = margin_of(arguments_.gate.margin)} {
    arguments_.files = {scenario.file};
    arguments_.worker.calibrated = base_.hello.calibrated;
    const auto variant =
        std::ranges::find(scenario.variants, work_.substr(work_.find('/') + 1), &Variant::name);
    if (variant != scenario.variants.end() && variant->gate.margin)
      settings_.margin = std::max(settings_.margin, *variant->gate.margin);
  }

  SelfTest run() {
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    print_self_test_terms(std::cout, work_, settings_.margin, most_timing());
    return test_gate({.workload = work_,
                      .settings = settings_,
                      .gates = arguments_.gate.gates,
                      .trial_gates = arguments_.gate.trial_gates,
                      .run = [this](const InjectedSides& sides) { return gate(sides); },
                      .progress =
                          [&](const std::string& trial, std::int64_t number, std::int64_t of) {
                            line.show(fmt::format("gate {} of {} of '{}'", number, of, trial));
                          },
                      .ended =
                          [&](const TrialResult& trial) {
                            line.clear();
                            print_trial(std::cout, trial);
                          }});
  }

 private:
  std::chrono::nanoseconds most_timing() const {
    return arguments_.budget_seconds ? of_seconds(*arguments_.budget_seconds)
                                     : std::chrono::nanoseconds(most_timing_of_a_tried_gate);
  }

  static std::vector<std::string> options_of(const std::vector<Injection>& injected) {
    std::vector<std::string> more;
    for (const Injection& injection : injected)
      more.insert(more.end(), {"--injected", text_of(injection)});
    return more;
  }

  std::optional<TriedGate> gate(const InjectedSides& sides) {
    const std::uint64_t seed = random_bits(seed_, gates_++);
    const LaunchWorker launch =
        pairs_launcher(arguments_, seed, options_of(sides.base), options_of(sides.head));
    if (!both_) both_ = introduce(launch);
    if (!both_) return std::nullopt;
    const ComparisonMeasurement measured = measure_comparison(comparison_request(
        arguments_, *both_, {work_}, settings_, launch, seed, most_timing(), base_.counted));
    if (measured.stopped) return std::nullopt;
    return tried_gate(judge_comparison(*both_, measured, settings_), measured);
  }

  Arguments arguments_;
  const Base& base_;
  std::string work_;
  std::uint64_t seed_;
  ComparisonSettings settings_;
  std::optional<Introduction> both_;
  std::uint64_t gates_ = 0;
};

void check_request(const Arguments& arguments) {
  refuse_launcher("`gate --self-test` starts the ranks of each gate itself");
  if (arguments.device.spec == "reference")
    throw RequestError("a gate has no times to compare on a device without time",
                       "say --device cuda or simulated");
  check_program("--base", arguments.gate.base);
  check_device_name(arguments.device);
  check_device(arguments.device);
  const ComparisonSettings settings{.margin = margin_of(arguments.gate.margin)};
  (void)most_pairs(arguments.gate.pairs, 1, settings);
}

// Returns false when the user interrupts it.
bool test_all(const Arguments& arguments, std::span<const Scenario> scenarios,
              std::vector<SelfTest>& tests) try {
  const std::uint64_t seed = seed_of(arguments);
  const Base base = look_at_base(arguments, seed);
  for (const std::string& workload : base.workloads) {
    const auto scenario =
        std::ranges::find(scenarios, workload.substr(0, workload.find('/')), &Scenario::name);
    if (scenario == scenarios.end())
      throw WorkerError("BASE lists a workload of no scenario, '" + printable(workload) + "'");
    tests.push_back(Gates(arguments, base, workload, *scenario, seed).run());
    if (tests.back().stopped) return false;
    print_self_test(std::cout, tests.back(), base.hello.simulated);
  }
  return true;
} catch (const WaitStopped&) {
  return false;
}

}  // namespace

int test_the_gate(const Arguments& given) {
  Arguments arguments = given;
  if (arguments.gate.base.empty()) arguments.gate.base = path_of_this_program().string();
  arguments.gate.head = arguments.gate.base;
  check_request(arguments);
  const std::vector<Scenario> scenarios = scenarios_with_wanted_tags(arguments);
  refuse_namesakes(scenarios);
  arguments.files.clear();
  for (const Scenario& scenario : scenarios) arguments.files.emplace_back(scenario.file);
  std::vector<SelfTest> tests;
  if (!test_all(arguments, scenarios, tests)) return say_interrupted("the self-test has not ended");
  ExitCode code = ExitCode::passes;
  for (const SelfTest& test : tests)
    code = gravest(code, exit_code(outcome_of(test), arguments.undecided));
  return status_of(code);
}

}  // namespace stepgate
