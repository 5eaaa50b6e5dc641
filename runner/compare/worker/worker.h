// SPDX-License-Identifier: MIT
// One side of a comparison: a program that runs named workloads and says how long their steps took.
// Its caller chooses the steps and their order, and knows what they mean.
#pragma once

#include <memory>
#include <string>

#include "base/process/child.h"
#include "compare/worker/protocol.h"

namespace stepgate {

// Functions throw WorkerError, and WaitStopped when the wait was to end.
class Worker {
 public:
  virtual ~Worker() = default;
  // Asks now for what the next function called here will return, so that several workers can be at
  // it at the same time.
  virtual void ask_ahead(const Request&) = 0;
  virtual const Hello& hello() = 0;
  virtual Loaded load(const std::string& workload) = 0;
  // Runs the loaded workload. The answer's steps are the scored ones asked for.
  virtual Ran run(const RunSteps&) = 0;
  virtual void unload() = 0;
  virtual StepCounts count(const CountWorkload&) = 0;
  // Ends the worker; no other call may follow.
  virtual void quit() = 0;
};

// Starts the program and says hello to it; `hello` waits for the answer, so whatever is wrong with
// the program shows there.
std::unique_ptr<Worker> start_worker(ChildRequest);

}  // namespace stepgate
