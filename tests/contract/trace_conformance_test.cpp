// SPDX-License-Identifier: MIT
// Tests that a plan and its trace have the same counts, for every scenario and variant of the suite
// and for every variation of a step. The device is simulated; planted faults show that the
// comparison can fail.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "device/simulated/simulated_device.h"
#include "measure/trace/conformance.h"
#include "measure/trace/trace_metrics.h"
#include "measure/trace/trace_rounds.h"
#include "plan/allocate/run_allocator.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

const std::filesystem::path source = STEPGATE_SOURCE_DIR;

std::unique_ptr<Device> simulated(SimulatedSettings settings) {
  return make_simulated_device(read_profile(source / "baselines/nvidia-h200/device.toml"),
                               std::move(settings));
}

std::vector<std::filesystem::path> files_of_the_suite() {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"scenarios", "scenarios/ranks"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source / folder)) {
      if (entry.path().extension() == ".toml") files.push_back(entry.path());
    }
  }
  return files;
}

Traced traced(Device& device, std::span<const PlannedStep> plans) {
  return trace_rounds(device, plans, {});
}

// Returns the number of metrics that both plan and trace count, and expects equal values.
int compare(const PlannedStep& plan, const TracedStep& step) {
  int compared = 0;
  for (const auto& [metric, value] : step.values) {
    const auto expected = plan.facts().count(metric);
    if (!expected) continue;
    ++compared;
    if (plan.facts().may_differ.contains(metric)) continue;
    EXPECT_NEAR(value, *expected, 1e-9 * std::abs(*expected)) << row_of(metric).name;
  }
  return compared;
}

TEST(TraceConformance, PassesForEveryVariantOfTheSuite) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  int variants = 0;
  for (const std::filesystem::path& file : files_of_the_suite()) {
    const Scenario scenario = read_scenario(file);
    if (is_planned_only(scenario)) continue;
    const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, seed));
    const auto device = simulated({.seed = seed});
    const Traced result = traced(*device, plans);
    ASSERT_EQ(result.rounds.size(), 1u);
    for (std::size_t index = 0; index < plans.size(); ++index) {
      SCOPED_TRACE(file.stem().string() + ", " + plans[index]->variant);
      EXPECT_GE(compare(plans[index], result.rounds.front().variants[index]), 11);
      ++variants;
    }
  }
  EXPECT_GT(variants, 20);
}

TEST(TraceConformance, PassesInEveryWayToRunAStep) {
  const std::uint64_t seed = std::random_device{}();
  int accepted = 0;
  for (const ModelCase& model : model_cases()) {
    for (const Knobs& knobs : ways_to_run(model.knobs, seed)) {
      const auto plan = accepted_plan(knobs);
      if (!plan) continue;
      if (++accepted % one_way_in != 0) continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(knobs));
      const PlannedStep step = with_facts(*plan);
      const auto device = simulated({.seed = seed});
      const Traced result = traced(*device, {&step, 1});
      EXPECT_GE(compare(step, result.rounds.front().variants.front()), 11);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(TraceConformance, PassesWhereMemoryIsMadeAnewAtAChangeOfSize) {
  Knobs knobs = model_knobs("fp32_sgd");
  knobs.batch.sizes = {64, 64, 16, 64, 32};
  for (const Knobs& way : ways_to_resize(knobs)) {
    SCOPED_TRACE(describe(way));
    const PlannedStep plan = with_facts(plan_of(way));
    const auto device = simulated({.seed = 1});
    const Traced result = traced(*device, {&plan, 1});
    EXPECT_GE(compare(plan, result.rounds.front().variants.front()), 11);
  }
}

// No trace is as long as 210 steps, so it does not tell how often an emptied cache is filled.
TEST(TraceConformance, DoesNotCompareWhatFollowsWorkThatATraceMayMiss) {
  Knobs knobs = model_knobs("fp32_sgd");
  knobs.model.hidden = 256;
  knobs.batch.size = 512;
  knobs.alloc.with = Allocator::expandable;
  knobs.alloc.when = AllocWhen::step;
  knobs.alloc.empty_cache_every = 70;
  knobs.eval = {.every = 3, .batches = 8, .store = EvalStore::device};
  const PlannedStep plan = with_facts(plan_of(knobs));
  ASSERT_GT(plan.facts().count(Metric::device_allocs_per_step), 0);
  const auto device = simulated({.seed = 1});
  EXPECT_EQ(reason_against_conformance({&plan, 1}, traced(*device, {&plan, 1})), std::nullopt);
}

// Long steps are traced soon after their start, when an allocator's cache may still grow.
TEST(TraceConformance, PassesWhereAnAllocatorSettlesAfterItsFirstSteps) {
  for (const char* profile :
       {"baselines/nvidia-h200", "tests/profiles/l4", "tests/profiles/a100"}) {
    for (const std::int64_t layers : {6, 10, 16}) {
      const std::string text = fmt::format(
          "claim = \"gathered weights in a cache\"\n"
          "model = {{ kind = \"transformer\", layers = {}, hidden = 1024, seq = 256, dtype = "
          "\"bf16\" }}\nbatch.size = 8\noptim.kind = \"adamw\"\n"
          "ranks = {{ count = 2, shard = \"parameters\" }}\n"
          "alloc = {{ with = \"caching\", when = \"op\" }}\n"
          "[variant.a]\n[expect]\nnone = \"a.device_allocs_per_step == 0\"\n",
          layers);
      const std::vector<PlannedStep> plans =
          with_facts(build_step_plans(parse_scenario(text, "a.toml"), 1));
      ASSERT_FALSE(plans.front().facts().may_differ.contains(Metric::device_allocs_per_step));
      const auto device = make_simulated_device(read_profile(source / profile / "device.toml"), {});
      SCOPED_TRACE(fmt::format("{} layers on {}", layers, profile));
      EXPECT_GE(compare(plans.front(), traced(*device, plans).rounds.front().variants.front()), 11);
    }
  }
}

// An evaluation, or the largest of many batches, needs the most memory. The plan must know it,
// though the scenario counts fewer steps.
TEST(TraceConformance, PassesWhereTheMostIsHeldAfterTheCountedSteps) {
  Knobs evaluated = model_knobs("fp32_sgd");
  evaluated.alloc.with = Allocator::caching;
  evaluated.alloc.when = AllocWhen::op;
  Knobs turns = evaluated;
  evaluated.eval = {.every = 20, .batches = 8, .store = EvalStore::device};
  turns.batch.sizes.assign(30, 64);
  turns.batch.sizes.back() = 4096;
  for (const Knobs& knobs : {evaluated, turns}) {
    Scenario scenario = scenario_of(knobs);
    scenario.measure.steps = 10;
    StepPlan plan = build_step_plans(scenario, 1).front();
    const PlannedStep step = with_facts(plan);
    const auto device = simulated({.seed = 1});
    const Traced result = traced(*device, {&step, 1});
    EXPECT_EQ(reason_against_conformance({&step, 1}, result), std::nullopt);
    plan.allocator_simulation =
        std::get<CountedAllocations>(run_allocator(plan, plan.counted_steps)).simulation;
    const PlannedStep too_few = with_facts(plan);
    EXPECT_NE(
        reason_against_conformance({&too_few, 1}, result).value_or("").find("its buffers held"),
        std::string::npos);
  }
}

TEST(TraceConformance, FailsForAVariantThatDoesWhatItsPlanDoesNotSay) {
  const std::vector<PlannedStep> plans =
      with_facts(build_step_plans(read_scenario(source / "scenarios/sync_every_step.toml"), 1));
  const PlannedStep& plan = plans.front();
  const auto difference = [&](InjectionKind kind, Metric metric) {
    const auto device = simulated({.seed = 1, .faults = {{plan->variant, kind}}});
    const Traced result = traced(*device, {&plan, 1});
    return result.rounds.front().variants.front().values.at(metric) - *plan.facts().count(metric);
  };
  EXPECT_EQ(difference(InjectionKind::extra_wait, Metric::host_waits_per_step), 1);
  EXPECT_EQ(difference(InjectionKind::extra_wait, Metric::device_syncs_per_step), 1);
  EXPECT_EQ(difference(InjectionKind::extra_copy, Metric::pageable_copies_per_step), 1);
  EXPECT_GT(difference(InjectionKind::extra_copy, Metric::copy_bytes_per_step), 0);
  EXPECT_EQ(difference(InjectionKind::extra_allocation, Metric::device_allocs_per_step), 1);
  EXPECT_EQ(difference(InjectionKind::extra_allocation, Metric::host_waits_per_step), 1);
  EXPECT_EQ(difference(InjectionKind::device_spin, Metric::launches_per_step), 1);
  EXPECT_EQ(difference(InjectionKind::host_delay, Metric::host_waits_per_step), 0);
}

}  // namespace
}  // namespace stepgate
