// SPDX-License-Identifier: MIT
#include "verbs/command_line.h"

#include <cmath>

#include "support/diagnostic.h"
#include "support/nearest.h"

namespace stepgate {
namespace {

UndecidedPolicy undecided_policy(const std::string& name) {
  const auto policies = undecided_policies();
  const auto found = policies.find(name);
  if (found != policies.end()) return found->second;
  throw RequestError("there is no --undecided '" + name + "'", "say skip, fail or pass");
}

// "a, b" of everything that --export takes, with what each is.
std::string export_help() {
  std::string text = "FORMAT:FILE, also write the samples for other tools; may be repeated.";
  for (const ExportFormat& format : export_formats()) {
    text += "\n" + std::string(format.name) + ": " + std::string(format.what);
  }
  return text;
}

ExportRequest export_request(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  std::vector<std::string_view> names;
  for (const ExportFormat& format : export_formats()) {
    names.push_back(format.name);
    if (format.name != name) continue;
    if (colon != std::string::npos && colon + 1 < text.size()) {
      return {.write = format.write, .file = text.substr(colon + 1)};
    }
    throw RequestError("--export " + name + " does not say where to", "say " + name + ":FILE");
  }
  throw RequestError("there is no --export '" + name + "'",
                     did_you_mean(name, names, "`stepgate run --help` lists the formats"));
}

// Why the text is no budget; empty when it is one.
std::string above_zero(const std::string& text) {
  double seconds = 0;
  return CLI::detail::lexical_cast(text, seconds) && seconds > 0 && std::isfinite(seconds)
             ? ""
             : "must be a number of seconds above 0, not '" + text + "'";
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
  const auto measures = [&](CLI::App* added) {
    added->add_option("--device", arguments.device.spec, "cuda, simulated[:profile] or reference");
    added->add_option("--budget", arguments.budget_seconds, "seconds a scenario may take")
        ->check(above_zero);
    added->add_option("--seed", arguments.seed,
                      "of contents, orders and simulated noise; random when left out");
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
  run_verb->add_option("--json", arguments.json,
                       "write verdicts and measurements to this file, one JSON object a line");
  measures(run_verb);
  run_verb
      ->add_option_function<std::vector<std::string>>(
          "--export",
          [&arguments](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) arguments.exports.push_back(export_request(text));
          },
          export_help())
      ->allow_extra_args(false);
  run_verb->add_option_function<std::string>(
      "--undecided",
      [&arguments](const std::string& name) { arguments.undecided = undecided_policy(name); },
      "what an undecided scenario is: skip, fail or pass");
  CLI::App* certify_verb = takes_overrides(takes_files(
      verb("certify", "the gate's error rates and power on this device", certify_gate)));
  certify_verb->add_option("--device", arguments.device.spec, "cuda or simulated[:profile]");
  certify_verb->add_option("--variant", arguments.variant,
                           "whose step; the last one's if left out");
  certify_verb->add_option("--gates", arguments.gates, "between identical variants")
      ->check(CLI::Range(1, 1'000'000));
  certify_verb->add_option("--trial-gates", arguments.trial_gates, "of every injected difference")
      ->check(CLI::Range(1, 1'000'000));
  certify_verb->add_option("--date", arguments.date, "the date to write into the certificate");
  certify_verb->add_option("--seed", arguments.seed, "random when left out");
  CLI::App* accept_verb = takes_overrides(
      takes_files(verb("accept", "measure runs and store them as a baseline", accept_runs)));
  measures(accept_verb);
  accept_verb->add_option("--runs", arguments.runs, "how many runs of each, one process each")
      ->check(CLI::Range(1, 1000));
  accept_verb->add_option("--commit", arguments.commit,
                          "what the runs are of; git's answer when left out");
  app.add_option("--baselines", arguments.device.baselines,
                 "folder with device profiles and baselines");
}

}  // namespace stepgate
