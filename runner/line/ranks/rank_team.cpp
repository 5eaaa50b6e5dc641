// SPDX-License-Identifier: MIT
#include "line/ranks/rank_team.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/interruption.h"
#include "base/process/attached_tool.h"
#include "base/text/diagnostic.h"
#include "device/ranked/child_link.h"
#include "device/ranked/plan_digest.h"
#include "line/fit_to_device.h"
#include "line/trace/trace_all.h"
#include "line/trace/trace_planned.h"
#include "scenario/knobs/fields.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

constexpr std::string_view gpu = "cuda";

// The plans that must be equal at both ends of a link.
std::vector<NamedPlan> plans_of_ranks(std::span<const Planned> all) {
  std::vector<NamedPlan> plans;
  for (const Planned& planned : all) {
    if (!runs_in_processes(planned)) continue;
    const auto own = named_plans(planned.plans);
    plans.insert(plans.end(), own.begin(), own.end());
  }
  return plans;
}

OpenedDevice open_ranks(RankTeam& team, const LineArguments& arguments, std::uint64_t seed) {
  OpenedDevice opened;
  // Ranks get the device by name, since only this process knows whether it is the default device.
  if (resolved_spec(arguments.device) != gpu) opened = open_device_for(arguments, seed);
  opened.device = team.assemble(seed, RanksFor::timing);
  return opened;
}

bool are_gpus(const LineArguments& arguments) {
  return std::string_view(resolved_spec(arguments.device)).starts_with(gpu);
}

// Ranks that are child processes of this process.
class OwnRanks : public RankTeam {
 public:
  // With `probes` > 0 the ranks measure collectives of that many ranks and run no scenario.
  OwnRanks(const LineArguments& arguments, int count, int probes = 0, std::string only = {})
      : arguments_(arguments), count_(count), probes_(probes), only_(std::move(only)) {}

  int count() const override { return count_; }

  std::unique_ptr<RankedDevice> assemble(std::uint64_t seed, RanksFor what) override {
    std::vector<std::unique_ptr<RankLink>> links;
    for (int rank = 0; rank < count_; ++rank) {
      Job job = rank_job(arguments_, seed, what, rank, rank);
      std::get<RankTask>(job.task).probes = probes_;
      links.push_back(start_rank(job));
    }
    RankedSettings settings = ranked_settings(arguments_);
    settings.only = only_;
    return std::make_unique<RankedDevice>(std::move(links), std::move(settings));
  }

  void set(const std::string& setting) override { arguments_.overrides.push_back(setting); }

 private:
  LineArguments arguments_;
  int count_;
  int probes_;
  std::string only_;
};

// A process for one scenario whose steps launch kernels of a library: a crash in it ends no other
// scenario.
std::shared_ptr<RankTeam> process_for(const LineArguments& arguments, const Scenario& scenario) {
  LineArguments own = arguments;
  own.files = {scenario.file};
  own.overrides = overrides_of(scenario, arguments.overrides);
  return std::make_shared<OwnRanks>(own, 1, 0, "its process");
}

}  // namespace

std::unique_ptr<RankedDevice> ranks_that_probe(const LineArguments& arguments, int count,
                                               std::uint64_t seed) {
  return OwnRanks(arguments, count, count).assemble(seed, RanksFor::timing);
}

RankedSettings ranked_settings(const LineArguments& arguments) {
  using std::chrono::nanoseconds;
  // The time limit is a tenth of the stall limit, 6 s by default. A user who debugs a rank raises
  // the stall limit, and this limit with it.
  constexpr nanoseconds least{std::chrono::seconds(3)};
  const auto stall = std::chrono::duration_cast<nanoseconds>(
      std::chrono::duration<double>(stall_seconds_of(arguments)));
  return {.stall = stall, .silence = std::max(least, stall / 10), .stopped = [] {
            return interrupted != 0;
          }};
}

void refuse_launcher(const std::string& reason) {
  if (const auto as = launched_as(variables_of_this_process())) {
    throw RequestError(fmt::format("this is one of {} processes of {}, and {}", as->count,
                                   name_of(as->launcher), reason),
                       "start it without the launcher, and say how many ranks: --ranks N");
  }
}

void refuse_one_gpu(const LineArguments& arguments) {
  const std::string& spec = arguments.device.spec;
  if (!spec.starts_with(std::string(gpu) + ":")) return;
  throw RequestError(fmt::format("--device {} is one GPU, and ranks have one each", spec),
                     "say --device cuda, and choose with CUDA_VISIBLE_DEVICES");
}

Job rank_job(const LineArguments& arguments, std::uint64_t seed, RanksFor what, int rank,
             int local_rank) {
  std::string spec = resolved_spec(arguments.device);
  if (spec == gpu) spec = fmt::format("{}:{}", gpu, local_rank);
  RankTask task{.rank = rank,
                .traces = what == RanksFor::tracing,
                .noise = arguments.noise,
                .injected = arguments.injected,
                .fault = {}};
  // The fault "1:load:KILL" applies to rank 1.
  const std::string mine = fmt::format("{}:", rank);
  if (arguments.ranks.fault.starts_with(mine))
    task.fault = arguments.ranks.fault.substr(mine.size());
  return job_of(arguments, std::move(spec), seed, std::move(task));
}

std::unique_ptr<RankLink> start_rank(const Job& job) {
  return start_rank(serve_command(), to_line(job));
}

std::unique_ptr<RankTeam> own_ranks_for(const LineArguments& arguments,
                                        const std::vector<Planned>& all) {
  if (std::ranges::none_of(all, is_of_ranks)) return nullptr;
  const auto team_of = [&](int count) {
    if (are_gpus(arguments)) refuse_together(all);
    return std::make_unique<OwnRanks>(arguments, count);
  };
  if (arguments.ranks.count) return team_of(*arguments.ranks.count);
  int wanted = 1;
  for (const Planned& planned : all) {
    if (is_of_ranks(planned)) wanted = std::max(wanted, ranks_needed(planned.scenario));
  }
  if (resolved_spec(arguments.device) != gpu) return nullptr;
  const int there = std::min(wanted, gpu_count());
  return there < 2 ? nullptr : team_of(there);
}

CollectiveKnobs collectives_of_process(std::span<const Planned> all) {
  const Scenario* first = nullptr;
  const Knobs* knobs = nullptr;
  for (const Planned& planned : all) {
    if (!is_of_ranks(planned)) continue;
    const auto of_several = [](const Variant& one) { return one.knobs.ranks.count > 1; };
    const auto variant = std::ranges::find_if(planned.scenario.variants, of_several);
    if (first == nullptr) {
      first = &planned.scenario;
      knobs = &variant->knobs;
    }
    const Field* apart = apart_in_a_process(*knobs, variant->knobs);
    if (apart == nullptr) continue;
    throw RequestError(fmt::format("{} and {} have different '{}', which is decided once for a run",
                                   first->file, planned.scenario.file, apart->name),
                       "run them one after the other");
  }
  return knobs == nullptr ? CollectiveKnobs() : knobs->ranks.collectives;
}

void refuse_together(std::span<const Planned> all) {
  (void)collectives_of_process(all);
  using Limit = std::optional<std::int64_t>;
  // Number of communicators by limit, for each number of ranks.
  std::map<int, std::map<Limit, int>> needed;
  for (const Planned& planned : all) {
    if (!is_of_ranks(planned)) continue;
    for (const PlannedStep& step : planned.plans) {
      const RanksPlan& ranks = step->ranks;
      if (ranks.count == 1) continue;
      needed[ranks.count].try_emplace(Limit(), 1);
      int& most = needed[ranks.count][ranks.collectives.max_ctas];
      most = std::max(most, ranks.communicators);
    }
  }
  for (const auto& [count, by_limit] : needed) {
    int sum = 0;
    for (const auto& [limit, communicators] : by_limit) sum += communicators;
    if (sum <= most_communicators) continue;
    throw RequestError(
        fmt::format(
            "steps of {} ranks need {} communicators, one or two for each 'ranks.max_ctas', "
            "and a run has at most {}",
            count, sum, most_communicators),
        "give its variants fewer values, or run scenarios one after the other");
  }
}

bool runs_in_processes(const Planned& planned) {
  return is_of_ranks(planned) ||
         (launches_libraries(planned.scenario) && !is_planned_only(planned.scenario));
}

bool is_of_ranks(const Planned& planned) {
  return !is_planned_only(planned.scenario) && ranks_needed(planned.scenario) > 1;
}

std::vector<PartOfRun> parts_of_run(std::vector<Planned>& all, RankTeam* team,
                                    const LineArguments& arguments) {
  const auto has_plans = [](const Planned& planned) { return !runs_programs(planned.scenario); };
  const auto programs = std::stable_partition(all.begin(), all.end(), has_plans);
  const auto shares_a_process = [gpus = are_gpus(arguments)](const Planned& planned) {
    return !gpus || is_of_ranks(planned) || !runs_in_processes(planned);
  };
  const auto apart = std::stable_partition(all.begin(), programs, shares_a_process);
  const std::span<Planned> steps(all.begin(), apart);
  std::vector<PartOfRun> parts;
  const std::span<Planned> of_team(
      steps.begin(), team == nullptr
                         ? steps.begin()
                         : std::stable_partition(steps.begin(), steps.end(), is_of_ranks));
  const std::span<Planned> others = steps.subspan(of_team.size());
  if (!of_team.empty()) parts.push_back({team, needs_device(others) ? of_team : steps});
  if (!others.empty() && (of_team.empty() || needs_device(others)))
    parts.push_back({nullptr, others});
  for (auto one = apart; one != programs; ++one) {
    const auto own = process_for(arguments, one->scenario);
    parts.push_back({.team = own.get(), .scenarios = {one, 1}, .owned = own});
  }
  if (programs != all.end())
    parts.push_back({.scenarios = {programs, all.end()}, .of_programs = true});
  return parts;
}

OpenedDevice open_device_of(const PartOfRun& part, const LineArguments& arguments,
                            std::uint64_t seed) {
  if (part.team != nullptr && are_gpus(arguments)) refuse_together(part.scenarios);
  OpenedDevice opened = part.team != nullptr ? open_ranks(*part.team, arguments, seed)
                                             : open_device_for(arguments, seed);
  fit_to_device(part.scenarios, opened.device->identity(), seed);
  if (part.team != nullptr)
    dynamic_cast<RankedDevice&>(*opened.device).refuse_other_plans(plans_of_ranks(part.scenarios));
  return opened;
}

namespace {

// `alone` says that the processes run one scenario, which nothing later depends on.
std::vector<Traced> trace_with_ranks(RankTeam& team, const LineArguments& arguments,
                                     std::vector<Planned> all, bool alone,
                                     const JudgeSettings& settings, std::uint64_t seed,
                                     const ProgressSink& progress) {
  std::vector<Traced> traced(all.size());
  if (const auto mark = attached_tool()) {
    for (Traced& one : traced)
      one.unavailable = "another tool is attached to this process: " + *mark + " is set";
    return traced;
  }
  const std::unique_ptr<RankedDevice> device = team.assemble(seed, RanksFor::tracing);
  fit_to_device(all, device->identity(), seed);
  device->refuse_other_plans(plans_of_ranks(all));
  for (const std::size_t index : tracing_order(all)) {
    Planned& planned = all[index];
    if (unmet_requirement(planned.scenario, device->identity())) continue;
    if (lacks_a_value(planned.scenario)) {
      traced[index].unavailable = ranks_do_not_calibrate;
      continue;
    }
    planned.scenario.calibrate.reset();  // within a limit or not, the file's own value stays
    progress.tracing(planned.scenario);
    try {
      traced[index] = trace_planned(*device, arguments, planned, settings, seed);
      progress.traced(planned, traced[index]);
    } catch (const DeviceLost& lost) {
      if (!alone) throw;  // later scenarios would hang too
      traced[index].unavailable = lost.what();
    } catch (const DeviceError& error) {
      traced[index].unavailable = error.what();
    }
  }
  return traced;
}

}  // namespace

LineArguments with_own_kernels(const Scenario& scenario, const LineArguments& arguments) {
  LineArguments own = arguments;
  own.files = {scenario.file};
  own.overrides = overrides_of(scenario, arguments.overrides);
  std::erase_if(own.overrides,
                [](const std::string& setting) { return setting.starts_with("kernels"); });
  std::set<std::string> names;
  for (const Variant& variant : scenario.variants)
    for (const auto& [name, replacement] : variant.knobs.kernels) names.insert(name);
  for (const std::string& name : names)
    own.overrides.push_back(fmt::format("kernels.{}=ours", name));
  return own;
}

namespace {

// Calibrates the knob of a scenario that has processes of its own, and lets these have the value.
// Says what was found, or why nothing was; the traces are of another step and are left out.
Traced calibrate_apart(const PartOfRun& part, std::vector<Planned>& planned,
                       const LineArguments& arguments, std::uint64_t seed) {
  const LineArguments own = with_own_kernels(planned.front().scenario, arguments);
  const Traced traced = trace_all(own, planned, seed, Timelines::judged, {}).front();
  Traced found;
  found.unavailable = traced.unavailable;
  found.calibrated = traced.calibrated;
  found.wall_times = traced.wall_times;
  planned.front().traced = found;
  apply_calibrations(planned, arguments, seed);
  if (found.calibrated && !found.calibrated->is_kept)
    part.team->set(fmt::format("{}={}", found.calibrated->knob, found.calibrated->value));
  return found;
}

}  // namespace

std::vector<Traced> trace_part(const PartOfRun& part, const LineArguments& arguments,
                               const JudgeSettings& settings, std::uint64_t seed,
                               Timelines timelines, const ProgressSink& progress) {
  if (part.team == nullptr) return trace_all(arguments, part.scenarios, seed, timelines, progress);
  std::vector<Planned> scenarios{part.scenarios.begin(), part.scenarios.end()};
  std::optional<Traced> calibrated;
  if (part.owned != nullptr && scenarios.front().scenario.calibrate) {
    calibrated = calibrate_apart(part, scenarios, arguments, seed);
    if (!calibrated->calibrated || !calibrated->calibrated->failure.empty()) return {*calibrated};
  }
  std::vector<Traced> traced = trace_with_ranks(*part.team, arguments, std::move(scenarios),
                                                part.owned != nullptr, settings, seed, progress);
  if (calibrated) {
    traced.front().calibrated = calibrated->calibrated;
    traced.front().wall_times += calibrated->wall_times;
  }
  return traced;
}

}  // namespace stepgate
