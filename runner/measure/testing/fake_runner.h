// SPDX-License-Identifier: MIT
// For tests only: steps with given times and losses, a runner of them that knows no plans, and the
// fake clock that they advance.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "measure/rounds/measure.h"

namespace stepgate {

// Returns the time of a variant's step with this number.
using StepTime = std::function<std::chrono::nanoseconds(const std::string& variant, std::int64_t)>;
using Loss = std::function<float(const std::string& variant, std::int64_t)>;

struct Script {
  StepTime step_time;  // empty: a device without a notion of time
  Loss loss = [](const std::string&, std::int64_t step) {
    return 1.0F / (1.0F + static_cast<float>(step));
  };
  // Empty function: clock rates are unknown; for `environment`, nothing is known.
  std::function<double(const std::string& variant)> sm_clock_hertz = {};
  std::function<EnvironmentReading(std::int64_t reading)> environment = {};
  // Libraries of a variant's plan, and its kernel choices in the n-th load, counted from 0. Empty
  // functions: there are none.
  std::function<std::vector<DeviceKey>(const std::string& variant)> libraries = {};
  std::function<std::vector<KernelChoice>(const std::string& variant, int load)> choices = {};
  // Returns the gradients of a step, in the order of its plan's parameters; empty: the step
  // computes none.
  std::function<std::vector<GradientSketch>(const std::string& variant, std::int64_t step)>
      gradients = {};
  // Returns what of the device is another one after a run that ended before the step with this
  // number; empty: nothing is.
  std::function<std::string(const std::string& variant, std::int64_t step)> device_changed = {};
  // Returns the audits of launches of a step where they are asked for.
  std::function<std::vector<LaunchAudit>(const std::string& variant, std::int64_t step)> audits =
      {};
  bool restarts = true;      // a step can restart without a new load
  double host_share = 0.25;  // host time as a share of the step time; negative: unknown
  std::chrono::nanoseconds now{0};
  std::vector<std::pair<std::string, Observe>> runs{};
  std::vector<LoadDraw> draws{};  // random draws of every load
};

class FakeStep : public LoadedStep {
 public:
  FakeStep(std::string name, Script& script, int load, std::int64_t first_step)
      : name_(std::move(name)),
        script_(script),
        load_(load),
        first_step_(first_step),
        next_step_(first_step) {}

  std::vector<KernelChoice> choices() const override {
    if (!script_.choices) return {};
    return script_.choices(name_, load_);
  }

  bool restart() override {
    if (script_.restarts) next_step_ = first_step_;
    return script_.restarts;
  }

  StepResult run(const Observe& observe) override {
    script_.runs.emplace_back(name_, observe);
    StepResult result;
    result.first_step = next_step_;
    result.steps = observe.steps;
    std::chrono::nanoseconds elapsed{0};
    for (std::int64_t step = 0; step < observe.wash_out_steps + observe.steps; ++step) {
      result.losses.push_back(script_.loss(name_, next_step_));
      if (script_.step_time) {
        const auto time = script_.step_time(name_, next_step_);
        script_.now += time;
        if (step >= observe.wash_out_steps) elapsed += time;
        if (step >= std::max<std::int64_t>(observe.wash_out_steps, 1))
          result.step_times.push_back(time);
      }
      ++next_step_;
    }
    if (observe.gradients && script_.gradients)
      result.gradients = script_.gradients(name_, next_step_ - 1);
    if (observe.audit != 0 && script_.audits) result.audits = script_.audits(name_, next_step_ - 1);
    if (script_.device_changed) result.device_changed = script_.device_changed(name_, next_step_);
    if (!script_.step_time) return result;
    result.elapsed = elapsed;
    if (script_.sm_clock_hertz) result.sm_clock_hertz = script_.sm_clock_hertz(name_);
    if (script_.host_share >= 0) {
      result.host_busy = std::chrono::nanoseconds(
          static_cast<std::int64_t>(static_cast<double>(elapsed.count()) * script_.host_share));
    }
    return result;
  }

 private:
  std::string name_;
  Script& script_;
  int load_;
  std::int64_t first_step_;
  std::int64_t next_step_;
};

// `Base` is StepRunner or Device.
template <class Base>
class Scripted : public Base {
 public:
  explicit Scripted(Script& script) : script_(script) {}

  DeviceIdentity identity() const override {
    DeviceIdentity identity;
    identity.name = "scripted";
    return identity;
  }
  std::chrono::nanoseconds now() const override { return script_.now; }
  std::optional<EnvironmentReading> read_environment() override {
    if (!script_.environment) return std::nullopt;
    return script_.environment(readings_++);
  }
  std::unique_ptr<LoadedStep> load_named(const std::string& name, const LoadDraw& draw) {
    script_.draws.push_back(draw);
    return std::make_unique<FakeStep>(name, script_, loads_[name]++, draw.first_step);
  }

 protected:
  Script& script_;

 private:
  std::int64_t readings_ = 0;
  std::map<std::string, int> loads_;
};
using FakeRunner = Scripted<StepRunner>;

inline Measurement measure(FakeRunner& runner, const std::vector<Subject>& subjects,
                           const MeasureRequest& request) {
  const auto load = [&](std::size_t subject, int, const LoadDraw& draw) {
    return runner.load_named(subjects[subject].name, draw);
  };
  return measure(runner, subjects, load, request);
}

// Returns subjects without counts, one for each name, of 64 samples per step.
inline std::vector<Subject> subjects_named(const std::vector<std::string>& names) {
  std::vector<Subject> subjects;
  for (const std::string& name : names) {
    subjects.push_back({.name = name,
                        .batch_size = 64,
                        .tokens = 0,
                        .dtype = DType::fp32,
                        .batch_bytes = 1 << 20,
                        .param_bytes = 4 << 20,
                        .arithmetic = Arithmetic{.rows = 64}});
  }
  return subjects;
}

}  // namespace stepgate
