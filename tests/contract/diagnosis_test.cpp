// SPDX-License-Identifier: MIT
// Tests the mechanism of real plans on the simulated device: steps of a known class get this class,
// and a fault planted into a variant makes the run invalid.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "base/random.h"
#include "device/simulated/simulated_device.h"
#include "judge/mechanism/diagnose.h"
#include "measure/planned_subject.h"
#include "measure/trace/conformance.h"
#include "measure/trace/trace_metrics.h"
#include "measure/trace/trace_rounds.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

const std::filesystem::path source = STEPGATE_SOURCE_DIR;

Traced traced(std::span<const PlannedStep> plans, std::vector<PlantedFault> faults = {}) {
  const auto device =
      make_simulated_device(read_profile(source / "baselines/nvidia-h200/device.toml"),
                            {.seed = 1, .faults = std::move(faults)});
  return trace_rounds(*device, plans, {.rounds = 3, .max_seconds = 1e6, .seed = 1});
}

std::vector<PlannedStep> plans_of(const std::string& scenario) {
  return with_facts(
      build_step_plans(read_scenario(source / "scenarios" / (scenario + ".toml")), 1));
}

std::vector<PlannedStep> plans_of_text(const std::string& text) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "diagnosis_test.toml";
  std::ofstream(file) << text;
  return with_facts(build_step_plans(read_scenario(file), 1));
}

Mechanism mechanism_of_plans(const std::vector<PlannedStep>& plans) {
  const PairToExplain first_and_last{.other = plans.size() - 1};
  return mechanism_of(subjects_of(plans), traced(plans), {}, {&first_and_last, 1});
}

VariantMechanism of_variant(const Mechanism& mechanism, const std::string& name) {
  for (const VariantMechanism& variant : mechanism.variants) {
    if (variant.variant == name) return variant;
  }
  ADD_FAILURE() << "no variant " << name;
  return {};
}

std::string name_of_bound(const std::vector<PlannedStep>& plans, const std::string& variant) {
  const std::string diagnosis = of_variant(mechanism_of_plans(plans), variant).diagnosis;
  return diagnosis.substr(0, diagnosis.find(':'));
}

TEST(Diagnosis, NamesTheClassOfStepsThatWereBuiltToBeOfIt) {
  EXPECT_EQ(name_of_bound(plans_of("sync_every_step"), "baseline"), "sync-bound");
  EXPECT_EQ(name_of_bound(plans_of("input_path"), "baseline"), "copy-bound");
  EXPECT_EQ(name_of_bound(plans_of("zero_gradients"), "baseline"), "memory-bound");
  EXPECT_EQ(name_of_bound(plans_of("graph_launch"), "baseline"), "launch-bound");
  EXPECT_EQ(name_of_bound(plans_of("loader_starvation"), "baseline"), "data-bound");
  const std::vector<PlannedStep> big = plans_of_text(
      "claim = \"big gemms\"\nmodel = { layers = 4, hidden = 4096 }\nbatch.size = 4096\n"
      "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n");
  EXPECT_EQ(name_of_bound(big, "only"), "compute-bound");
}

TEST(Diagnosis, LeavesNothingOfTheMistakeInTheFix) {
  EXPECT_EQ(name_of_bound(plans_of("input_path"), "fix"), "compute-bound");
  EXPECT_EQ(name_of_bound(plans_of("loader_starvation"), "fix"), "compute-bound");
  EXPECT_NE(name_of_bound(plans_of("sync_every_step"), "fix"), "sync-bound");
  EXPECT_NE(name_of_bound(plans_of("graph_launch"), "fix"), "launch-bound");
}

TEST(Diagnosis, NamesTheMechanismThatSeparatesTwoVariantsAndItsPhase) {
  const auto starts_with = [](const std::vector<PlannedStep>& plans, std::string_view words) {
    const std::string summary = mechanism_of_plans(plans).separations.back().summary;
    return summary.starts_with(words) ? testing::AssertionSuccess()
                                      : testing::AssertionFailure() << summary;
  };
  EXPECT_TRUE(starts_with(plans_of("sync_every_step"),
                          "baseline waits for the device 1x a step (sync) and leaves it idle"));
  EXPECT_TRUE(starts_with(plans_of("read_loss_every_step"),
                          "baseline waits for the device 1x a step (log) and leaves it idle"));
  EXPECT_TRUE(starts_with(plans_of("zero_gradients"),
                          "baseline fills 256.1 MiB a step with zeros (backward) and spends"));
  EXPECT_TRUE(starts_with(plans_of("small_copies"), "baseline copies 500x a step (h2d)"));
  EXPECT_TRUE(starts_with(plans_of("loader_starvation"), "baseline leaves the device idle"));
  EXPECT_TRUE(starts_with(plans_of("graph_launch"), "baseline launches 50x a step and leaves"));
}

TEST(Diagnosis, DoesNotBlameDeviceMemoryForAChaseThroughACache) {
  const std::vector<PlannedStep> plans = plans_of("memory_levels");
  for (const char* variant : {"l1", "l2", "memory"})
    EXPECT_EQ(name_of_bound(plans, variant), "latency-bound") << variant;
}

// Returns knobs with random values. Plans refuse few of them.
Knobs random_knobs(Random& random) {
  const auto chance = [&](double share) { return random.uniform() < share; };
  const auto between = [&](double low, double high) {
    return std::exp(std::log(low) + random.uniform() * std::log(high / low));
  };
  const auto below = [&](std::uint64_t count) {
    return static_cast<std::int64_t>(random.below(count));
  };
  Knobs knobs;
  knobs.model = {.kind = ModelKind::spin,
                 .kernels = 1 + below(12),
                 .kernel_us = static_cast<std::int64_t>(between(3, 3000))};
  if (chance(0.3)) {
    knobs.model = {.kind = ModelKind::mlp, .layers = 1 + below(6), .hidden = 256 << below(4)};
    knobs.batch.size = 64 << below(4);
  }
  const double step_us = between(20, 10'000);
  knobs.batch.sample_bytes = 64 << below(12);
  knobs.transfer.host = chance(0.3) ? HostMemory::pageable : HostMemory::pinned;
  if (chance(0.3)) {
    knobs.transfer = {
        .host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2 + below(2)};
  }
  if (chance(0.5)) {
    knobs.sync = {.where = chance(0.7) ? SyncWhere::step : SyncWhere::phase,
                  .how = chance(0.5) ? SyncHow::device : SyncHow::stream,
                  .every = chance(0.7) ? 1 : 1 + below(9)};
  }
  if (chance(0.5)) knobs.host.step_us = step_us * random.uniform();
  if (chance(0.3)) knobs.host.launch_us = 30 * random.uniform();
  if (chance(0.4)) {
    knobs.loader = {
        .wait_us = step_us * random.uniform(), .depth = below(4), .workers = 1 + below(3)};
    if (knobs.loader.depth > 0 && chance(0.5)) {
      knobs.loader.restart_every = 10 << below(5);
      knobs.loader.start_us = 10 * step_us * random.uniform();
    }
  }
  if (chance(0.2)) knobs.log = {.every = 2 + below(8), .via = LogVia::item};
  return knobs;
}

// Returns the idle share of the device between the first work of two distant steps.
double idle_share(const Trace& trace, std::int64_t first, std::int64_t last) {
  const auto begin_of = [&](std::int64_t step) {
    std::int64_t begin = std::numeric_limits<std::int64_t>::max();
    for (const DeviceWork& work : trace.work) {
      if (work.kind == WorkKind::kernel && work.step == trace.first_step + step)
        begin = std::min(begin, work.begin.count());
    }
    return begin;
  };
  const std::int64_t from = begin_of(first);
  const std::int64_t to = begin_of(last);
  std::int64_t idle = 0;
  std::int64_t busy_until = from;
  for (const DeviceWork& work : trace.work) {
    if (work.begin.count() > busy_until && busy_until < to)
      idle += std::min(work.begin.count(), to) - busy_until;
    busy_until = std::max(busy_until, work.end.count());
  }
  return static_cast<double>(idle) / static_cast<double>(to - from);
}

// Distance of the class from the next one, in shares of the step.
double margin_of_class(const TimeBreakdown& time) {
  std::vector<double> parts{share_that_binds * time.step, time.idle_for_data, time.copies,
                            time.communication, time.idle_for_host + time.idle_after_wait};
  std::ranges::sort(parts, std::greater<>());
  return (parts[0] - parts[1]) / time.step;
}

// A few traced steps give the same class as many of them.
TEST(Diagnosis, OfRandomStepsIsThatOfManyStepsOfThem) {
  constexpr int wanted = 200;
  constexpr std::int64_t many = 160;  // whole periods of the loader's
  constexpr std::int64_t enough_to_settle = 160;
  Random random(2026);
  int tried = 0;
  int clear = 0;
  while (tried < wanted) {
    Scenario scenario;
    scenario.name = "random";
    scenario.variants.push_back({"only", random_knobs(random), {}});
    std::vector<PlannedStep> plans;
    try {
      plans = with_facts(build_step_plans(scenario, 1));
    } catch (const RequestError&) {
      continue;
    }
    ++tried;
    const auto device = make_simulated_device(
        read_profile(source / "baselines/nvidia-h200/device.toml"), {.seed = 1});
    const Traced few = trace_rounds(*device, plans, {.rounds = 5, .enough_rounds = 5, .seed = 1});
    const VariantMechanism seen = mechanism_of(subjects_of(plans), few, {}, {}).variants.front();
    const auto step = device->load(plans.front());
    Trace trace =
        *step->run({.wash_out_steps = enough_to_settle, .steps = many + 8, .trace = true}).trace;
    const double truth = idle_share(trace, 4, many + 4);
    trace.closing_steps = 8;
    const TimeBreakdown whole = summary_of(trace, plans.front()).time;
    EXPECT_NEAR(seen.values.at(Metric::gpu_idle), truth, 0.02) << "of step " << tried;
    if (margin_of_class(whole) < 0.02) continue;
    ++clear;
    EXPECT_EQ(seen.bound_class, class_of(whole)) << "of step " << tried;
  }
  EXPECT_GT(clear, wanted / 2);
}

TEST(Conformance, FindsAPlantedWaitAndSaysWithWhichNumbers) {
  const std::vector<PlannedStep> plans = plans_of("sync_every_step");
  EXPECT_EQ(reason_against_conformance(plans, traced(plans)), std::nullopt);
  const Traced faulty = traced(plans, {{"fix", InjectionKind::extra_wait}});
  const std::string reason = reason_against_conformance(plans, faulty).value_or("");
  EXPECT_EQ(reason.find("the trace of 'fix' is not its plan: host_waits_per_step is 1 in traced "
                        "round 1 and 0 by the plan"),
            0U)
      << reason;
}

}  // namespace
}  // namespace stepgate
