// SPDX-License-Identifier: MIT
// Starts the rank processes of a run: this process starts them as children, or a launcher's other
// processes start them on its request. Tracing and timing must not share a process, so each gets
// new ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/ranked/launcher.h"
#include "device/ranked/ranked_device.h"
#include "line/job.h"
#include "line/planned.h"
#include "line/progress_sink.h"
#include "line/trace/trace_planned.h"

namespace stepgate {

enum class RanksFor { timing, tracing };

class RankTeam {
 public:
  virtual ~RankTeam() = default;
  virtual int count() const = 0;
  // Waits until the launcher's other processes have joined. Afterwards those wait without a time
  // limit. Throws DeviceLost.
  virtual void gather() {}
  // Starts new rank processes. Those of the previous device must have ended. Throws DeviceLost.
  virtual std::unique_ptr<RankedDevice> assemble(std::uint64_t seed, RanksFor) = 0;
  // Later processes plan the scenario with this setting, "batch.size=64".
  virtual void set(const std::string& /*setting*/) {}
  // Ends the launcher's other processes with this exit code.
  virtual void end(int /*code*/) {}
};

// The ranks that `--ranks` requests, or that the plans need and the GPUs allow; null where a run
// needs only its own process.
std::unique_ptr<RankTeam> own_ranks_for(const LineArguments&, const std::vector<Planned>&);

// The reason why a knob with [calibrate] is not calibrated where ranks run the scenario.
inline constexpr std::string_view ranks_do_not_calibrate =
    "ranks that run in processes of their own do not calibrate";

// Whether a team of ranks, if there is one, runs the scenario. A scenario of one rank needs no
// team: this process runs it on its own device.
bool is_of_ranks(const Planned&);

// Whether a GPU runs the scenario in processes other than that of the verb: several ranks, or
// kernels of a library, which may crash.
bool runs_in_processes(const Planned&);

// The scenarios that run on one device.
struct PartOfRun {
  RankTeam* team = nullptr;  // null: this process's own device
  std::span<Planned> scenarios;
  bool of_programs = false;              // which open the device themselves
  std::shared_ptr<RankTeam> owned = {};  // the team, where it is this part's alone
};

// Reorders the scenarios where a team runs some and this process others: those of the team come
// first, then those with kernels of libraries, each a part of its own, and those of programs last.
// So everything that ranks may refuse is refused before anything is timed. The rank processes also
// end first. A GPU that this process has opened stays open until it exits, and two processes on a
// GPU disturb a measurement.
std::vector<PartOfRun> parts_of_run(std::vector<Planned>&, RankTeam*, const LineArguments&);

// Starts processes that measure collectives of `count` ranks and run no scenario. Throws
// DeviceLost.
std::unique_ptr<RankedDevice> ranks_that_probe(const LineArguments&, int count, std::uint64_t seed);

// Connects as the launcher's rank 0, before anything else is done. Throws RequestError.
std::unique_ptr<RankTeam> lead(const LineArguments&, const LaunchedAs&);
// The exit codes of another rank that gets none from rank 0.
struct CodesWithoutLeader {
  int refused;  // the request is refused, as rank 0 does and reports
  int left;     // rank 0 has left
};
// Serves as another rank of the launcher: does what rank 0 requests and prints nothing. Returns the
// exit code.
int attend(const LineArguments&, const LaunchedAs&, CodesWithoutLeader);

// Opens the device of a part. The plans must fit it, and must be equal on all ranks. Throws
// RequestError, DeviceLost.
OpenedDevice open_device_of(const PartOfRun&, const LineArguments&, std::uint64_t seed);

// Traces each scenario of the part, in processes that have ended when this returns. If ranks trace,
// timelines are always drawn, and a rank that fails ends the run. Throws DeviceLost, Interrupted.
std::vector<Traced> trace_part(const PartOfRun&, const LineArguments&, const JudgeSettings&,
                               std::uint64_t seed, Timelines, const ProgressSink&);

// The arguments for the scenario alone, with stepgate's own kernels in all variants. So a process
// that calibrates opens no library, which could crash in it.
LineArguments with_own_kernels(const Scenario&, const LineArguments&);

// Throws RequestError with this reason under a launcher; for verbs that start their own ranks or
// none.
void refuse_launcher(const std::string& reason);

// Throws RequestError where the device is one GPU by index, since each rank needs its own GPU.
void refuse_one_gpu(const LineArguments&);

// The collective knobs (ranks.max_ctas, ranks.link) of the first step of several ranks. Settings
// that NCCL reads once per process must be equal in all steps. Throws RequestError where they are
// not.
CollectiveKnobs collectives_of_process(std::span<const Planned>);
// Throws RequestError for scenarios that GPUs cannot run together: they differ in knobs that are
// fixed per process, or need too many communicators.
void refuse_together(std::span<const Planned>);

RankedSettings ranked_settings(const LineArguments&);

// The job of one rank process.
Job rank_job(const LineArguments&, std::uint64_t seed, RanksFor, int rank, int local_rank);
// Starts a rank process as a child of this process. Throws std::system_error.
std::unique_ptr<RankLink> start_rank(const Job&);

}  // namespace stepgate
