// SPDX-License-Identifier: MIT
// Asks both builds of a gate what their steps consist of, each at its own pace. Nothing is timed:
// while one side's host makes a step ready, the device can carry out a step of the other side.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "duel/gate/judge_gate.h"
#include "duel/worker/worker.h"

namespace stepgate {

struct CountedBoth {
  std::vector<CountedPair> pairs;  // of the works that both have answered for, in their order
  // The failure of each side that failed, and how many works it left uncounted; empty otherwise.
  std::vector<std::string> failures;
};

// A side that fails ends the other's counting; a worker that failed is the caller's to end, any
// other has ended. `progress` is told the works that BASE is asked for, then that HEAD is waited
// for. Throws WaitStopped.
CountedBoth count_both(Worker& base, Worker& head, std::span<const std::string> works,
                       const std::function<void(const std::string& work)>& progress);

}  // namespace stepgate
