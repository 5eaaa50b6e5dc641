// SPDX-License-Identifier: MIT
// Shared parts of the device contract's tests: the devices under test and the steps that run on
// them. Each test program defines its devices. device_contract_test.cpp tests the promises.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "plan/step_plan.h"
#include "plan/testing/plan_by_hand.h"
#include "scenario/scenario.h"
#include "tests/sanitized.h"

namespace stepgate {

struct DeviceCase {
  std::string name;
  DeviceKind kind = DeviceKind::reference;
  std::unique_ptr<Device> (*make)() = nullptr;  // throws where there is no such device
};

// Each test program defines this once.
std::vector<DeviceCase> device_cases();

// Returns those that compute numbers. The simulated device does not.
inline std::vector<DeviceCase> devices_with_numbers() {
  std::vector<DeviceCase> cases = device_cases();
  std::erase_if(cases, [](const DeviceCase& test) { return test.kind == DeviceKind::simulated; });
  return cases;
}

// Knobs under which every way to run the step computes the same numbers.
struct ModelCase {
  std::string name;
  Knobs knobs;
};

// Prints the name in GoogleTest's messages.
void PrintTo(const DeviceCase&, std::ostream*);
void PrintTo(const ModelCase&, std::ostream*);

// Tiny models: spinning kernels, and mlps of every dtype and optimizer.
std::vector<ModelCase> model_cases();

// Returns the knobs of one model; aborts if there is none of this name.
Knobs model_knobs(const std::string& name);

// Returns the model with variations of the other knobs: all combinations of batch arrival, of
// waits, of allocators with launches and logs, and of offloading; then random mixtures by the seed.
// Combinations that plans refuse are included. Where steps take longer, only one combination of so
// many is returned, which depends on the seed.
std::vector<Knobs> ways_to_run(const Knobs& model, std::uint64_t seed);
constexpr int one_combination_in(ModelKind kind) {
  if (kind == ModelKind::resnet) return 11;
  return kind == ModelKind::transformer || kind == ModelKind::recommender ? 5 : 1;
}

// Every nth accepted combination is tested: all as released, and every eleventh under sanitizers,
// which make steps ten times slower. It is a prime, so that no knob always has the same value.
inline constexpr int one_way_in = sanitized ? 11 : 1;

// Returns all variations of memory that is allocated again when the batch size changes, with and
// without releases. The batch must have sizes.
std::vector<Knobs> ways_to_resize(const Knobs& model);

// Describes the knobs that ways_to_run varies, to identify a failing combination.
std::string describe(const Knobs&);

// Returns the plan of these knobs; nullopt where plans refuse them.
std::optional<StepPlan> accepted_plan(const Knobs&);

// Returns a step whose batches are copied on the side stream, and below the same with a third
// asynchronous stream. There the side stream copies to an intermediate buffer, from which the third
// stream copies to the model's input. Only events order the three streams.
StepPlan plan_over_the_side_stream();
StepPlan plan_over_three_streams();

}  // namespace stepgate
