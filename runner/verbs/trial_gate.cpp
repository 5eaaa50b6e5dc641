// SPDX-License-Identifier: MIT
// `stepgate trial-gate`: the other end of gate_process.h. One question on standard input, one line
// on standard output, and that belongs to the protocol.
#include "verbs/trial_gate.h"

#include <iostream>
#include <limits>
#include <memory>
#include <string>

#include "history/certificate/gate_process.h"
#include "measure/rounds/measure.h"
#include "plan/count/facts_of.h"
#include "support/seconds.h"
#include "verbs/fit_to_device.h"
#include "verbs/planned.h"
#include "verbs/ranks/plan_digest.h"
#include "verbs/ranks/rank_team.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// After which it is undecided. By the clock, so whatever a round turns out to cost.
constexpr double most_seconds_of_a_gate = 5;

GateResult run_gate(Device& device, const TrialGate& gate, std::uint64_t seed, double margin) {
  const JudgeSettings settings;
  const std::vector<PlannedStep> plans = with_facts(gate.plans);
  const Enough decided = enough_evidence(gate.scenario, plans, settings);
  std::chrono::nanoseconds before_rounds{0};
  std::chrono::nanoseconds spent{0};
  MeasureRequest request;
  request.knobs = gate.scenario.measure;
  request.knobs.rounds = std::numeric_limits<std::int32_t>::max();
  request.knobs.max_seconds = std::numeric_limits<std::int32_t>::max();
  request.scenario_fingerprint = gate.scenario.fingerprint;
  request.seed = seed_of(gate.scenario, seed);
  request.fewest_rounds = fewest_rounds_to_hold(gate.scenario, settings);
  request.progress = [&](const Progress& now) {
    if (now.rounds == 0) before_rounds = now.spent;
    spent = now.spent - before_rounds;
  };
  request.enough = [&](const Measurement& so_far) {
    const bool may_end = std::ssize(so_far.rounds) >= request.fewest_rounds;
    return decided(so_far) || (may_end && seconds(spent) >= most_seconds_of_a_gate);
  };
  const Measurement measurement = measure(device, plans, request);
  return gate_result(judge(gate.scenario, plans, measurement, settings), measurement, margin);
}

// Ranks are started for this gate alone, as this process is.
GateResult run_gate_of_ranks(RankTeam& team, std::vector<Planned>& all, const Arguments& arguments,
                             std::uint64_t seed) {
  const std::unique_ptr<RankedDevice> device = team.assemble(seed, RanksFor::timing);
  fit_to_device(all, device->identity(), seed);
  const TrialGate gate = trial_gate_of(all, arguments);
  device->refuse_other_plans(named_plans(with_facts(gate.plans)));
  return run_gate(*device, gate, seed, margin_of(arguments.margin));
}

std::string answer(const Arguments& arguments, const std::string& question) {
  const std::uint64_t seed = seed_of(arguments);
  std::vector<Planned> all = plan_all(arguments, seed);
  refuse_calibration(all);
  refuse_planned_only(all);
  if (question == introduction_question) {
    const OpenedDevice opened = open_device_for(arguments, seed);
    fit_to_device(all, opened.device->identity(), seed);
    return to_line(GateIntroduction{.device = opened.device->identity(), .note = opened.note});
  }
  const bool is_of_several = plan_named(all.front(), arguments.variant)->ranks.count > 1;
  const auto team = is_of_several ? own_ranks_for(arguments, all) : nullptr;
  if (team) return to_line(run_gate_of_ranks(*team, all, arguments, seed));
  const OpenedDevice opened = open_device_for(arguments, seed);
  fit_to_device(all, opened.device->identity(), seed);
  return to_line(
      run_gate(*opened.device, trial_gate_of(all, arguments), seed, margin_of(arguments.margin)));
}

}  // namespace

bool asks_for_trial_gate(const Arguments& arguments) {
  return !arguments.trial_gate.trial.empty();
}

TrialGate trial_gate_of(const std::vector<Planned>& all, const Arguments& arguments) {
  const TrialGateArguments& given = arguments.trial_gate;
  const InjectionSite site{.kind = injection_site_named(given.site),
                           .step_time = std::chrono::nanoseconds(given.step_nanoseconds)};
  const Planned& planned = all.front();
  return trial_gate(planned.scenario, plan_named(planned, arguments.variant),
                    trial_named(given.trial), site, margin_of(arguments.margin));
}

std::vector<std::string> options_of_trial_gate(const Arguments& arguments) {
  const TrialGateArguments& given = arguments.trial_gate;
  return {"--variant", arguments.variant,
          "--margin",  arguments.margin,
          "--trial",   given.trial,
          "--site",    given.site,
          "--step-ns", std::to_string(given.step_nanoseconds)};
}

int gate_for_certify(const Arguments& arguments) {
  std::string question;
  if (!std::getline(std::cin, question)) return 0;
  try {
    std::cout << answer(arguments, question) << std::endl;
  } catch (const RequestError& error) {
    std::cout << refused_line(error.what()) << std::endl;
  } catch (const std::exception& error) {
    std::cout << failed_line(error.what()) << std::endl;
  }
  return 0;
}

}  // namespace stepgate
