// SPDX-License-Identifier: MIT
// Asks both builds of a gate what their steps consist of, each at its own pace. Nothing is timed:
// while one side's host makes a step ready, the device can carry out a step of the other side.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compare/gate/judge_gate.h"
#include "compare/worker/worker.h"

namespace stepgate {

struct CountedBoth {
  std::vector<CountedPair> pairs;  // of the workloads that both have answered for, in their order
  // The failure of each side that failed, and how many workloads it left uncounted; empty
  // otherwise.
  std::vector<std::string> failures;
};

// A side that fails ends the other's counting; a worker that failed is the caller's to end, any
// other has ended. `progress` is told the workloads that BASE is asked for, then that HEAD is
// waited for. Throws WaitStopped.
CountedBoth count_both(Worker& base, Worker& head, std::span<const std::string> workloads,
                       const std::function<void(const std::string& workload)>& progress);

}  // namespace stepgate
