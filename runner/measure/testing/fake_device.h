// SPDX-License-Identifier: MIT
// For tests only: a device whose step times and losses are written down by the test, and the clock
// that they move.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "plan/count/facts_of.h"

namespace stepgate {

// Time a step of a variant, at a step number of it.
using StepTime = std::function<std::chrono::nanoseconds(const std::string& variant, std::int64_t)>;
using Loss = std::function<float(const std::string& variant, std::int64_t)>;

struct Script {
  StepTime step_time;  // empty: a device without a notion of time
  Loss loss = [](const std::string&, std::int64_t step) {
    return 1.0F / (1.0F + static_cast<float>(step));
  };
  // Empty: clocks are not known; there is nothing around the device.
  std::function<double(const std::string& variant)> sm_clock_hertz = {};
  std::function<EnvironmentReading(std::int64_t reading)> environment = {};
  // Libraries of a plan's variant, and choices of its n-th load, counted from 0; empty: there is
  // nothing to choose.
  std::function<std::vector<DeviceKey>(const std::string& variant)> libraries = {};
  std::function<std::vector<KernelChoice>(const std::string& variant, int load)> choices = {};
  // The gradients of a step, by the parameters of its plan; empty: it computes none.
  std::function<std::vector<GradientSketch>(const std::string& variant, std::int64_t step)>
      gradients = {};
  bool restarts = true;      // where it is loaded; otherwise it has to be loaded anew
  double host_share = 0.25;  // of the step time; negative: the device does not know
  std::chrono::nanoseconds now{0};
  std::vector<std::pair<std::string, Observe>> runs{};
  std::vector<LoadDraw> draws{};  // of every load
};

class FakeStep : public LoadedStep {
 public:
  FakeStep(const StepPlan& plan, Script& script, int load, std::int64_t first_step)
      : plan_(plan),
        script_(script),
        load_(load),
        first_step_(first_step),
        next_step_(first_step) {}

  std::vector<KernelChoice> choices() const override {
    if (!script_.choices) return {};
    return script_.choices(plan_.variant, load_);
  }

  bool restart() override {
    if (script_.restarts) next_step_ = first_step_;
    return script_.restarts;
  }

  StepResult run(const Observe& observe) override {
    script_.runs.emplace_back(plan_.variant, observe);
    StepResult result;
    result.first_step = next_step_;
    result.steps = observe.steps;
    std::chrono::nanoseconds elapsed{0};
    for (std::int64_t step = 0; step < observe.wash_out_steps + observe.steps; ++step) {
      result.losses.push_back(script_.loss(plan_.variant, next_step_));
      if (script_.step_time) {
        const auto time = script_.step_time(plan_.variant, next_step_);
        script_.now += time;
        if (step >= observe.wash_out_steps) elapsed += time;
        if (step >= std::max<std::int64_t>(observe.wash_out_steps, 1))
          result.step_times.push_back(time);
      }
      ++next_step_;
    }
    if (observe.gradients && script_.gradients)
      result.gradients = script_.gradients(plan_.variant, next_step_ - 1);
    if (!script_.step_time) return result;
    result.elapsed = elapsed;
    if (script_.sm_clock_hertz) result.sm_clock_hertz = script_.sm_clock_hertz(plan_.variant);
    if (script_.host_share >= 0) {
      result.host_busy = std::chrono::nanoseconds(
          static_cast<std::int64_t>(static_cast<double>(elapsed.count()) * script_.host_share));
    }
    return result;
  }

 private:
  const StepPlan& plan_;
  Script& script_;
  int load_;
  std::int64_t first_step_;
  std::int64_t next_step_;
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(Script& script) : script_(script) {}

  DeviceIdentity identity() const override {
    DeviceIdentity identity;
    identity.name = "scripted";
    return identity;
  }
  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    script_.draws.push_back(draw);
    return std::make_unique<FakeStep>(plan, script_, loads_[plan.variant]++, draw.first_step);
  }
  std::chrono::nanoseconds now() const override { return script_.now; }
  std::vector<DeviceKey> libraries_for(const StepPlan& plan) override {
    if (!script_.libraries) return {};
    return script_.libraries(plan.variant);
  }
  std::optional<EnvironmentReading> read_environment() override {
    if (!script_.environment) return std::nullopt;
    return script_.environment(readings_++);
  }

 private:
  Script& script_;
  std::int64_t readings_ = 0;
  std::map<std::string, int> loads_;
};

// Plans of no operations, one for each name; 64 samples a step.
inline std::vector<StepPlan> plans_named(const std::vector<std::string>& names) {
  std::vector<StepPlan> plans;
  for (const std::string& name : names) {
    StepPlan plan;
    plan.scenario = "scripted";
    plan.variant = name;
    plan.batch_sizes = {64};
    plan.batch_bytes = 1 << 20;
    plan.param_bytes = 4 << 20;
    plans.push_back(std::move(plan));
  }
  return plans;
}

inline std::vector<PlannedStep> steps_named(const std::vector<std::string>& names) {
  return with_facts(plans_named(names));
}

}  // namespace stepgate
