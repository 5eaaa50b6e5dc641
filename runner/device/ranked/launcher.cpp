// SPDX-License-Identifier: MIT
#include "device/ranked/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

struct Names {
  Launcher launcher;
  const char* rank;
  const char* local_rank;
  const char* count;
  const char* local_count;         // or the number of hosts; may be missing
  std::array<const char*, 2> job;  // the first that is set
  const char* part;                // tells starts of a job apart; may be missing
};

constexpr std::array launchers{Names{Launcher::torchrun,
                                     "RANK",
                                     "LOCAL_RANK",
                                     "WORLD_SIZE",
                                     "LOCAL_WORLD_SIZE",
                                     {"MASTER_PORT", "TORCHELASTIC_RUN_ID"},
                                     "TORCHELASTIC_RESTART_COUNT"},
                               Names{Launcher::slurm,
                                     "SLURM_PROCID",
                                     "SLURM_LOCALID",
                                     "SLURM_NTASKS",
                                     "SLURM_STEP_NUM_NODES",
                                     {"SLURM_JOB_ID", "SLURM_JOBID"},
                                     "SLURM_STEP_ID"},
                               Names{Launcher::open_mpi,
                                     "OMPI_COMM_WORLD_RANK",
                                     "OMPI_COMM_WORLD_LOCAL_RANK",
                                     "OMPI_COMM_WORLD_SIZE",
                                     "OMPI_COMM_WORLD_LOCAL_SIZE",
                                     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
                                     nullptr}};

constexpr int most_processes = 4096;  // of a launcher; unneeded ones stay idle

int number(const Variables& variables, const char* name, int least) {
  const std::string text = variables(name).value_or("");
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least &&
      value <= most_processes)
    return value;
  throw RequestError(
      fmt::format("{} is '{}', and no number from {} to {}", name, text, least, most_processes),
      "it is a launcher's to set: unset it, or let the launcher do it");
}

// The script of a batch job has a task's variables but is not a task, since it has no step.
bool is_script_of_a_job(const Variables& variables) {
  return variables("SLURM_JOB_ID") && !variables("SLURM_STEP_ID") && !variables("SLURM_STEPID");
}

std::string job_of(const Names& names, const Variables& variables) {
  for (const char* name : names.job) {
    const auto job = variables(name);
    if (!job || job->empty()) continue;
    const auto part = names.part == nullptr ? std::nullopt : variables(names.part);
    return part ? fmt::format("{}.{}", *job, *part) : *job;
  }
  return "";
}

bool on_one_host(const Names& names, const Variables& variables, int count) {
  if (!variables(names.local_count)) return false;
  const int said = number(variables, names.local_count, 1);
  return said == (names.launcher == Launcher::slurm ? 1 : count);
}

std::optional<LaunchedAs> launched_by(const Names& names, const Variables& variables) {
  std::vector<const char*> there;
  std::vector<const char*> missing;
  for (const char* name : {names.rank, names.local_rank, names.count})
    (variables(name) ? there : missing).push_back(name);
  if (there.empty()) return std::nullopt;
  if (names.launcher == Launcher::slurm && is_script_of_a_job(variables)) return std::nullopt;
  if (!missing.empty()) {
    throw RequestError(fmt::format("{} of {} {} set, and {} {} not", fmt::join(there, " and "),
                                   name_of(names.launcher), there.size() == 1 ? "is" : "are",
                                   fmt::join(missing, " and "), missing.size() == 1 ? "is" : "are"),
                       fmt::format("start it with {}, or unset {}", name_of(names.launcher),
                                   fmt::join(there, " and ")));
  }
  LaunchedAs as{.launcher = names.launcher,
                .rank = number(variables, names.rank, 0),
                .local_rank = number(variables, names.local_rank, 0),
                .count = number(variables, names.count, 1),
                .on_one_host = false,
                .job = job_of(names, variables)};
  if (as.count == 1) return std::nullopt;
  as.on_one_host = on_one_host(names, variables, as.count);
  if (as.rank < as.count && as.local_rank < as.count) return as;
  throw RequestError(fmt::format("{}={}, {}={} and {}={} cannot be together", names.rank, as.rank,
                                 names.local_rank, as.local_rank, names.count, as.count),
                     "they are a launcher's to set: unset them, or let the launcher do it");
}

}  // namespace

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::slurm:
      return "Slurm";
    case Launcher::open_mpi:
      return "Open MPI";
  }
  return {};
}

Variables variables_of_this_process() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

std::optional<LaunchedAs> launched_as(const Variables& variables) {
  std::optional<LaunchedAs> found;
  for (const Names& names : launchers) {
    auto as = launched_by(names, variables);
    if (!as) continue;
    if (found) {
      throw RequestError(
          fmt::format("this is a process of {}, rank {} of {}, and of {}, rank {} of "
                      "{}",
                      name_of(found->launcher), found->rank, found->count, name_of(as->launcher),
                      as->rank, as->count),
          fmt::format("unset {} if {} is the one, and the other's otherwise", names.rank,
                      name_of(found->launcher)));
    }
    found = std::move(as);
  }
  return found;
}

}  // namespace stepgate
