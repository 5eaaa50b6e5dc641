// SPDX-License-Identifier: MIT
#include "verbs/command_line.h"

#include <cmath>

#include "support/diagnostic.h"

namespace stepgate {
namespace {

UndecidedPolicy undecided_policy(const std::string& name) {
  const auto policies = undecided_policies();
  const auto found = policies.find(name);
  if (found != policies.end()) return found->second;
  throw RequestError("there is no --undecided '" + name + "'", "say skip, fail or pass");
}

std::string is_seconds(const std::string& text) {
  double seconds = 0;
  return CLI::detail::lexical_cast(text, seconds) && seconds > 0 && std::isfinite(seconds)
             ? ""
             : "must be a number of seconds above 0, not '" + text + "'";
}

void declare_duel(CLI::App& duel_verb, Arguments& arguments) {
  DuelArguments& duel = arguments.duel;
  duel_verb.add_option("base", duel.base, "the stepgate of before")->required();
  duel_verb.add_option("head", duel.head, "the stepgate that must not be slower")->required();
  duel_verb.add_flag("--command", duel.commands,
                     "base and head are whole command lines of workers (ci/WORKER.md)");
  duel_verb.add_option("--margin", duel.margin, "how much slower head may be, in percent");
  duel_verb.add_option("--pairs", duel.pairs, "pairs of launches at most");
  duel_verb.add_option("--work", duel.works, "only works that this pattern matches; repeatable")
      ->allow_extra_args(false);
  duel_verb.add_option("--stall-seconds", duel.stall_seconds, "a worker must answer within")
      ->check(is_seconds);
}

}  // namespace

void declare_verbs(CLI::App& app, Arguments& arguments, Verb& chosen) {
  app.require_subcommand(0, 1);  // none is refused by main, in better words
  app.set_version_flag("--version", "stepgate " STEPGATE_VERSION);
  const auto verb = [&](const char* name, const char* what, Verb function) {
    CLI::App* added = app.add_subcommand(name, what);
    added->callback([&chosen, function] { chosen = function; });
    return added;
  };
  const auto takes_files = [&](CLI::App* added) {
    added->add_option("files", arguments.files, "scenario files, or folders of them")
        ->default_str("scenarios");
    return added;
  };
  const auto takes_overrides = [&](CLI::App* added) {
    added->add_option("--set", arguments.overrides, "knob=value, for every variant")
        ->allow_extra_args(false);
    return added;
  };
  takes_files(verb("list", "the scenarios, their claims and variants", list_scenarios));
  takes_overrides(takes_files(
      verb("check", "read and plan, report every fault, run nothing", check_scenarios)));
  CLI::App* plan =
      takes_overrides(takes_files(verb("plan", "the step that a scenario describes", print_plans)));
  plan->add_option("--variant", arguments.variant, "only this one");
  verb("fields", "every knob that a scenario may set", print_fields)
      ->add_option("filter", arguments.filter, "part of a name");
  CLI::App* devices_verb =
      verb("devices", "the devices that `run --device` may name", show_devices);
  devices_verb->add_option("--measure", arguments.profile,
                           "measure the local GPU's profile into this file");
  devices_verb->add_option("--date", arguments.date, "the date to write into the profile");
  CLI::App* run_verb =
      takes_overrides(takes_files(verb("run", "measure and decide every sentence", run_scenarios)));
  const auto takes_device = [&](CLI::App* added) {
    added->add_option("--device", arguments.device.spec, "cuda, simulated[:profile] or reference");
    added->add_option("--seed", arguments.seed,
                      "of contents, orders and simulated noise; random when left out");
  };
  const auto takes_verdict_options = [&](CLI::App* added, const char* json, const char* budget) {
    added->add_option("--json", arguments.json, json);
    added->add_option("--budget", arguments.budget_seconds, budget)->check(is_seconds);
    added->add_option_function<std::string>(
        "--undecided",
        [&arguments](const std::string& name) { arguments.undecided = undecided_policy(name); },
        "what an undecided verdict is: skip, fail or pass");
  };
  takes_device(run_verb);
  takes_verdict_options(run_verb,
                        "write verdicts and measurements to this file, one JSON object a line",
                        "seconds a scenario may take");
  CLI::App* duel_verb =
      verb("duel", "is HEAD slower than BASE? two programs, launch against launch", duel_programs);
  declare_duel(*duel_verb, arguments);
  takes_device(takes_overrides(takes_files(duel_verb)));
  duel_verb->callback([&arguments, &chosen] {
    if (arguments.duel.commands &&
        !(arguments.files.empty() && arguments.overrides.empty() && arguments.device.spec.empty()))
      throw RequestError("with --command, scenarios and options belong into the command lines",
                         "write them behind each program");
    chosen = duel_programs;
  });
  takes_verdict_options(duel_verb, "write verdict and measurement to this file, as JSON",
                        "seconds the duel may take");
  takes_device(takes_overrides(
      takes_files(verb("worker", "run steps as a duel asks on standard input", work_for_duel))));
  app.add_option("--baselines", arguments.device.baselines,
                 "folder with device profiles and baselines");
}

}  // namespace stepgate
