// SPDX-License-Identifier: MIT
// `stepgate certify`: the gate on variants whose difference is known. Every gate is a process of
// its own, as every later run of a user is: what one process is dealt when it starts, such as
// addresses, is the same in all of it and moves a ratio by 0.05 to 0.5 % on an H200. This process
// has no device, so that each of those has it alone.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "history/certificate/certificate_file.h"
#include "history/certificate/gate_process.h"
#include "report/text/print_certificate.h"
#include "report/text/progress_line.h"
#include "support/interruption.h"
#include "support/random.h"
#include "verbs/outputs.h"
#include "verbs/own_command.h"
#include "verbs/planned.h"
#include "verbs/ranks/rank_team.h"
#include "verbs/trial_gate.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// Longer than any device needs for start, warm-up, one gate and end; a simulated one computes for
// as long as its steps are large.
constexpr std::chrono::seconds longest_gate{300};

ChildRequest request_for(Command command, std::string name) {
  return {
      .command = std::move(command), .name = std::move(name), .stall = longest_gate, .stopped = [] {
        return interrupted != 0;
      }};
}

GateIntroduction introduce(const Arguments& arguments, std::uint64_t seed) {
  return introduce_gates(request_for(
      own_command(arguments, "trial-gate", arguments.device.spec, seed, arguments.files),
      "a gate"));
}

// The gates of one step.
class Gates {
 public:
  Gates(const Planned& planned, const StepPlan& plan, const DeviceIdentity& device,
        const Arguments& arguments, std::uint64_t seed)
      : plan_(plan),
        // The best device there is was chosen by the first process: no later one is to choose anew.
        device_(arguments.device.spec.empty() ? std::string(name_of(device.kind))
                                              : arguments.device.spec),
        arguments_(arguments),
        files_{planned.scenario.file},
        seed_(seed_of(planned.scenario, seed)) {}

  std::vector<GateResult> run(const Trial& trial, const InjectionSite& site, std::int64_t gates) {
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    std::vector<GateResult> results;
    while (std::ssize(results) < gates) {
      const std::string name =
          fmt::format("gate {} of {} of '{}'", results.size() + 1, gates, trial.name);
      line.show(name);
      results.push_back(run_gate_process(request_for(command(trial, site), name)));
    }
    return results;
  }

 private:
  // With a seed of its own, so that a simulated process is dealt its effects anew.
  Command command(const Trial& trial, const InjectionSite& site) {
    Arguments gate = arguments_;
    gate.variant = plan_.variant;
    gate.trial_gate = {.trial = trial.name,
                       .site = std::string(name_of(site.kind)),
                       .step_nanoseconds = site.step_time.count()};
    std::vector<std::string> options = options_of_trial_gate(gate);
    const RankArguments& ranks = arguments_.ranks;
    options.insert(options.end(), {"--stall-seconds", fmt::format("{}", ranks.stall_seconds)});
    if (ranks.count) options.insert(options.end(), {"--ranks", std::to_string(*ranks.count)});
    if (!ranks.fault.empty()) options.insert(options.end(), {"--rank-fault", ranks.fault});
    return own_command(arguments_, "trial-gate", device_, random_bits(seed_, started_++), files_,
                       options);
  }

  const StepPlan& plan_;
  std::string device_;
  const Arguments& arguments_;
  std::vector<std::filesystem::path> files_;
  std::uint64_t seed_;
  std::uint64_t started_ = 0;
};

Certificate certify(const Planned& planned, const StepPlan& plan, const DeviceIdentity& device,
                    const Arguments& arguments, std::uint64_t seed) {
  const JudgeSettings settings;
  Certificate certificate{.environment = environment_of(device),
                          .scenario = planned.scenario.name,
                          .fingerprint = planned.scenario.fingerprint,
                          .variant = plan.variant,
                          .overrides = arguments.overrides,
                          .bottleneck = {},
                          .date = date_of(arguments),
                          .version = STEPGATE_VERSION,
                          .seed = seed,
                          .margin = margin_of(arguments.margin),
                          .alpha = settings.alpha,
                          .beta = settings.beta};
  Gates gates(planned, plan, device, arguments, seed);
  InjectionSite site;
  for (const Trial& trial : certification_trials()) {
    const bool identical = trial.name == identical_trial;
    const std::vector<GateResult> results =
        gates.run(trial, site, identical ? arguments.gates : arguments.trial_gates);
    if (identical) {
      site = injection_site_of(results);
      certificate.bottleneck = name_of(site.kind);
      certificate.round_seconds = round_seconds_mean(results);
    }
    certificate.trials.push_back(result_of(trial, results));
    print_trial(std::cout, certificate.trials.back());
  }
  return certificate;
}

std::filesystem::path path_for(const Arguments& arguments, const DeviceIdentity& device,
                               const StepPlan& plan) {
  if (!arguments.out.empty()) return arguments.out;
  return certificate_path(arguments.device.baselines, device, plan.scenario, plan.variant);
}

// Before anything is measured.
void check_files(const std::vector<Planned>& all, const DeviceIdentity& device,
                 const Arguments& arguments) {
  if (!arguments.out.empty() && all.size() > 1) {
    throw RequestError("--out names one file, and there is more than one scenario",
                       "leave it out, or certify one scenario after the other");
  }
  for (const Planned& planned : all) {
    const StepPlan& plan = plan_named(planned, arguments.variant);
    check_certificate_file(path_for(arguments, device, plan), plan.scenario, plan.variant);
  }
}

void check_request(const std::vector<Planned>& all, const Arguments& arguments) {
  refuse_calibration(all);
  refuse_planned_only(all);
  (void)margin_of(arguments.margin);
  for (const Planned& planned : all) {
    const int needed = ranks_needed(planned.scenario);
    if (!arguments.ranks.count || *arguments.ranks.count >= needed) continue;
    throw RequestError(fmt::format("'{}' has steps of {} ranks, and --ranks is {}",
                                   planned.scenario.name, needed, *arguments.ranks.count),
                       fmt::format("say --ranks {}", needed));
  }
  if (arguments.gates >= fewest_processes) return;
  throw RequestError(
      fmt::format("--gates {}: what differs between processes takes at least {} of them to see",
                  arguments.gates, fewest_processes),
      fmt::format("say --gates {} or more", fewest_processes));
}

int certify_all(const Arguments& arguments, const std::vector<Planned>& all, std::uint64_t seed) {
  const GateIntroduction introduction = introduce(arguments, seed);
  const DeviceIdentity& device = introduction.device;
  if (device.kind == DeviceKind::reference) {
    throw RequestError("nothing can be certified on a device without time",
                       "say --device cuda or simulated");
  }
  check_files(all, device, arguments);
  bool granted = true;
  for (const Planned& planned : all) {
    const StepPlan& plan = plan_named(planned, arguments.variant);
    print_certifying(std::cout, plan, device);
    const Certificate certificate = certify(planned, plan, device, arguments, seed);
    print_certificate(std::cout, certificate);
    const auto path = path_for(arguments, device, plan);
    write_certificate(path, certificate);
    print_certified(std::cout, path.generic_string());
    granted = granted && is_granted(certificate);
  }
  return granted ? 0 : 1;
}

// Adds to an error what its end before the end loses, and what to do.
std::string with_way_out(const std::string& what) {
  return what + "\nnothing was written for this scenario; certify it again";
}

int say_not_certified() {
  std::cerr << "interrupted: nothing was written for this scenario\n";
  return interrupted_exit_code(interrupted);
}

}  // namespace

int certify_gate(const Arguments& arguments) {
  refuse_launcher("`certify` starts the ranks of each gate itself");
  stop_when_interrupted();
  check_outputs(arguments);
  const std::uint64_t seed = seed_of(arguments);
  const std::vector<Planned> all = plan_all(arguments, seed);
  check_request(all, arguments);
  refuse_stand_in(arguments.device);
  try {
    return certify_all(arguments, all, seed);
  } catch (const WaitStopped&) {
    return say_not_certified();
  } catch (const Interrupted&) {  // while it waited for a lock
    return say_not_certified();
  } catch (const WorkerError& error) {
    throw WorkerError(with_way_out(error.what()));
  } catch (const DeviceError& error) {
    throw DeviceError(with_way_out(error.what()));
  }
}

}  // namespace stepgate
