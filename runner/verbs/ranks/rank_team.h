// SPDX-License-Identifier: MIT
// Starts the ranks of a run: processes of this program, started by this process or, for it, by a
// launcher's other processes. Tracing and timing must not share a process, so each gets new ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verbs/job.h"
#include "verbs/planned.h"
#include "verbs/ranks/launcher.h"
#include "verbs/ranks/ranked_device.h"

namespace stepgate {

enum class RanksFor { timing, tracing };

class RankTeam {
 public:
  virtual ~RankTeam() = default;
  virtual int count() const = 0;
  // Waits until all launchers have joined. After that they wait without a time limit. Throws
  // DeviceLost.
  virtual void gather() {}
  // Starts new processes. Those of the previous device must be gone. Throws DeviceLost.
  virtual std::unique_ptr<RankedDevice> assemble(std::uint64_t seed, RanksFor) = 0;
  // Ends all launchers with this exit code.
  virtual void end(int /*code*/) {}
};

// Returns the ranks that `--ranks` requests, or that the plans need on the GPUs present; null where
// the run needs only its own process.
std::unique_ptr<RankTeam> own_ranks_for(const Arguments&, const std::vector<Planned>&);

// Why a knob with [calibrate] is not calibrated where ranks run the scenario.
inline constexpr std::string_view ranks_do_not_calibrate =
    "ranks that run in processes of their own do not calibrate";

// Whether the scenario is run, and by a team of ranks if there is one. A scenario of one rank needs
// no team: this process runs it on its own device.
bool is_of_ranks(const Planned&);

// The scenarios that run on one device.
struct PartOfRun {
  RankTeam* team = nullptr;  // null: this process's own device
  std::span<Planned> scenarios;
};

// Reorders the scenarios where a team carries out some and this process others: those of the team
// come first. So everything that ranks may refuse is refused before anything is timed. The rank
// processes also end first. A GPU that this process has opened stays open until it exits, and two
// processes on a GPU disturb a measurement.
std::vector<PartOfRun> parts_of_run(std::vector<Planned>&, RankTeam*);

// Starts processes that measure collectives of `count` ranks and run no scenario. Throws
// DeviceLost.
std::unique_ptr<RankedDevice> ranks_that_probe(const Arguments&, int count, std::uint64_t seed);

// Leads as rank 0 of the launcher; must be called first. Throws RequestError.
std::unique_ptr<RankTeam> lead(const Arguments&, const LaunchedAs&);
// Serves as another rank of the launcher: does what rank 0 requests, without output. Returns the
// exit code.
int attend(const Arguments&, const LaunchedAs&);

// Opens the device of the part, fits the plans to it, and checks that all ranks have equal plans.
// Throws RequestError, DeviceLost.
OpenedDevice open_device_of(const PartOfRun&, const Arguments&, std::uint64_t seed);

// Returns the traces of each scenario of the part, made in processes that have ended by then. Where
// ranks trace, a failed rank ends the run: throws DeviceLost, Interrupted.
std::vector<Traced> trace_part(const PartOfRun&, const Arguments&, const JudgeSettings&,
                               std::uint64_t seed);

// Throws RequestError with this reason under a launcher, for verbs that start their own ranks or
// none.
void refuse_launcher(const std::string& reason);

// Throws RequestError where a single GPU is named, since ranks cannot share a GPU.
void refuse_one_gpu(const Arguments&);

// The knobs of the first step of several ranks. What NCCL reads once per process must be equal in
// all steps. Throws RequestError where it is not.
CollectiveKnobs collectives_of_process(std::span<const Planned>);
// Throws RequestError for scenarios that GPUs cannot run together: they differ in knobs that are
// fixed per process, or need too many communicators.
void refuse_together(std::span<const Planned>);

RankedSettings ranked_settings(const Arguments&);

// The job of one rank process.
Job rank_job(const Arguments&, std::uint64_t seed, RanksFor, int rank, int local_rank);

}  // namespace stepgate
