// SPDX-License-Identifier: MIT
// Tests how many steps are traced, how often and in which state, on a simulated device.
#include "measure/trace/trace_rounds.h"

#include <gtest/gtest.h>

#include <set>

#include "device/simulated/simulated_device.h"
#include "measure/testing/fake_device.h"
#include "plan/compose/build_step_plan.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

std::unique_ptr<Device> simulated(std::uint64_t seed) {
  const std::filesystem::path source = STEPGATE_SOURCE_DIR;
  return make_simulated_device(read_profile(source / "baselines/nvidia-h200/device.toml"),
                               {.seed = seed});
}

std::vector<PlannedStep> plans_with_periods(const std::vector<std::int64_t>& periods) {
  std::vector<StepPlan> plans = plans_named({"only"});
  for (const std::int64_t every : periods) {
    plans.front().operations.push_back({.name = "work", .action = HostWork{1000}, .every = every});
  }
  return with_facts(std::move(plans));
}

std::vector<PlannedStep> spinning_and_waiting() {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::spin, .kernels = 4, .kernel_us = 20};
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({"plain", knobs, {}});
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device, .every = 3};
  scenario.variants.push_back({"waiting", knobs, {}});
  return with_facts(build_step_plans(scenario, 1));
}

// Returns one variant for each kernel duration in `microseconds`.
std::vector<PlannedStep> spinning_for(const std::vector<int>& microseconds) {
  Scenario scenario;
  scenario.name = "by_hand";
  for (const int kernel_us : microseconds) {
    Knobs knobs;
    knobs.transfer.host = HostMemory::resident;
    knobs.model = {.kind = ModelKind::spin, .kernels = 1, .kernel_us = kernel_us};
    scenario.variants.push_back({std::to_string(kernel_us), knobs, {}});
  }
  return with_facts(build_step_plans(scenario, 1));
}

// A device whose clock advances by one second at each reading.
class SteppedDevice : public Device {
 public:
  explicit SteppedDevice(std::uint64_t seed) : device_(simulated(seed)) {}

  DeviceIdentity identity() const override { return device_->identity(); }
  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    ++loads;
    return device_->load(plan, draw);
  }
  std::string reason_against_tracing() const override { return {}; }
  nanoseconds now() const override { return now_ += seconds(1); }

  std::int64_t loads = 0;

 private:
  std::unique_ptr<Device> device_;
  mutable nanoseconds now_{0};
};

TEST(TraceRounds, TracesTheFewestStepsThatEveryPeriodDivides) {
  EXPECT_EQ(traced_steps(plans_with_periods({}), nanoseconds(1000)), 20);
  EXPECT_EQ(traced_steps(plans_with_periods({1, 4, 10}), nanoseconds(1000)), 20);
  EXPECT_EQ(traced_steps(plans_with_periods({3}), nanoseconds(1000)), 21);
  EXPECT_EQ(traced_steps(plans_with_periods({50}), nanoseconds(1000)), 50);
  EXPECT_EQ(traced_steps(plans_with_periods({6, 50}), nanoseconds(1000)), 150);
  EXPECT_EQ(traced_steps(plans_with_periods({200}), nanoseconds(1000)), 200);
}

TEST(TraceRounds, DoesNotWaitForWhatHappensTooRarely) {
  EXPECT_EQ(traced_steps(plans_with_periods({3, 1'000'000}), nanoseconds(1000)), 21);
  EXPECT_EQ(traced_steps(plans_with_periods({7, 101}), nanoseconds(1000)), 21);
  EXPECT_EQ(traced_steps(plans_with_periods({201}), nanoseconds(1000)), 20);
}

TEST(TraceRounds, TracesWholePeriodsOfWhatIsNoOperation) {
  std::vector<StepPlan> plans = plans_named({"only"});
  plans.front().loader = {.depth = 2, .restart_every = 80};
  EXPECT_EQ(traced_steps(with_facts(plans), nanoseconds(1000)), 80);
}

TEST(TraceRounds, TracesFewerOfLongSteps) {
  EXPECT_EQ(traced_steps(plans_with_periods({}), std::chrono::milliseconds(1)), 10);
  EXPECT_EQ(traced_steps(plans_with_periods({}), seconds(1)), 4);
  EXPECT_EQ(traced_steps(plans_with_periods({}), nanoseconds(1000), 2), 10);
  EXPECT_EQ(traced_steps(plans_with_periods({}), std::chrono::milliseconds(1), 2), 5);
  EXPECT_EQ(traced_steps(plans_with_periods({}), std::chrono::milliseconds(4), 2), 2);
  EXPECT_EQ(traced_steps(plans_with_periods({}), seconds(1), 2), 2);
  EXPECT_EQ(traced_steps(plans_with_periods({10}), seconds(1)), 10);
}

TEST(TraceRounds, KnowsEveryVariantOfEveryRound) {
  const std::vector<PlannedStep> plans = spinning_and_waiting();
  const auto device = simulated(3);
  const Traced traced = trace_rounds(*device, plans, {.rounds = 3, .seed = 5});
  EXPECT_EQ(traced.unavailable, "");
  EXPECT_EQ(traced.steps, 12);
  ASSERT_EQ(traced.rounds.size(), 3u);
  for (const TracedRound& round : traced.rounds) {
    ASSERT_EQ(round.variants.size(), 2u);
    EXPECT_EQ(round.variants[0].values.at(Metric::host_waits_per_step), 0);
    EXPECT_EQ(round.variants[1].values.at(Metric::host_waits_per_step), 1.0 / 3);
  }
  ASSERT_EQ(traced.timelines.size(), 2u);
  for (const auto& ranks : traced.timelines) EXPECT_EQ(ranks.front().steps, 12);
  for (const auto& ranks : traced.timelines) EXPECT_EQ(ranks.front().closing_steps, 0);
}

// With long kernels, the device is never idle in a steady step, even if the queue was empty at the
// start.
TEST(TraceRounds, KeepsNoTimelinesThatTakeTooMuchMemory) {
  const std::vector<PlannedStep> plans = spinning_and_waiting();
  const auto traced_with = [&](std::int64_t bytes) {
    return trace_rounds(*simulated(3), plans, {.rounds = 2, .timeline_bytes = bytes, .seed = 5});
  };
  const Traced all = traced_with(most_timeline_bytes);
  EXPECT_EQ(all.not_drawn, "");
  ASSERT_EQ(all.timelines.size(), 2u);
  const std::int64_t first = bytes_kept(all.timelines[0].front());
  const std::int64_t both = first + bytes_kept(all.timelines[1].front());
  EXPECT_EQ(traced_with(both).timelines.size(), 2u);
  for (const std::int64_t bytes : {both - 1, std::int64_t{1}}) {
    const Traced none = traced_with(bytes);
    EXPECT_TRUE(none.timelines.empty());
    EXPECT_EQ(none.rounds.size(), 2u);
    EXPECT_EQ(none.rounds[1].variants[0].values, all.rounds[1].variants[0].values);
    EXPECT_EQ(none.not_drawn.substr(0, 48), "no timelines are kept: the traces of 2 variants ");
  }
}

TEST(TraceRounds, TracesSteadySteps) {
  const std::vector<PlannedStep> plans = spinning_and_waiting();
  const auto device = simulated(3);
  const Traced traced = trace_rounds(*device, plans, {});
  const Trace& plain = traced.timelines.front().front();
  EXPECT_GE(plain.first_step, plans.front()->steps_in_flight);
  const TimeBreakdown& spinning = traced.rounds.front().variants[0].time;
  const TimeBreakdown& waiting = traced.rounds.front().variants[1].time;
  EXPECT_LT(spinning.idle_for_host, 0.001 * spinning.step);
  EXPECT_GT(waiting.idle_after_wait, 0.01 * waiting.step);
}

// A kernel takes 6 ms, and the host 3 ms after the wait for it. So the device is idle a third of
// the time, however few steps are traced.
TEST(TraceRounds, SeesAPauseForEveryStepAtEveryLengthOfAStep) {
  for (const int microseconds : {20, 200, 2000, 6000, 40'000}) {
    Knobs knobs;
    knobs.transfer.host = HostMemory::resident;
    knobs.model = {.kind = ModelKind::spin, .kernels = 1, .kernel_us = 2 * microseconds};
    knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device};
    knobs.host.step_us = microseconds;
    Scenario scenario;
    scenario.name = "by_hand";
    scenario.variants.push_back({"pausing", knobs, {}});
    const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, 1));
    const auto device = simulated(3);
    const TracedStep step = trace_rounds(*device, plans, {}).rounds.front().variants.front();
    const double overhead = 25e-6;  // approximate time of a wait and a launch
    EXPECT_NEAR(step.values.at(Metric::gpu_idle), 1 / 3.0, 0.001 + overhead / step.time.step)
        << microseconds;
  }
}

// A loader that makes a batch in 80 us, for steps of 100 us, is 8 batches ahead only after 40
// steps.
TEST(TraceRounds, WaitsForALoaderThatIsHardlyFasterThanTheSteps) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::spin, .kernels = 1, .kernel_us = 100};
  knobs.loader = {.wait_us = 80, .jitter = 0, .depth = 2, .workers = 1};
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({"fed", knobs, {}});
  const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, 1));
  const auto device = simulated(3);
  const Traced traced = trace_rounds(*device, plans, {});
  EXPECT_LT(traced.rounds.front().variants[0].values.at(Metric::data_share), 0.01);
}

std::int64_t loads_of(bool tells_driver_used, std::int64_t rounds) {
  SteppedDevice device(3);
  const Traced traced = trace_rounds(device, spinning_and_waiting(),
                                     {.rounds = rounds, .tells_driver_used = tells_driver_used});
  for (std::size_t round = 0; round < traced.rounds.size(); ++round) {
    for (const TracedStep& step : traced.rounds[round].variants)
      EXPECT_EQ(step.values.contains(Metric::driver_used), tells_driver_used || round > 0);
  }
  return device.loads;
}

// Where driver_used is not needed, the step time needs no separate load.
TEST(TraceRounds, LoadsNothingForTheTimeOfAStepAlone) {
  EXPECT_EQ(loads_of(true, 3), 2 * (1 + 3));
  EXPECT_EQ(loads_of(false, 3), 2 * 3);
}

// The longest step time determines the number of steps as soon as it is known.
TEST(TraceRounds, TracesAsManyStepsOfAllVariants) {
  const std::vector<PlannedStep> plans = spinning_for({20, 6000});
  const auto device = simulated(3);
  const Traced traced = trace_rounds(*device, plans, {.rounds = 2, .tells_driver_used = false});
  for (const auto& ranks : traced.timelines) EXPECT_EQ(ranks.front().steps, 2);
  EXPECT_EQ(traced.steps, 2);
}

std::size_t rounds_made(const TraceRequest& request) {
  SteppedDevice device(3);
  return trace_rounds(device, spinning_and_waiting(), request).rounds.size();
}

TEST(TraceRounds, BeginsNoRoundWhenTheTimeIsUpButAlwaysTheFirst) {
  EXPECT_EQ(rounds_made({.rounds = 100, .max_seconds = 0}), 1u);
  EXPECT_EQ(rounds_made({.rounds = 100, .max_seconds = 4.5}), 5u);
}

TEST(TraceRounds, LacksNoRoundForALittleTime) {
  const auto rounds_for = [](std::int64_t enough) {
    return rounds_made({.rounds = 100, .enough_rounds = enough, .max_seconds = 2.5});
  };
  EXPECT_EQ(rounds_for(1), 3u);
  EXPECT_EQ(rounds_for(7), 7u);
  EXPECT_EQ(rounds_for(50), 13u);
}

TEST(TraceRounds, EndsWhenNothingIsOpen) {
  const auto rounds_when = [](std::int64_t closed_after) {
    TraceRequest request{.rounds = 12, .enough_rounds = 5};
    request.nothing_open = [=](const Traced& traced) {
      return std::ssize(traced.rounds) >= closed_after;
    };
    return rounds_made(request);
  };
  EXPECT_EQ(rounds_when(0), 1u);
  EXPECT_EQ(rounds_when(8), 8u);
  EXPECT_EQ(rounds_when(100), 12u);
}

TEST(TraceRounds, SaysWhyThereIsNoTrace) {
  Script script;
  FakeDevice device(script);
  const Traced traced = trace_rounds(device, steps_named({"a", "b"}), {});
  EXPECT_EQ(traced.unavailable, "this device records nothing");
  EXPECT_TRUE(traced.rounds.empty());
  EXPECT_TRUE(script.runs.empty());
}

class ForgetfulDevice : public FakeDevice {
 public:
  using FakeDevice::FakeDevice;
  std::string reason_against_tracing() const override { return {}; }
};

TEST(TraceRounds, BelievesNoDeviceThatPromisesATraceAndHasNone) {
  Script script;
  ForgetfulDevice device(script);
  const Traced traced = trace_rounds(device, steps_named({"a"}), {});
  EXPECT_EQ(traced.unavailable, "the device recorded no trace of variant 'a'");
  EXPECT_TRUE(traced.rounds.empty());
  EXPECT_TRUE(traced.timelines.empty());
}

// Keeps memory after unloading, so that the slots that it is asked for show.
class PlacingDevice : public ForgetfulDevice {
 public:
  using ForgetfulDevice::ForgetfulDevice;
  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    ADD_FAILURE() << "loaded into memory that does not stay";
    return ForgetfulDevice::load(plan, draw);
  }
  std::unique_ptr<LoadedStep> load_into(int slot, const StepPlan& plan,
                                        const LoadDraw& draw) override {
    slots.insert(slot);
    return std::make_unique<TracingStep>(ForgetfulDevice::load(plan, draw));
  }

  std::set<int> slots;

 private:
  class TracingStep : public LoadedStep {
   public:
    explicit TracingStep(std::unique_ptr<LoadedStep> step) : step_(std::move(step)) {}
    StepResult run(const Observe& observe) override {
      StepResult result = step_->run(observe);
      if (observe.trace) result.trace.emplace().steps = observe.steps;
      return result;
    }

   private:
    std::unique_ptr<LoadedStep> step_;
  };
};

TEST(TraceRounds, LoadsAllVariantsOfAllRoundsIntoOnePlace) {
  Script script;
  PlacingDevice device(script);
  const Traced traced = trace_rounds(device, steps_named({"a", "b", "c"}), {.rounds = 3});
  EXPECT_EQ(traced.rounds.size(), 3u);
  EXPECT_EQ(device.slots.size(), 1u);
}

// The plan has a wait for the device that the fake device does not make.
TEST(TraceRounds, SaysWhereATraceIsNotThatOfItsPlan) {
  Script script;
  PlacingDevice device(script);
  std::vector<StepPlan> plans = plans_named({"a"});
  EXPECT_EQ(trace_rounds(device, with_facts(plans), {}).not_as_planned, "");
  plans[0].operations.push_back({.name = "wait", .action = HostWaits{}});
  EXPECT_EQ(trace_rounds(device, with_facts(plans), {}).not_as_planned,
            "the trace of 'a' is not its plan: host_waits_per_step is 0 in traced round 1 and 1 by "
            "the plan; in 'wait' the timeline has 0 a step, the plan 1; 1 more such difference");
}

// A simulated device that, if asked to, runs the first kernel of each trace on a stream of its own.
class StrayingDevice : public Device {
 public:
  explicit StrayingDevice(bool strays) : device_(simulated(1)), strays_(strays) {}

  DeviceIdentity identity() const override { return device_->identity(); }
  std::string reason_against_tracing() const override { return {}; }
  nanoseconds now() const override { return device_->now(); }
  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    return std::make_unique<StrayingStep>(device_->load(plan, draw), strays_);
  }

 private:
  class StrayingStep : public LoadedStep {
   public:
    StrayingStep(std::unique_ptr<LoadedStep> step, bool strays)
        : step_(std::move(step)), strays_(strays) {}
    StepResult run(const Observe& observe) override {
      StepResult result = step_->run(observe);
      if (!result.trace || !strays_) return result;
      for (DeviceWork& work : result.trace->work) {
        if (work.kind == WorkKind::kernel && work.step == result.trace->first_step)
          return work.stream = 99, result;
      }
      return result;
    }

   private:
    std::unique_ptr<LoadedStep> step_;
    bool strays_;
  };

  std::unique_ptr<Device> device_;
  bool strays_;
};

TEST(TraceRounds, FindsAKernelOnAnotherStreamThanThePlans) {
  Knobs knobs;
  knobs.model.layers = 2;
  knobs.model.hidden = 32;
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::memcpy};
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({"three streams", knobs, {}});
  const auto plans = with_facts(build_step_plans(scenario, 1));
  StrayingDevice honest(false);
  EXPECT_EQ(trace_rounds(honest, plans, {}).not_as_planned, "");
  StrayingDevice straying(true);
  const std::string reason = trace_rounds(straying, plans, {}).not_as_planned;
  EXPECT_NE(reason.find("ran on another stream than the plan's 'compute', in traced round 1"),
            std::string::npos)
      << reason;
}

TEST(TraceRounds, RunsTheVariantsInAnOrderOfTheSeed) {
  const auto last_of = [](std::uint64_t seed) {
    Script script;
    script.step_time = [](const std::string&, std::int64_t) { return nanoseconds(1000); };
    ForgetfulDevice device(script);
    (void)trace_rounds(device, steps_named({"a", "b", "c"}), {.seed = seed});
    return script.runs.back().first;
  };
  std::set<std::string> lasts;
  for (std::uint64_t seed = 0; seed < 40; ++seed) lasts.insert(last_of(seed));
  EXPECT_EQ(lasts.size(), 3u);
  EXPECT_EQ(last_of(7), last_of(7));
}

}  // namespace
}  // namespace stepgate
