// SPDX-License-Identifier: MIT
// `stepgate worker`: one side of a gate. Standard output is used by the protocol.
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/process/child.h"
#include "compare/worker/kernel_workload.h"
#include "compare/worker/serve_worker.h"
#include "judge/judge.h"
#include "line/fit_to_device.h"
#include "line/planned.h"
#include "line/ranks/rank_team.h"
#include "line/trace/calibrate_planned.h"
#include "verbs/compare/program_worker.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// Returns the calibrated value given for the scenario; nullopt when there is none.
std::optional<std::string> given_value(const Arguments& arguments, const Scenario& scenario) {
  for (const std::string& given : arguments.worker.calibrated) {
    if (given.starts_with(scenario.name + "=")) return given.substr(scenario.name.size() + 1);
  }
  return std::nullopt;
}

// Sets the calibrated value of a scenario: the given one or, where steps are counted, the one that
// is found here. Returns why there is none, in words; empty on success.
std::string calibrate(Planned& planned, Device& device, const Arguments& arguments,
                      std::uint64_t seed, WorkerSubject& subject) {
  auto value = given_value(arguments, planned.scenario);
  if (!value) {
    if (!arguments.worker.counts) {
      return "'" + planned.scenario.calibrate->knob +
             "' is to be calibrated, which `gate` and `run` do";
    }
    if (dynamic_cast<RankedDevice*>(&device) != nullptr)
      return "cannot be calibrated: " + std::string(ranks_do_not_calibrate);
    if (const std::string reason = device.reason_against_tracing(); !reason.empty())
      return "cannot be calibrated: " + reason;
    const Calibrated found = calibrate_planned(device, arguments, planned, seed);
    if (!found.failure.empty()) return "cannot be calibrated: " + found.failure;
    value = found.value;
  }
  subject.calibrated.push_back(planned.scenario.name + "=" + *value);
  planned.scenario = with_knob(planned, arguments, planned.scenario.calibrate->knob, *value);
  planned.plans = plans_on(device.identity(), planned.scenario, seed);
  return "";
}

// Returns why none of the scenario's workloads can be timed here; empty when all can.
std::string prepare(Planned& planned, Device& device, const Arguments& arguments,
                    std::uint64_t seed, WorkerSubject& subject) {
  if (const auto unmet = unmet_requirement(planned.scenario, device.identity())) return *unmet;
  try {
    fit_to_device({&planned, 1}, device.identity(), seed);
  } catch (const RequestError& error) {
    return error.diagnostics().front().message;
  }
  for (const StepPlan& plan : planned.plans) {
    if (auto missing = device.missing_for(plan)) return *missing;
  }
  if (!lacks_a_value(planned.scenario)) return "";
  return calibrate(planned, device, arguments, seed, subject);
}

// Both devices exist as long as the worker, since requests come in any order.
struct Devices {
  Device& own;
  Device* of_ranks = nullptr;  // null where no scenario has several ranks

  Device& of(const Planned& planned) const {
    return is_of_ranks(planned) && of_ranks != nullptr ? *of_ranks : own;
  }
};

WorkerSubject subject_of(std::vector<Planned>& all, const Devices& devices,
                         const Arguments& arguments, std::uint64_t seed) {
  WorkerSubject subject;
  subject.of_ranks = devices.of_ranks;
  subject.counts = arguments.worker.counts;
  // Both sides of a pair that share everything else share the processor too.
  if (arguments.noise) subject.cpu_draw = seed;
  for (Planned& planned : all) {
    const bool timed = !is_planned_only(planned.scenario);
    const std::string why =
        timed ? prepare(planned, devices.of(planned), arguments, seed, subject) : "";
    if (!why.empty()) {
      subject.left_out.push_back({planned.scenario.name, why});
      continue;
    }
    if (timed && subject.counts && devices.of(planned).reason_against_tracing().empty())
      std::ranges::move(kernel_workloads_of(planned.scenario), std::back_inserter(subject.kernels));
    std::ranges::move(planned.plans, std::back_inserter(timed ? subject.timed : subject.planned));
  }
  if (!arguments.injected.empty())
    subject.carried_out = with_injections(subject.timed, arguments.injected);
  return subject;
}

}  // namespace

int work_for_gate(const Arguments& given) {
  if (!given.worker.program.empty()) return work_of_program(given);
  std::ostream& answers = answer_stream();
  Arguments arguments = given;
  // The gate waits as long as it says here. Ranks get less, so that this worker can say which of
  // them was silent before the gate gives up.
  arguments.stall_seconds = 0.8 * stall_seconds_of(given);
  const std::uint64_t seed = seed_of(arguments);
  std::vector<Planned> all = plan_all(arguments, seed);
  DeviceChoice choice = arguments.device;
  choice.seed = arguments.noise.value_or(seed);
  choice.tracing = arguments.worker.counts;
  choice.opens_libraries = true;
  const OpenedDevice opened = open_device(choice);
  const std::unique_ptr<RankTeam> team = own_ranks_for(arguments, all);
  std::unique_ptr<RankedDevice> ranks;
  if (team) ranks = team->assemble(seed, choice.tracing ? RanksFor::tracing : RanksFor::timing);
  WorkerSubject subject = subject_of(all, {*opened.device, ranks.get()}, arguments, seed);
  subject.stand_in = opened.stand_in;
  if (!opened.note.empty()) std::cerr << opened.note << '\n';
  serve_worker(std::cin, answers, *opened.device, subject, STEPGATE_VERSION);
  return 0;
}

}  // namespace stepgate
