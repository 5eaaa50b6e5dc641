// SPDX-License-Identifier: MIT
// One side of a comparison: a program that runs named workloads and reports step times. The caller
// chooses the steps and their order, and interprets them.
#pragma once

#include <memory>
#include <string>

#include "base/process/child.h"
#include "compare/worker/protocol.h"

namespace stepgate {

// Functions throw WorkerError, and WaitStopped when interrupted.
class Worker {
 public:
  virtual ~Worker() = default;
  // Sends the request of the next function call now, so that several workers can work at the same
  // time.
  virtual void ask_ahead(const Request&) = 0;
  virtual const Hello& hello() = 0;
  virtual Loaded load(const std::string& workload) = 0;
  // Runs the loaded workload. The steps in the answer are the scored ones requested.
  virtual Ran run(const RunSteps&) = 0;
  virtual void unload() = 0;
  virtual StepCounts count(const CountWorkload&) = 0;
  // Ends the worker; no other call may follow.
  virtual void quit() = 0;
};

// Starts the program and sends hello. `hello` waits for the answer, so that errors of the program
// appear there.
std::unique_ptr<Worker> start_worker(ChildRequest);

}  // namespace stepgate
