// SPDX-License-Identifier: MIT
// How the ranks of a run come to be: processes of this program, which this process starts or a
// launcher's other processes start for it. They are started anew for whatever must not share a
// process, such as tracing and timing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/process/command.h"
#include "verbs/planned.h"
#include "verbs/ranks/launcher.h"
#include "verbs/ranks/ranked_device.h"

namespace stepgate {

enum class RanksFor { timing, tracing };

class RankTeam {
 public:
  virtual ~RankTeam() = default;
  virtual int count() const = 0;
  // New processes. Those of the device before must be gone. Throws DeviceLost.
  virtual std::unique_ptr<RankedDevice> assemble(std::uint64_t seed, RanksFor) = 0;
  // Everybody who takes part ends with this code.
  virtual void end(int /*code*/) {}
};

// What `--ranks` asks for, or what the plans need of the GPUs that there are; null where a run
// needs none but its own process.
std::unique_ptr<RankTeam> own_ranks_for(const Arguments&, const std::vector<Planned>&);

// Of the launcher's rank 0, before anything else is done. Throws RequestError.
std::unique_ptr<RankTeam> lead(const Arguments&, const LaunchedAs&);
// Of its other ranks: does what rank 0 asks and says nothing. The exit code.
int attend(const Arguments&, const LaunchedAs&);

// Of all ranks, or of this process alone where there is no team. The plans are as they are on it,
// and those of all ranks alike. Throws RequestError, DeviceLost.
OpenedDevice open_device_of_run(const Arguments&, RankTeam*, std::vector<Planned>&,
                                std::uint64_t seed);

// What trace_all is for a device of one process. A rank that fails ends the run: throws DeviceLost,
// Interrupted.
std::vector<Traced> trace_with_ranks(RankTeam&, const Arguments&, std::vector<Planned>,
                                     std::uint64_t seed);

// The plans that both ends of a link must have alike.
std::vector<NamedPlan> plans_of_ranks(const std::vector<Planned>&);

// Ranks share no GPU. Throws RequestError where one is named.
void refuse_one_gpu(const Arguments&);

// By what plans of several ranks say, which are all alike: NCCL asks for it once in a process.
// Throws RequestError where they are not.
RankLinks links_of_ranks(const std::vector<Planned>&);

RankedSettings ranked_settings(const Arguments&);

// The command of one rank process.
Command rank_command(const Arguments&, std::uint64_t seed, RanksFor, int rank, int local_rank);

}  // namespace stepgate
