// SPDX-License-Identifier: MIT
// The verbs. Each walks the line of stations: scenario, plan, device, measure, judge, report.
// Nothing is computed or formatted here.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <random>
#include <sstream>

#include "device/open_device.h"
#include "judge/judge.h"
#include "measure/measure.h"
#include "plan/build_step_plan.h"
#include "plan/counted_metrics.h"
#include "report/exit_code.h"
#include "report/print_list.h"
#include "report/print_plan.h"
#include "report/print_verdict.h"
#include "report/progress_line.h"
#include "report/write_json.h"
#include "scenario/field_documents.h"
#include "scenario/read_scenario.h"
#include "support/write_file.h"

namespace stepgate {
namespace {

struct Arguments {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> overrides;
  std::string variant;
  std::string filter;
  std::filesystem::path json;
  std::filesystem::path profile;
  std::string date;
  DeviceChoice device{.spec = {}, .baselines = STEPGATE_BASELINES, .seed = 0};
  std::optional<double> budget_seconds;
  std::optional<std::uint64_t> seed;
  UndecidedPolicy undecided = UndecidedPolicy::skip;
};

// Everything of one scenario that is known before a device is asked.
struct Planned {
  Scenario scenario;
  std::vector<StepPlan> plans;
};

volatile std::sig_atomic_t interrupted = 0;

// The first signal ends the run after its round; the second one ends the process as if nobody had
// asked.
void stop_when_interrupted() {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, [](int received) {
      interrupted = received;
      std::signal(received, SIG_DFL);
    });
  }
}

std::uint64_t seed_of(const Arguments& arguments) {
  if (arguments.seed) return *arguments.seed;
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// The scenario files among the given ones; a folder stands for those in it.
std::vector<std::filesystem::path> scenario_files(const Arguments& arguments) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& given : arguments.files) {
    if (!std::filesystem::is_directory(given)) {
      files.push_back(given);
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(files.size());
    for (const auto& entry : std::filesystem::directory_iterator(given)) {
      if (entry.path().extension() == ".toml") files.push_back(entry.path());
    }
    std::sort(files.begin() + first, files.end());
  }
  if (files.empty())
    throw RequestError("no scenario files", "name a file or a folder with *.toml files");
  return files;
}

// Reads and plans every file before anything runs, so that a typo in the last one does not cost the
// others' time.
std::vector<Planned> plan_all(const Arguments& arguments, std::uint64_t seed) {
  std::vector<Planned> planned;
  std::vector<Diagnostic> wrong;
  for (const std::filesystem::path& file : scenario_files(arguments)) {
    try {
      Scenario scenario = read_scenario(file, arguments.overrides);
      if (arguments.budget_seconds) scenario.measure.max_seconds = *arguments.budget_seconds;
      std::vector<StepPlan> plans = build_step_plans(scenario, seed);
      planned.push_back({std::move(scenario), std::move(plans)});
    } catch (const RequestError& error) {
      wrong.insert(wrong.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
  return planned;
}

struct Decided {
  Verdict verdict;
  Measurement measurement;
};

Decided run_one(const Planned& planned, Device& device, std::uint64_t seed) {
  const JudgeSettings settings{.counted = counted};
  if (const auto unmet = unmet_requirement(planned.scenario, device.identity())) {
    return {skipped_verdict(planned.scenario, device.identity(), *unmet, settings), {}};
  }
  ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
  const Enough enough = enough_evidence(planned.scenario, planned.plans, settings);
  MeasureRequest request;
  request.knobs = planned.scenario.measure;
  request.scenario_fingerprint = planned.scenario.fingerprint;
  request.seed = seed;
  request.clock = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
  request.enough = [&](const Measurement& so_far) { return interrupted != 0 || enough(so_far); };
  request.progress = [&](const Progress& now) {
    line.show(planned.scenario.name, now.rounds, now.spent);
  };
  Measurement measurement = measure(device, planned.plans, request);
  return {judge(planned.scenario, planned.plans, measurement, settings), std::move(measurement)};
}

UndecidedPolicy undecided_policy(const std::string& name) {
  const auto policies = undecided_policies();
  const auto found = policies.find(name);
  if (found != policies.end()) return found->second;
  throw RequestError("there is no --undecided '" + name + "'", "say skip, fail or pass");
}

// What a run has decided so far, and its JSON.
struct Decisions {
  std::vector<Verdict> verdicts;
  std::ostringstream json;
};

// Decides one scenario and prints it; false when a signal came in between.
bool decide(const Planned& planned, Device& device, std::uint64_t seed, Style style,
            Decisions& decisions) {
  const Decided decided = run_one(planned, device, seed);
  if (interrupted) {
    std::cerr << "interrupted: '" << planned.scenario.name
              << "' is not decided, nothing was written\n";
    return false;
  }
  print_verdict(std::cout, decided.verdict, style);
  std::cout << std::flush;  // a log that is read while it grows shows every decided scenario
  write_json(decisions.json, decided.verdict, decided.measurement);
  decisions.verdicts.push_back(decided.verdict);
  return true;
}

int run(const Arguments& arguments) {
  const std::uint64_t seed = seed_of(arguments);
  const std::vector<Planned> all = plan_all(arguments, seed);
  if (!arguments.json.empty()) check_writable(arguments.json);
  DeviceChoice choice = arguments.device;
  choice.seed = seed;
  const OpenedDevice opened = open_device(choice);
  if (!opened.note.empty()) std::cout << opened.note << "\n\n";
  const Style style = isatty(STDOUT_FILENO) ? Style::terminal : Style::plain;
  Decisions decisions;
  for (const Planned& planned : all) {
    if (!decide(planned, *opened.device, seed, style, decisions))
      return interrupted_exit_code(interrupted);
  }
  if (decisions.verdicts.size() > 1) print_suite_summary(std::cout, decisions.verdicts, style);
  if (!arguments.json.empty()) write_file(arguments.json, decisions.json.str());
  return exit_code(decisions.verdicts, arguments.undecided);
}

int check_files(const Arguments& arguments) {
  const std::vector<Planned> all = plan_all(arguments, 1);
  for (const Planned& planned : all) print_checked(std::cout, planned.scenario);
  return 0;
}

int list(const Arguments& arguments) {
  for (const std::filesystem::path& file : scenario_files(arguments))
    print_listed(std::cout, read_scenario(file));
  return 0;
}

int print_plans(const Arguments& arguments) {
  bool found = false;
  for (const Planned& planned : plan_all(arguments, 1)) {
    for (const StepPlan& plan : planned.plans) {
      if (!arguments.variant.empty() && plan.variant != arguments.variant) continue;
      if (found) std::cout << '\n';
      print_plan(std::cout, plan);
      found = true;
    }
  }
  if (found) return 0;
  throw RequestError("no variant is named '" + arguments.variant + "'",
                     "`stepgate list` shows them");
}

int fields(const Arguments& arguments) {
  std::cout << fields_text(arguments.filter);
  return 0;
}

int devices(const Arguments& arguments) {
  if (arguments.profile.empty()) {
    print_devices(std::cout, list_devices(arguments.device.baselines));
    return 0;
  }
  check_writable(arguments.profile);
  DeviceProfile profile = measure_local_profile();
  profile.measured = arguments.date;
  write_file(arguments.profile, to_toml(profile));
  return 0;
}

using Verb = int (*)(const Arguments&);

// Adds the verbs and their options to the parser; the chosen one is left in `chosen`.
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
  takes_files(verb("list", "the scenarios, their claims and variants", list));
  takes_overrides(
      takes_files(verb("check", "read and plan, report every fault, run nothing", check_files)));
  CLI::App* plan =
      takes_overrides(takes_files(verb("plan", "the step that a scenario describes", print_plans)));
  plan->add_option("--variant", arguments.variant, "only this one");
  verb("fields", "every knob that a scenario may set", fields)
      ->add_option("filter", arguments.filter, "part of a name");
  CLI::App* devices_verb = verb("devices", "the devices that `run --device` may name", devices);
  devices_verb->add_option("--measure", arguments.profile,
                           "measure the local GPU's profile into this file");
  devices_verb->add_option("--date", arguments.date, "the date to write into the profile");
  CLI::App* run_verb =
      takes_overrides(takes_files(verb("run", "measure and decide every sentence", run)));
  run_verb->add_option("--device", arguments.device.spec, "cuda, simulated[:profile] or reference");
  run_verb->add_option("--json", arguments.json,
                       "write verdicts and measurements to this file, one JSON object a line");
  run_verb->add_option("--budget", arguments.budget_seconds, "seconds a scenario may take")
      ->check([](const std::string& text) {
        double seconds = 0;
        return CLI::detail::lexical_cast(text, seconds) && seconds > 0 && std::isfinite(seconds)
                   ? ""
                   : "must be a number of seconds above 0, not '" + text + "'";
      });
  run_verb->add_option("--seed", arguments.seed,
                       "of contents, orders and simulated noise; random when left out");
  run_verb->add_option_function<std::string>(
      "--undecided",
      [&arguments](const std::string& name) { arguments.undecided = undecided_policy(name); },
      "what an undecided scenario is: skip, fail or pass");
  app.add_option("--baselines", arguments.device.baselines,
                 "folder with device profiles and baselines");
}

}  // namespace
}  // namespace stepgate

int main(int argc, char** argv) {
  using namespace stepgate;
  CLI::App app("stepgate: did this change make the training step slower, and by what mechanism?",
               "stepgate");
  Arguments arguments;
  Verb chosen = nullptr;
  declare_verbs(app, arguments, chosen);
  try {
    app.parse(argc, argv);
    if (chosen == nullptr) throw RequestError("no verb", "`stepgate --help` lists them");
    if (arguments.files.empty()) arguments.files = {"scenarios"};
    stop_when_interrupted();
    return chosen(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : request_exit_code;
  } catch (const RequestError& error) {
    std::cerr << error.what() << '\n';
    return request_exit_code;
  } catch (const std::bad_alloc&) {
    std::cerr
        << "the device failed: there is not enough host memory for this step; make it smaller\n";
    return device_exit_code;
  } catch (const std::exception& error) {
    std::cerr << "the device failed: " << error.what() << '\n';
    return device_exit_code;
  }
}
