// SPDX-License-Identifier: MIT
// For tests only: a worker in this process on a simulated device.
#pragma once

#include <memory>
#include <utility>

#include "compare/worker/worker.h"
#include "device/simulated/simulated_device.h"
#include "plan/planned_step.h"

namespace stepgate {

// Runs the same step for every workload.
class SimulatedWorker : public Worker {
 public:
  SimulatedWorker(const PlannedStep& step, DeviceProfile profile, std::uint64_t seed)
      : step_(step), device_(make_simulated_device(std::move(profile), {.seed = seed})) {}

  void ask_ahead(const Request&) override {}
  const Hello& hello() override { return hello_; }
  Loaded load(const std::string&) override {
    loaded_ = device_->load_into(0, step_);
    return {};
  }
  Ran run(const RunSteps& run) override {
    const StepResult result =
        loaded_->run({.wash_out_steps = run.wash_out_steps, .steps = run.steps});
    return {.steps = result.steps, .elapsed = result.elapsed.value()};
  }
  void unload() override { loaded_.reset(); }
  StepCounts count(const CountWorkload&) override { return {}; }
  void quit() override {}

 private:
  const PlannedStep& step_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<LoadedStep> loaded_;
  Hello hello_{.program = "simulated", .simulated = true, .workloads = {"workload"}};
};

}  // namespace stepgate
