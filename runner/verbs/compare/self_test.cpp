// SPDX-License-Identifier: MIT
#include "verbs/compare/self_test.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "duel/gate/compared_works.h"
#include "duel/gate/gate_stages.h"
#include "duel/gate/gate_timing.h"
#include "duel/gate/self_test.h"
#include "report/text/print_gate.h"
#include "report/text/table.h"
#include "support/fnv1a.h"
#include "support/process/run_program.h"
#include "support/random.h"
#include "verbs/compare/workers.h"
#include "verbs/outputs.h"
#include "verbs/planned.h"
#include "verbs/ranks/rank_team.h"

namespace stepgate {
namespace {

// The program and the given files as it sees them.
struct Base {
  Hello hello;
  std::vector<std::string> works;
  std::vector<CountedPair> counted;  // both sides are the program
};

// Counts the works once, as a gate does before it times: how many pairs fit into the memory follows
// from it.
Base look_at_base(const Arguments& arguments, std::uint64_t seed) {
  const std::vector<std::string> more{"--counts", "--seed", std::to_string(seed)};
  const auto worker = start_worker(
      worker_request(arguments, worker_command(arguments, DuelSide::base, more), DuelSide::base));
  Base base{.hello = worker->hello(), .works = {}, .counted = {}};
  if (base.hello.simulated && !arguments.device.spec.starts_with("simulated"))
    throw NotGatedError(std::string(simulated_unasked));
  if (base.hello.works.empty()) {
    const std::vector<LeftOut>& none = base.hello.left_out;
    throw RequestError(none.empty() ? "no step of these scenarios is timed"
                                    : none.front().scenario + ": " + printable(none.front().why),
                       "name scenarios whose steps a device runs");
  }
  refuse_unmatched(arguments.gate.works, base.hello.works);
  base.works = works_in_common({base.hello, base.hello}, &Hello::works, arguments.gate.works);
  print_self_tests(std::cout, arguments.gate.base, base.hello, seed);
  for (const LeftOut& none : base.hello.left_out)
    print_gate_note(std::cout, none.scenario + " is left out: " + none.why);
  for (const std::string& work : base.works) {
    if (!base.hello.counts) break;
    const StepCounts counts = worker->count({work});
    base.counted.push_back({.work = work, .base = counts, .head = counts});
  }
  worker->quit();
  return base;
}

// The gates of one work.
class Gates {
 public:
  // Workers read the scenario's file alone, so that the other files cost no launch anything.
  Gates(Arguments arguments, const Base& base, std::string work, const Scenario& scenario,
        std::uint64_t seed)
      : arguments_(std::move(arguments)),
        base_(base),
        work_(std::move(work)),
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
    return test_gate({.work = work_,
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
    const DuelMeasurement measured = measure_duel(duel_request(
        arguments_, *both_, {work_}, settings_, launch, seed, most_timing(), base_.counted));
    if (measured.stopped) return std::nullopt;
    return tried_gate(judge_duel(*both_, measured, settings_), measured);
  }

  Arguments arguments_;
  const Base& base_;
  std::string work_;
  std::uint64_t seed_;
  DuelSettings settings_;
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
  const DuelSettings settings{.margin = margin_of(arguments.gate.margin)};
  (void)most_pairs(arguments.gate.pairs, 1, settings);
}

// False when somebody wants the end.
bool test_all(const Arguments& arguments, std::span<const Scenario> scenarios,
              std::vector<SelfTest>& tests) try {
  const std::uint64_t seed = seed_of(arguments);
  const Base base = look_at_base(arguments, seed);
  for (const std::string& work : base.works) {
    const auto scenario =
        std::ranges::find(scenarios, work.substr(0, work.find('/')), &Scenario::name);
    if (scenario == scenarios.end())
      throw WorkerError("BASE lists a work of no scenario, '" + printable(work) + "'");
    tests.push_back(Gates(arguments, base, work, *scenario, seed).run());
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
  ExitCode code = ExitCode::holds;
  for (const SelfTest& test : tests)
    code = gravest(code, exit_code(outcome_of(test), arguments.undecided));
  return status_of(code);
}

}  // namespace stepgate
