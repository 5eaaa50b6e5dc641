// SPDX-License-Identifier: MIT
// Tests the promises of every device. The devices come from the program that this is linked into:
// device_contract_host.cpp or device_contract_cuda.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <regex>

#include "plan/analyse/find_races.h"
#include "plan/count/facts_of.h"
#include "plan/testing/counted.h"
#include "tests/contract/device_contract.h"
#include "tests/contract/expect_run.h"

namespace stepgate {
namespace {

class DeviceContract : public testing::TestWithParam<DeviceCase> {
 protected:
  const DeviceKind kind_ = GetParam().kind;
  const std::unique_ptr<Device> device_ = GetParam().make();
};

TEST_P(DeviceContract, SaysWhatKindItIs) {
  const DeviceIdentity identity = device_->identity();
  EXPECT_EQ(identity.kind, kind_);
  EXPECT_FALSE(identity.name.empty());
  EXPECT_LE(identity.free_memory_bytes, identity.memory_bytes);
}

TEST_P(DeviceContract, CountsItsStepsWithoutGapsAndEchoesThem) {
  for (const ModelCase& model : model_cases()) {
    SCOPED_TRACE(model.name);
    const StepPlan plan = plan_of(model.knobs);
    const auto step = device_->load(plan);
    std::int64_t next = 0;
    for (const Observe& observe :
         {Observe{0, 1, false}, {3, 2, false}, {0, 9, true}, {1, 1, false}, {5, 40, false}}) {
      const StepResult result = step->run(observe);
      EXPECT_EQ(result.first_step, next);
      EXPECT_EQ(result.steps, observe.steps);
      expect_losses(result, observe, kind_);
      expect_times(result, observe, plan.steps_in_flight);
      next += observe.wash_out_steps + observe.steps;
    }
  }
}

TEST_P(DeviceContract, ComputesTheSameInOnePieceAndInMany) {
  for (const ModelCase& model : model_cases()) {
    Knobs knobs = model.knobs;
    knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 3};
    knobs.loader = {.wait_us = 1, .depth = 2};
    knobs.log = {.every = 3, .via = LogVia::late_pinned};
    const StepPlan plan = plan_of(knobs);
    const std::vector<float> whole = run_in_pieces(*device_->load(plan), {{0, 40}});
    const std::vector<std::vector<Observe>> divisions = {
        {{0, 7}, {0, 33}},
        {{0, 1}, {0, 1}, {0, 1}, {0, 37}},
        {{10, 10}, {19, 1}},
        std::vector<Observe>(20, Observe{1, 1, false}),
    };
    for (const std::vector<Observe>& pieces : divisions) {
      SCOPED_TRACE(model.name + " in " + std::to_string(pieces.size()) + " pieces");
      EXPECT_EQ(bits_of(run_in_pieces(*device_->load(plan), pieces)), bits_of(whole));
    }
  }
}

TEST_P(DeviceContract, ComputesTheSameWithReadingsOfItsEnvironmentInBetween) {
  const StepPlan plan = plan_of(model_knobs("fp32_adamw"));
  const std::vector<float> whole = run_in_pieces(*device_->load(plan), {{0, 30}});
  const auto step = device_->load(plan);
  std::vector<float> losses;
  for (int piece = 0; piece < 3; ++piece) {
    const auto reading = device_->read_environment();
    // A device may return no environment, except on CUDA.
    EXPECT_TRUE(kind_ != DeviceKind::cuda || reading);
    const std::vector<float> more = run_in_pieces(*step, {{0, 10}});
    losses.insert(losses.end(), more.begin(), more.end());
  }
  EXPECT_EQ(bits_of(losses), bits_of(whole));
}

TEST_P(DeviceContract, LosesNoLossBeyondItsRing) {
  Knobs knobs = model_knobs("fp32_sgd");
  knobs.model.layers = 1;
  knobs.batch.size = 1;
  const StepPlan plan = plan_of(knobs);
  const std::int64_t capacity = plan.telemetry.capacity;
  const Observe whole{10, capacity + 90, false};
  const StepResult result = device_->load(plan)->run(whole);
  expect_losses(result, whole, kind_);
  expect_times(result, whole, plan.steps_in_flight);
  const std::vector<Observe> pieces = {
      {0, capacity / 2, false}, {0, capacity / 2 - 1, false}, {1, 100, false}};
  EXPECT_EQ(bits_of(run_in_pieces(*device_->load(plan), pieces)), bits_of(result.losses));
}

TEST_P(DeviceContract, LetsLoadedStepsTakeTurnsWithoutDisturbingEachOther) {
  std::vector<StepPlan> plans;
  for (const ModelCase& model : model_cases()) {
    Knobs knobs = model.knobs;
    knobs.transfer = {.host = HostMemory::pageable, .stream = CopyStream::legacy};
    knobs.alloc = {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = {}};
    plans.push_back(plan_of(knobs));
  }
  std::vector<std::unique_ptr<LoadedStep>> together;
  for (const StepPlan& plan : plans) together.push_back(device_->load(plan));
  std::vector<std::vector<float>> losses(plans.size());
  for (int turn = 0; turn < 5; ++turn) {
    for (std::size_t index = 0; index < plans.size(); ++index) {
      for (const float loss : together[index]->run({1, 2, false}).losses)
        losses[index].push_back(loss);
    }
  }
  for (std::size_t index = 0; index < plans.size(); ++index) {
    EXPECT_EQ(bits_of(losses[index]), bits_of(device_->load(plans[index])->run({0, 15}).losses));
  }
}

TEST_P(DeviceContract, RunsAPlanWithAThirdAsynchronousStream) {
  const StepPlan plan = plan_over_three_streams();
  ASSERT_EQ(find_race(plan), std::nullopt);
  const Observe whole{3, 37};
  const StepResult result = device_->load(plan)->run(whole);
  expect_losses(result, whole, kind_);
  expect_times(result, whole, plan.steps_in_flight);
  const StepPlan plain = plan_over_the_side_stream();
  EXPECT_EQ(bits_of(result.losses), bits_of(device_->load(plain)->run(whole).losses));
  EXPECT_EQ(bits_of(run_in_pieces(*device_->load(plan), {{0, 1}, {2, 3}, {0, 34}})),
            bits_of(result.losses));
  // Loads into the slot of a step with fewer streams, starting at a later step.
  (void)device_->load_into(0, plain)->run({0, 5});
  const auto drawn = device_->load_into(0, plan, {.first_step = 12, .loader = 77});
  EXPECT_EQ(bits_of(drawn->run(whole).losses), bits_of(result.losses));
}

// A later first step only changes which rare operations and batches come first. After whole
// periods, the training equals that of a load from step 0.
TEST_P(DeviceContract, BeginsWithTheStepThatALoadIsDealt) {
  for (const ModelCase& model : model_cases()) {
    SCOPED_TRACE(model.name);
    Knobs knobs = model.knobs;
    knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 3};
    knobs.loader = {.wait_us = 1, .jitter = 0.5, .depth = 2};
    knobs.log = {.every = 4, .via = LogVia::late_pinned};
    const StepPlan plan = plan_of(knobs);
    const std::vector<float> expected = run_in_pieces(*device_->load(plan), {{3, 20}});
    for (const std::int64_t first : {12, 12 * 1000}) {
      const auto step = device_->load_into(0, plan, {.first_step = first, .loader = 77});
      const StepResult result = step->run({3, 20});
      EXPECT_EQ(result.first_step, first);
      EXPECT_EQ(bits_of(result.losses), bits_of(expected));
      EXPECT_EQ(step->run({0, 1}).first_step, first + 23);
    }
  }
}

// Interleaved segments compute what each step computes alone, and only scored steps have times.
TEST_P(DeviceContract, RunsStepsInterleaved) {
  std::vector<StepPlan> plans;
  for (const ModelCase& model : model_cases()) {
    for (const LaunchVia via : {LaunchVia::stream, LaunchVia::graph}) {
      Knobs knobs = model.knobs;
      knobs.launch.via = via;
      knobs.host.step_us = 20;
      plans.push_back(plan_of(knobs));
      ASSERT_EQ(facts_of(plans.back()).against_interleaving, "");
    }
  }
  std::vector<std::unique_ptr<LoadedStep>> loaded;
  std::vector<LoadedStep*> steps;
  for (const StepPlan& plan : plans) {
    loaded.push_back(device_->load_into(static_cast<int>(loaded.size()), plan));
    steps.push_back(loaded.back().get());
  }
  constexpr std::int64_t cycles = 7;
  Interleaving how{.order = {}, .unscored = std::ssize(plans), .wash_out_steps = 1, .steps = 2};
  for (std::int64_t cycle = 0; cycle < cycles; ++cycle) {
    for (int index = 0; index < static_cast<int>(plans.size()); ++index)
      how.order.push_back((index + static_cast<int>(cycle)) % static_cast<int>(plans.size()));
  }
  const std::vector<StepResult> results = device_->run_interleaved(steps, how);
  ASSERT_EQ(results.size(), plans.size());
  for (std::size_t index = 0; index < plans.size(); ++index) {
    SCOPED_TRACE(plans[index].variant + std::to_string(index));
    const StepResult& result = results[index];
    EXPECT_EQ(result.first_step, 0);
    const Observe alone{0, 3 * cycles, false};
    expect_losses(result, alone, kind_);
    EXPECT_EQ(bits_of(result.losses), bits_of(device_->load(plans[index])->run(alone).losses));
    EXPECT_EQ(result.elapsed.has_value(), kind_ != DeviceKind::reference);
    if (!result.elapsed) continue;
    EXPECT_EQ(result.steps, 2 * (cycles - 1));
    EXPECT_EQ(std::ssize(result.step_times), result.steps);
    std::chrono::nanoseconds sum{0};
    for (const auto time : result.step_times) sum += time;
    EXPECT_EQ(sum, *result.elapsed);
    EXPECT_GE(*result.host_busy, result.steps * std::chrono::microseconds(20));
    EXPECT_GE(*result.host_processor, result.steps * std::chrono::microseconds(10));
    EXPECT_EQ(loaded[index]->run({0, 1}).first_step, 3 * cycles);
  }
}

// Larger, smaller and other plans take turns; remains of one must not affect the next.
TEST_P(DeviceContract, ComputesTheSameInASlotThatOthersHaveUsed) {
  Knobs large = model_knobs("fp32_sgd");
  large.batch.size *= 2;
  large.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 3};
  Knobs small = model_knobs("fp32_sgd");
  small.transfer = {.host = HostMemory::pin_each_step};
  Knobs offloading = model_knobs("fp32_sgd");
  offloading.memory.offload = Offload::activations;  // writes host memory
  std::vector<StepPlan> plans{plan_of(large), plan_of(small), plan_of(offloading)};
  for (const ModelCase& model : model_cases()) plans.push_back(plan_of(model.knobs));
  constexpr int slots = 2;
  std::vector<std::unique_ptr<LoadedStep>> loaded(slots);
  for (std::size_t turn = 0; turn < 2 * plans.size(); ++turn) {
    for (int slot = 0; slot < slots; ++slot) {
      auto& place = loaded[static_cast<std::size_t>(slot)];
      place.reset();
      const StepPlan& plan = plans[(turn + static_cast<std::size_t>(slot)) % plans.size()];
      place = device_->load_into(slot, plan);
      EXPECT_EQ(bits_of(place->run({1, 6, false}).losses),
                bits_of(device_->load(plan)->run({0, 7}).losses))
          << "turn " << turn << ", slot " << slot;
    }
  }
}

TEST_P(DeviceContract, CanUnloadAStepThatHasOnlyJustRunOrNeverRan) {
  for (const Allocator with : {Allocator::cuda, Allocator::cuda_async}) {
    Knobs knobs = model_knobs("fp32_sgd");
    knobs.transfer = {.host = HostMemory::pin_each_step, .stream = CopyStream::side, .buffers = 2};
    knobs.loader = {.wait_us = 1, .depth = 2, .workers = 2};
    knobs.log = {.every = 1, .via = LogVia::keep_on_device};
    knobs.alloc.with = with;
    const StepPlan plan = plan_of(knobs);
    (void)device_->load(plan);
    const StepResult first = device_->load(plan)->run({0, 5});
    EXPECT_EQ(bits_of(device_->load(plan)->run({0, 5}).losses), bits_of(first.losses));
  }
}

TEST_P(DeviceContract, ReadsTensorsBackOnlyWhenAsked) {
  for (const ModelCase& model : model_cases()) {
    SCOPED_TRACE(model.name);
    const StepPlan plan = plan_of(model.knobs);
    const auto step = device_->load(plan);
    EXPECT_TRUE(step->run({0, 1, false}).tensors.empty());
    const StepResult result = step->run({0, 1, true});
    if (kind_ == DeviceKind::simulated || plan.param_bytes == 0) {
      EXPECT_TRUE(result.tensors.empty());
      continue;
    }
    if (model.knobs.model.kind == ModelKind::chase) {  // it has a chain, which nothing changes
      ASSERT_EQ(result.tensors.size(), 1u);
      EXPECT_EQ(result.tensors[0].name, "chain");
      continue;
    }
    ASSERT_EQ(result.tensors.size(), 2u);
    EXPECT_EQ(result.tensors[0].name, "weights");
    EXPECT_EQ(result.tensors[1].name, "gradients");
    for (const Tensor& tensor : result.tensors) {
      EXPECT_EQ(std::ssize(tensor.values), plan.param_bytes / bytes_of(plan.dtype));
      double largest = 0;
      for (const float value : tensor.values) {
        ASSERT_TRUE(std::isfinite(value));
        largest = std::max(largest, std::abs(static_cast<double>(value)));
      }
      EXPECT_GT(largest, 0);
    }
  }
}

TEST_P(DeviceContract, RefusesAPlanThatIsTooLargeForItsMemory) {
  if (kind_ == DeviceKind::reference) return;  // its memory is the host's
  for (const bool comes_and_goes : {false, true}) {
    Knobs knobs = model_knobs("fp32_sgd");
    if (comes_and_goes) {
      knobs.batch.size = 1LL << 40;  // samples of 36 bytes, read from another allocation of as much
      knobs.alloc = {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = {}};
    } else {
      knobs.model.hidden = 1 << 20;
    }
    const StepPlan plan = plan_of(knobs);
    const double needed = counted(plan, Metric::peak_live).value() / (1024.0 * 1024.0);
    try {
      (void)device_->load(plan);
      FAIL() << "loaded " << needed << " MiB";
    } catch (const DeviceError& error) {
      const std::string text = error.what();
      std::smatch numbers;
      ASSERT_TRUE(std::regex_search(
          text, numbers, std::regex("needs (\\d+) MiB of device memory, but only (\\d+) ")))
          << text;
      EXPECT_NEAR(std::stod(numbers[1]), needed, 1) << text;
      const double memory = static_cast<double>(device_->identity().memory_bytes);
      EXPECT_GT(std::stod(numbers[2]), 0);
      EXPECT_LE(std::stod(numbers[2]), memory / (1024.0 * 1024.0) + 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, DeviceContract, testing::ValuesIn(device_cases()),
                         [](const auto& device) { return device.param.name; });

class DeviceContractOfModel : public testing::TestWithParam<std::tuple<DeviceCase, ModelCase>> {};

TEST_P(DeviceContractOfModel, ComputesTheSameLossesInEveryWayThatPlansAccept) {
  const auto& [device_case, model] = GetParam();
  const auto device = device_case.make();
  const StepPlan plain = plan_of(model.knobs);
  const std::vector<float> expected = device->load(plain)->run({0, 13}).losses;
  const std::uint64_t seed = std::random_device{}();
  int accepted = 0;
  for (const Knobs& knobs : ways_to_run(model.knobs, seed)) {
    const auto plan = accepted_plan(knobs);
    if (!plan) continue;
    if (++accepted % one_way_in != 0) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(knobs));
    const auto step = device->load(*plan);
    std::vector<float> losses;
    for (const Observe& observe : {Observe{2, 3, false}, {0, 8, false}}) {
      const StepResult result = step->run(observe);
      expect_losses(result, observe, device_case.kind);
      expect_times(result, observe, plan->steps_in_flight);
      losses.insert(losses.end(), result.losses.begin(), result.losses.end());
    }
    expect_same_losses(losses, expected, device_case.kind, knobs);
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 300 / one_combination_in(model.knobs.model.kind));
}

INSTANTIATE_TEST_SUITE_P(Every, DeviceContractOfModel,
                         testing::Combine(testing::ValuesIn(device_cases()),
                                          testing::ValuesIn(model_cases())),
                         [](const auto& both) {
                           return std::get<0>(both.param).name + "_" + std::get<1>(both.param).name;
                         });

}  // namespace
}  // namespace stepgate
