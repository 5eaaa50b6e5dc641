// SPDX-License-Identifier: MIT
#include "line/planned.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files/read_file.h"
#include "base/fnv1a.h"
#include "base/random.h"
#include "base/text/nearest.h"
#include "base/text/number_words.h"
#include "judge/stored/stored_assertion.h"
#include "ledger/baseline/baseline_file.h"
#include "ledger/runs/ledger.h"
#include "line/provenance.h"
#include "plan/compose/build_step_plan.h"
#include "plan/compose/step_builder.h"
#include "plan/count/facts_of.h"
#include "plan/derive/anchors.h"
#include "plan/derive/inject.h"
#include "scenario/read/bases.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {

std::uint64_t seed_of(const LineArguments& arguments) {
  if (arguments.seed) return *arguments.seed;
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::uint64_t seed_of(const Scenario& scenario, std::uint64_t seed) {
  return random_bits(seed, fnv1a(scenario.name));
}

bool needs_device(std::span<const Planned> all) {
  return !std::all_of(all.begin(), all.end(), [](const Planned& planned) {
    return is_planned_only(planned.scenario) || runs_programs(planned.scenario);
  });
}

OpenedDevice open_device_for(const LineArguments& arguments, std::uint64_t seed) {
  DeviceChoice choice = arguments.device;
  choice.seed = seed;
  return open_device(choice);
}

bool names_any_stored(const Scenario& scenario) {
  return std::ranges::any_of(scenario.expect, names_stored) ||
         std::ranges::any_of(scenario.regime, names_stored);
}

namespace {

// Accepted runs win over those of a ledger, which are never mixed with them.
void look_into_ledger(Planned& planned, const DeviceIdentity& device,
                      const LineArguments& arguments) {
  const std::string& scenario = planned.scenario.name;
  const auto others =
      runs_of_others(read_ledger(baseline_path(arguments.ledger, device, scenario), scenario),
                     {.scenario = planned.scenario.fingerprint,
                      .subject = subject_under_test(arguments),
                      .build = build_in_words()});
  if (!others) return;
  const bool is_accepted = planned.baseline && !planned.baseline->runs.empty();
  if (is_accepted) {
    planned.compared_with = fmt::format(
        "`stored.` is what was accepted into {}; the runs of other builds in {} count "
        "for nothing here",
        planned.baseline->file, others->file);
    return;
  }
  constexpr std::size_t most_named = 3;
  std::vector<std::string> subjects;  // newest first
  for (auto newest = others->runs.rbegin(); newest != others->runs.rend(); ++newest) {
    const StoredRun& run = *newest;
    std::string subject = fmt::format("'{}'", run.provenance.subject);
    if (std::ranges::find(subjects, subject) == subjects.end())
      subjects.push_back(std::move(subject));
  }
  const std::string rest = subjects.size() > most_named ? ", ..." : "";
  subjects.resize(std::min(subjects.size(), most_named));
  planned.compared_with =
      fmt::format("no run is accepted for this device: `stored.` is {} of other builds in {}: {}{}",
                  counted_in_words(std::ssize(others->runs), "run"), others->file,
                  fmt::join(subjects, ", "), rest);
  planned.baseline = others;
}

}  // namespace

void add_baselines(std::span<Planned> all, const DeviceIdentity& device,
                   const LineArguments& arguments) {
  std::vector<Diagnostic> wrong;
  for (Planned& planned : all) {
    const Scenario& scenario = planned.scenario;
    if (!names_any_stored(scenario)) continue;
    try {
      planned.baseline = read_baseline_if_any(
          baseline_path(arguments.device.baselines.users, device, scenario.name), scenario.name);
      if (!arguments.ledger.empty()) look_into_ledger(planned, device, arguments);
    } catch (const RequestError& error) {
      wrong.insert(wrong.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
    // Later builds may be compared with any run of a ledger, so it needs anchors.
    if (arguments.ledger.empty() && !(planned.baseline && needs_anchors(scenario))) continue;
    planned.plans = with_anchors(std::move(planned.plans));
    planned.fewest_rounds = rounds_of_stored_run;
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
}

namespace {

// Suggests the file for a missing path: a scenario given by its name in reports, or mistyped, in
// the named folder or in scenarios/.
void refuse_missing(const std::filesystem::path& given) {
  std::error_code unknown;
  if (std::filesystem::exists(given, unknown) || unknown) return;
  const std::filesystem::path folder =
      given.has_parent_path() ? given.parent_path() : std::filesystem::path("scenarios");
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  const std::string wanted =
      given.extension() == ".toml" ? given.stem().string() : given.filename().string();
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const bool is_there = std::find(names.begin(), names.end(), wanted) != names.end();
  const auto meant =
      is_there ? std::optional<std::string_view>(wanted) : nearest(wanted, candidates);
  if (!meant) return;  // reading it reports the missing file
  throw RequestError(
      {{given.string(), 0, 0},
       "no such file",
       fmt::format("did you mean '{}'?", (folder / (std::string(*meant) + ".toml")).string())});
}

// Refuses links out of the allowed folders. A file that the user names is trusted, but a file found
// in a folder may come from a pull request, and as a link it could expose other files. So it has
// the limits of `extends`.
void refuse_link_outside(const std::filesystem::path& found, const BaseFolders& allowed) {
  std::error_code unknown;
  if (!std::filesystem::is_symlink(found, unknown)) return;
  auto reason = allowed.reason_against(found.string());
  if (!reason) return;
  reason->message = "is a link, and " + reason->message;
  reason->hint += ", or name the file itself";
  throw RequestError(std::move(*reason));
}

}  // namespace

std::vector<std::filesystem::path> scenario_files(const LineArguments& arguments) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& given : arguments.files) {
    refuse_missing(given);
    std::error_code unknown;
    if (!std::filesystem::is_directory(given, unknown)) {
      if (is_json_or_compressed(given)) {
        throw RequestError(Diagnostic{
            {given.string(), 0, 0},
            "is JSON or compressed, and no scenario",
            fmt::format("stepgate read {} reads traces of torch.profiler", given.string())});
      }
      files.push_back(given);  // reading it reports the error
      continue;
    }
    const BaseFolders allowed(given / "any.toml");
    for (std::filesystem::path& path : read_folder(given)) {
      if (path.extension() != ".toml") continue;
      refuse_link_outside(path, allowed);
      files.push_back(std::move(path));
    }
  }
  if (files.empty())
    throw RequestError("no scenario files", "name a file or a folder with *.toml files");
  return files;
}

std::vector<std::filesystem::path> files_that_match(const LineArguments& arguments) {
  const std::vector<std::filesystem::path> files = scenario_files(arguments);
  std::set<std::size_t> chosen;  // in the order of the files
  for (const std::string& pattern : arguments.patterns) {
    const bool is_part = pattern.find_first_of("*?") == std::string::npos;
    bool matches_any = false;
    for (std::size_t index = 0; index < files.size(); ++index) {
      const std::string name = files[index].stem().string();
      const bool matches = is_part ? name.find(pattern) != std::string::npos
                                   : ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
      if (matches) chosen.insert(index);
      matches_any |= matches;
    }
    if (matches_any) continue;
    std::vector<std::string> names;
    for (const std::filesystem::path& file : files) names.push_back(file.stem().string());
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    throw RequestError("no scenario's name has '" + pattern + "' in it",
                       did_you_mean(pattern, candidates, "`stepgate list` shows them"));
  }
  std::vector<std::filesystem::path> matching;
  for (const std::size_t index : chosen) matching.push_back(files[index]);
  return matching;
}

namespace {

Scenario within_budget(Scenario scenario, const LineArguments& arguments) {
  if (arguments.budget_seconds) scenario.measure.max_seconds = *arguments.budget_seconds;
  return scenario;
}

}  // namespace

std::vector<PlannedStep> with_injections(std::vector<PlannedStep> steps,
                                         const std::vector<std::string>& injected) {
  if (injected.empty()) return steps;
  std::vector<Injection> injections;
  for (const std::string& text : injected) injections.push_back(parse_injection(text));
  for (PlannedStep& step : steps) {
    StepPlan plan = step;
    for (const Injection& injection : injections) inject(plan, injection);
    step = with_facts(std::move(plan));
  }
  return steps;
}

Scenario with_knob(const Planned& planned, const LineArguments& arguments, const std::string& knob,
                   const std::string& value) {
  std::vector<std::string> overrides = overrides_of(planned.scenario, arguments.overrides);
  overrides.push_back(knob + "=" + value);
  return within_budget(read_scenario(planned.scenario.file, overrides), arguments);
}

JudgeSettings settings_for(std::span<const Planned> all) {
  std::vector<const Scenario*> scenarios;
  for (const Planned& planned : all) scenarios.push_back(&planned.scenario);
  return suite_settings(scenarios);
}

void refuse_planned_only(const std::vector<Planned>& all) {
  std::vector<Diagnostic> wrong;
  for (const Planned& planned : all) {
    if (!is_planned_only(planned.scenario)) continue;
    const Place place{planned.scenario.file, 0, 0};
    const std::string message =
        "'" + planned.scenario.name +
        "' is tagged no_gpu: its plans decide it, and there is nothing to measure";
    wrong.push_back({place, message, "leave it out; `run` decides it"});
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
}

void refuse_calibration(const std::vector<Planned>& all) {
  std::vector<Diagnostic> wrong;
  for (const Planned& planned : all) {
    if (!lacks_a_value(planned.scenario)) continue;
    const std::string& knob = planned.scenario.calibrate->knob;
    const Place place{planned.scenario.file, 0, 0};
    const std::string message = "'" + knob + "' is to be calibrated, which `run` does";
    const std::string hint = "give the value that `run` found: --set " + knob + "=<value>";
    wrong.push_back({place, message, hint});
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
}

namespace {

bool has_any(const Scenario& scenario, const std::vector<std::string>& tags) {
  return std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) {
    return std::find(scenario.tags.begin(), scenario.tags.end(), tag) != scenario.tags.end();
  });
}

// A tag that is mistyped, or that nothing has any more, must not make a run smaller in silence.
void refuse_unknown_tags(const std::set<std::string>& known, const LineArguments& arguments) {
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  for (const std::vector<std::string>* tags : {&arguments.tags, &arguments.excluded_tags}) {
    for (const std::string& tag : *tags) {
      if (known.contains(tag)) continue;
      throw RequestError(
          "no scenario here is tagged '" + tag + "'",
          known.empty()
              ? "none has a tag"
              : did_you_mean(tag, candidates, fmt::format("there are {}", fmt::join(known, ", "))));
    }
  }
}

void refuse_program(const Scenario& scenario) {
  throw RequestError({{scenario.file, 0, 0},
                      "'" + scenario.name + "' runs a program, of which there is no plan",
                      "leave it out; `run` decides it"});
}

// A sweep of a few lines could otherwise take all memory of the machine that reads it.
void refuse_so_many_operations(const Scenario& last, std::size_t points) {
  throw RequestError(
      {{last.file, 0, 0},
       fmt::format("the steps of the first {} of the {} values of 'sweep.{}' have more than {} "
                   "operations, and a file has room for no more",
                   points, last.point.value().values.size(), last.point->knob,
                   most_operations_together),
       "sweep fewer values, or give it fewer variants or smaller steps"});
}

void refuse_no_scenario() {
  throw RequestError("no scenario is left", "--exclude-tag takes all that --tag chooses");
}

}  // namespace

bool has_wanted_tags(const Scenario& scenario, const LineArguments& arguments) {
  return (arguments.tags.empty() || has_any(scenario, arguments.tags)) &&
         !has_any(scenario, arguments.excluded_tags);
}

std::vector<Scenario> scenarios_with_wanted_tags(const LineArguments& arguments) {
  std::vector<Scenario> scenarios;
  std::set<std::string> tags;
  for (const std::filesystem::path& file : scenario_files(arguments)) {
    for (Scenario& scenario : read_scenarios(file, arguments.overrides)) {
      tags.insert(scenario.tags.begin(), scenario.tags.end());
      if (has_wanted_tags(scenario, arguments)) scenarios.push_back(std::move(scenario));
    }
  }
  refuse_unknown_tags(tags, arguments);
  if (scenarios.empty()) refuse_no_scenario();
  return scenarios;
}

std::vector<Planned> plan_all(const LineArguments& arguments, std::uint64_t seed,
                              Programs programs) {
  std::vector<Planned> planned;
  std::vector<Diagnostic> wrong;
  std::set<std::string> tags;
  for (const std::filesystem::path& file : scenario_files(arguments)) {
    std::size_t operations = 0;
    std::size_t points = 0;  // of a sweep, that are planned
    try {
      for (Scenario& read : read_scenarios(file, arguments.overrides)) {
        Scenario scenario = within_budget(std::move(read), arguments);
        tags.insert(scenario.tags.begin(), scenario.tags.end());
        if (!has_wanted_tags(scenario, arguments)) continue;
        if (runs_programs(scenario)) {
          if (programs == Programs::refused) refuse_program(scenario);
          planned.push_back({std::move(scenario), {}});
          continue;
        }
        std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, seed));
        for (const PlannedStep& plan : plans) operations += plan->operations.size();
        ++points;
        if (operations > most_operations_together) refuse_so_many_operations(scenario, points);
        planned.push_back({std::move(scenario), std::move(plans)});
      }
    } catch (const RequestError& error) {
      wrong.insert(wrong.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
  refuse_unknown_tags(tags, arguments);
  if (planned.empty()) refuse_no_scenario();
  return planned;
}

}  // namespace stepgate
