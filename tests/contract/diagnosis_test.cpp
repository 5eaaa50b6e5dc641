// SPDX-License-Identifier: MIT
// The mechanism of real plans, traced on the simulated device: steps that were built to be of a
// known class get that class, and a fault that is planted into a variant breaks the run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "device/simulated/simulated_device.h"
#include "judge/mechanism/conformance.h"
#include "judge/mechanism/diagnose.h"
#include "measure/trace/trace_rounds.h"
#include "plan/build/build_step_plan.h"
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
  return mechanism_of(plans, traced(plans), {});
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
    const std::string sentence = mechanism_of_plans(plans).separations.back().sentence;
    return sentence.starts_with(words) ? testing::AssertionSuccess()
                                       : testing::AssertionFailure() << sentence;
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
