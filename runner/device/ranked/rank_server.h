// SPDX-License-Identifier: MIT
// Carries out requests in the process of a rank, on its device. Decides nothing.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/ranked/rank_protocol.h"
#include "plan/planned_step.h"

namespace stepgate {

// Returns whether each rank's device runs its own part of a plan and communicates, as GPUs do.
// Other devices run all ranks of a plan in one process, so every process does the same.
constexpr bool carries_a_part(DeviceKind kind) {
  return kind == DeviceKind::cuda;
}

// For tests: a fault that the process causes in itself at its first load or its first run.
struct PlayedFault {
  bool at_run = false;
  int signal = 0;  // 0: no signal; it continues and reports wrong times
};

// Parses "load:KILL", "run:STOP" or "run:LIE". Throws RequestError.
PlayedFault played_fault(const std::string& text);

struct RankSubject {
  int rank = 0;
  std::string build;
  std::vector<PlannedStep> plans;
  // Returns more plans that a run may need; called only on demand, since that takes time.
  std::function<std::vector<PlannedStep>()> more_plans = {};
  std::optional<PlayedFault> fault = {};
};

class RankServer {
 public:
  RankServer(Device& device, RankSubject subject);

  // Throws nothing: if the device cannot run a request, the answer is the error.
  RankAnswer answer(const RankRequest&);

 private:
  struct Loaded {
    int slot = 0;
    std::unique_ptr<StepPlan> plan;  // must outlive the step
    std::unique_ptr<LoadedStep> step;
  };

  RankValue value_of(const ask::Hello&);
  RankValue value_of(const ask::MakeRendezvous&);
  RankValue value_of(const ask::Join&);
  RankValue value_of(const ask::Libraries&);
  RankValue value_of(const ask::Load&);
  RankValue value_of(const ask::Run&);
  RankValue value_of(const ask::RunInterleaved&);
  RankValue value_of(const ask::Unload&);
  RankValue value_of(const ask::Restart&);
  RankValue value_of(const ask::Environment&);
  RankValue value_of(const ask::End&);
  RankValue value_of(const ask::CommunicatesWith&);

  const PlannedStep& plan_of(const std::string& digest);
  Loaded& loaded(std::int64_t step);
  void play(bool at_run);

  Device& device_;
  RankSubject subject_;
  std::map<std::string, PlannedStep> by_digest_;
  std::map<std::int64_t, Loaded> loaded_;
};

// Answers messages line by line until a message or the end of input ends it. Sends a heartbeat
// every second while it works. Throws RankProtocolError, also for a line that is too long, of which
// no more is read.
void serve_rank(std::istream& in, std::ostream& out, RankServer&);

}  // namespace stepgate
