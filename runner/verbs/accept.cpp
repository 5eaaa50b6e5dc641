// SPDX-License-Identifier: MIT
// `stepgate accept` measures a run, checks the gate against itself, and stores the run. Every run
// is a separate process, since random conditions at process start affect all its results. The
// self-check comes after the run, so that a stored run starts as `run` does. It is made once per
// file, since it shows whether the machine reports differences where there are none.
#include <fmt/format.h>

#include <iostream>

#include "base/files/write_file.h"
#include "base/interruption.h"
#include "base/process/run_program.h"
#include "base/random.h"
#include "base/text/diagnostic.h"
#include "device/baselines.h"
#include "judge/stored/stored_assertion.h"
#include "ledger/baseline/acceptance.h"
#include "ledger/baseline/baseline_file.h"
#include "line/decide.h"
#include "line/fit_to_device.h"
#include "line/job.h"
#include "line/provenance.h"
#include "line/ranks/rank_team.h"
#include "line/trace/trace_all.h"
#include "line/wrong_libraries.h"
#include "measure/planned_subject.h"
#include "plan/count/facts_of.h"
#include "plan/derive/anchors.h"
#include "report/text/print_list.h"
#include "scenario/read/read_scenario.h"
#include "verbs/terminal_progress.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

constexpr int not_accepted_code = 1;

int refuse(const Planned& planned, const std::string& reason) {
  print_not_accepted(std::cout, planned.scenario.name, reason);
  return not_accepted_code;
}

void refuse_package(const Baselines& baselines) {
  if (!baselines.users_is_package()) return;
  throw RequestError(fmt::format("{} is installed with stepgate, and the next installation would "
                                 "take stored runs away",
                                 baselines.users.string()),
                     "name a folder of your own: --baselines DIR, or STEPGATE_BASELINES");
}

// Adds the stored runs and the anchors of every variant.
void prepare(Planned& planned, const std::filesystem::path& path, const Arguments& arguments) {
  check_writable(path);
  planned.baseline = read_baseline_if_any(path, planned.scenario.name);
  planned.plans = with_anchors(std::move(planned.plans));
  planned.fewest_rounds = rounds_of_stored_run;
  planned.stretches = !arguments.budget_seconds;  // an explicit budget is not exceeded
}

std::optional<std::string> reason_against(const Planned& planned, const Decided& decided,
                                          const Arguments& arguments, bool gate_checked,
                                          Device& device, std::uint64_t seed) {
  const std::string& baseline_reset = arguments.baseline_reset;
  if (const auto reason = reason_against_storing(decided.verdict, !baseline_reset.empty()))
    return reason;
  if (planned.baseline && baseline_reset.empty()) {
    const auto reason = reason_for_baseline_reset(planned.scenario, subjects_of(planned.plans),
                                                  decided.measurement, *planned.baseline);
    if (reason) return *reason + "; if that is meant, --reset TEXT stores it and says why";
  }
  if (gate_checked) return std::nullopt;
  for (const Variant& variant : planned.scenario.variants) {
    SelfCheck check = self_check(planned.scenario, variant, planned.plans);
    const Planned itself{.scenario = std::move(check.scenario),
                         .plans = with_facts(std::move(check.plans)),
                         .stretches = planned.stretches};
    const auto reason =
        reason_against_gate(decide_one(itself, device, seed, {}, terminal_progress()).verdict);
    if (reason || interrupted) return reason;
  }
  return std::nullopt;
}

int accept_here(const Arguments& arguments, bool gate_checked) {
  const std::uint64_t seed = seed_of(arguments);
  std::vector<Planned> one = plan_all(arguments, seed);
  Planned& planned = one.front();
  refuse_planned_only(one);
  refuse_stand_in(arguments.device);
  const std::unique_ptr<RankTeam> team = own_ranks_for(arguments, one);
  const PartOfRun part = parts_of_run(one, team.get(), arguments).front();
  planned.traced =
      trace_part(part, arguments, settings_for(one), seed, Timelines::judged, terminal_progress())
          .front();
  apply_calibrations(one, arguments, seed);
  const OpenedDevice opened = open_device_of(part, arguments, seed);
  const DeviceIdentity identity = opened.device->identity();
  const auto path =
      baseline_path(arguments.device.baselines.users, identity, planned.scenario.name);
  prepare(planned, path, arguments);
  const Decided decided = decide_one(planned, *opened.device, seed, {}, terminal_progress());
  const auto reason =
      reason_against(planned, decided, arguments, gate_checked, *opened.device, seed);
  throw_if_interrupted();
  if (reason) return refuse(planned, *reason);
  const StoredRun run = stored_run(
      planned.scenario, subjects_of(planned.plans), decided.measurement,
      provenance_of(arguments, planned.scenario, seed, identity.kind), arguments.baseline_reset);
  print_accepted(std::cout, append_run(path, planned.scenario.name, run), identity);
  return 0;
}

// An interrupt leaves the same state at any place.
int accept_or_be_interrupted(const Arguments& arguments, const std::filesystem::path& only_file,
                             bool gate_checked) {
  try {
    return accept_here(arguments, gate_checked);
  } catch (const Interrupted&) {
    std::cerr << "interrupted: this run of " << only_file.stem().string() << " was not stored\n";
    return interrupted_exit_code(interrupted);
  }
}

// The job for one run of one scenario; `first` marks the first run.
Job one_run(const Arguments& arguments, const Scenario& scenario, std::uint64_t seed, bool first,
            bool gate_checked) {
  Job job = job_of(arguments, arguments.device.spec, seed,
                   AcceptTask{.commit = arguments.commit,
                              // Later runs belong to the period that the first one began.
                              .baseline_reset = first ? arguments.baseline_reset : "",
                              .gate_checked = gate_checked,
                              .ranks = arguments.ranks.count,
                              .stall_seconds = arguments.stall_seconds,
                              .budget_seconds = arguments.budget_seconds});
  job.files = {scenario.file};
  job.overrides = overrides_of(scenario, arguments.overrides);
  return job;
}

}  // namespace

int accept_one_run(Arguments arguments, const AcceptTask& task) {
  stop_when_interrupted();
  arguments.commit = task.commit;
  arguments.baseline_reset = task.baseline_reset;
  arguments.ranks.count = task.ranks;
  arguments.stall_seconds = task.stall_seconds;
  arguments.budget_seconds = task.budget_seconds;
  return accept_or_be_interrupted(arguments, scenario_files(arguments).front(), task.gate_checked);
}

int accept_runs(const Arguments& arguments) {
  refuse_launcher("`accept` stores a run of one");
  refuse_package(arguments.device.baselines);
  stop_when_interrupted();
  // Errors in the last file are found before the first scenario is measured.
  const std::vector<Planned> all = plan_all(arguments, 0);
  if (resolved_spec(arguments.device).starts_with("cuda")) refuse_wrong_libraries(all);
  if (all.size() == 1 && arguments.runs == 1)
    return accept_or_be_interrupted(arguments, all.front().scenario.file, false);
  std::vector<const Scenario*> scenarios;
  for (const Planned& planned : all) {
    if (is_planned_only(planned.scenario)) {
      std::cout << planned.scenario.name << ": decided by its plans, nothing to store\n";
    } else {
      scenarios.push_back(&planned.scenario);
    }
  }
  if (scenarios.empty()) refuse_planned_only(all);
  refuse_stand_in(arguments.device);
  const std::uint64_t seed = seed_of(arguments);  // from which the seeds of all runs are drawn
  int failed_code = 0;
  AcceptedRuns runs{.asked = std::ssize(scenarios) * arguments.runs};
  for (const Scenario* scenario : scenarios) {
    bool gate_checked = false;
    for (std::int64_t run = 0; run < arguments.runs; ++run) {
      std::cout << std::flush;
      const Job job =
          one_run(arguments, *scenario, random_bits(seed, static_cast<std::uint64_t>(run)),
                  run == 0, gate_checked);
      const int code = run_this_program({"serve"}, own_program_link, to_line(job) + '\n');
      if (code == 0) ++runs.stored;
      gate_checked = gate_checked || code == 0;
      if (code == not_accepted_code) ++runs.refused;
      if (interrupted) {
        print_accepted_runs(std::cout, runs);
        std::cerr << fmt::format("interrupted: {} of {} {} stored\n", runs.stored,
                                 counted_in_words(runs.asked, "run"),
                                 runs.stored == 1 ? "was" : "were");
        return interrupted_exit_code(interrupted);
      }
      if (code != 0 && code != not_accepted_code) {
        ++runs.failed;
        failed_code = code;
        std::cerr << scenario->file << ": nothing more of it is run\n";
        break;
      }
    }
  }
  print_accepted_runs(std::cout, runs);
  return runs.refused > 0 ? not_accepted_code : failed_code;
}

}  // namespace stepgate
