// SPDX-License-Identifier: MIT
// Parts that the tests of the device contract share: the devices under test and the steps that are
// run on them. Each test program names its devices for itself. device_contract_test.cpp tests the
// promises.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "plan/step_plan.h"
#include "scenario/scenario.h"
#include "tests/sanitized.h"

namespace stepgate {

struct DeviceCase {
  std::string name;
  DeviceKind kind = DeviceKind::reference;
  std::unique_ptr<Device> (*make)() = nullptr;  // throws where there is no such device
};

// One definition a test program.
std::vector<DeviceCase> device_cases();

// Knobs under which every way to run the step computes the same numbers.
struct ModelCase {
  std::string name;
  Knobs knobs;
};

// For GoogleTest's messages.
void PrintTo(const DeviceCase&, std::ostream*);
void PrintTo(const ModelCase&, std::ostream*);

// Tiny models: spinning kernels, and mlps of every dtype and optimizer.
std::vector<ModelCase> model_cases();

// One of them; aborts if there is none.
Knobs model_knobs(const std::string& name);

// The model in every way that the other knobs allow: the full product of the ways in which a batch
// arrives, of waits, of allocators with launches and logs, and of what is offloaded; then mixes of
// everything from the seed. Ways that plans refuse are among them. Of a transformer and of a
// recommender, whose steps take longer, a fifth of the GEMMs, another one from seed to seed.
std::vector<Knobs> ways_to_run(const Knobs& model, std::uint64_t seed);

// One in so many of the ways that a plan accepts is tried: all of them as released, and every
// eleventh under the sanitizers, which make a step ten times as long. A prime, so that no knob
// always has the same value.
inline constexpr int one_way_in = sanitized ? 11 : 1;

// Memory that is made anew at a change of the batch's size, of all that can and with and without
// releases. The batch must have sizes.
std::vector<Knobs> ways_to_resize(const Knobs& model);

// The knobs that ways_to_run turns, as numbers, to find a failing way again.
std::string describe(const Knobs&);

// Nothing where plans refuse the knobs.
std::optional<StepPlan> accepted_plan(const Knobs&);

// Aborts where plans refuse the knobs.
StepPlan plan_of(const Knobs&);

// A step whose batches are copied over the side stream, and the same with a third asynchronous
// stream: the side stream copies to memory in between, from which the third one copies to where the
// model reads. Nothing but events orders the three.
StepPlan plan_over_the_side_stream();
StepPlan plan_over_three_streams();

}  // namespace stepgate
