// SPDX-License-Identifier: MIT
// Tests plans whose kernels a library launches: the step stays the same, and what only the
// catalogue knows of its own code is not known.
#include "plan/compose/replace_kernels.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "base/text/units.h"
#include "kernels/catalogue.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

// Without fused kernels, a transformer launches layer_norm.
Knobs unfused() {
  Knobs knobs = small_transformer();
  knobs.launch.fuse = Fuse::none;
  return knobs;
}

Knobs with_layer_norm(KernelReplacement replacement) {
  Knobs knobs = unfused();
  knobs.kernels.emplace("layer_norm", std::move(replacement));
  return knobs;
}

const LaunchKernel& first_launch_of(const StepPlan& plan, std::string_view name) {
  for (const Operation& operation : plan.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch != nullptr && launch->kernel == name) return *launch;
  }
  throw std::runtime_error("nothing launches " + std::string(name));
}

TEST(ReplaceKernels, LeavesEverythingElseOfTheStep) {
  const StepPlan ours = plan_of(unfused());
  const StepPlan theirs = plan_of(with_layer_norm({"m.so", "norm"}));
  ASSERT_EQ(ours.operations.size(), theirs.operations.size());
  EXPECT_EQ(ours.buffers.size(), theirs.buffers.size());
  EXPECT_EQ(launches_of(theirs, "layer_norm"), launches_of(ours, "layer_norm"));
  EXPECT_EQ(value(theirs, Metric::launches_per_step), value(ours, Metric::launches_per_step));
  EXPECT_EQ(value(theirs, Metric::flops_per_step), value(ours, Metric::flops_per_step));
  EXPECT_EQ(value(theirs, Metric::peak_live), value(ours, Metric::peak_live));
  EXPECT_FALSE(kernel(first_launch_of(ours, "layer_norm").kernel).replacement);
  const Kernel& row = kernel(first_launch_of(theirs, "layer_norm").kernel);
  EXPECT_EQ(row.replacement, (KernelReplacement{"m.so", "norm"}));
  EXPECT_EQ(row.reference, kernel("layer_norm").reference);
  EXPECT_FALSE(kernel(first_launch_of(theirs, "gelu").kernel).replacement);
}

TEST(ReplaceKernels, LeavesTheArithmeticOfTheModel) {
  Knobs knobs = small_transformer();
  knobs.launch.fuse = Fuse::attention;
  const StepPlan ours = plan_of(knobs);
  knobs.kernels.emplace("attention", KernelReplacement{"m.so", "attention"});
  knobs.kernels.emplace("matmul", KernelReplacement{"m.so", "matmul"});
  ASSERT_GT(launches_of(ours, "attention"), 0);
  EXPECT_EQ(facts_of(plan_of(knobs)).model_flops, facts_of(ours).model_flops);
}

TEST(ReplaceKernels, KeepsRowsAsLongAsACopyOfThePlan) {
  std::optional<StepPlan> copy;
  {
    const StepPlan plan = plan_of(with_layer_norm({"m.so", "norm"}));
    copy = plan;
  }
  EXPECT_EQ(kernel(first_launch_of(*copy, "layer_norm").kernel).replacement->library, "m.so");
}

TEST(ReplaceKernels, CountsTheLaunchesThatALibraryTells) {
  const double ours = value(unfused(), Metric::launches_per_step);
  const auto norms = static_cast<double>(launches_of(plan_of(unfused()), "layer_norm"));
  EXPECT_EQ(value(with_layer_norm({"m.so", "norm", 3}), Metric::launches_per_step),
            ours + 2 * norms);
}

TEST(ReplaceKernels, AddsAWorkspaceOfItsOwn) {
  const StepPlan plan = plan_of(with_layer_norm({"m.so", "norm", 1, 4 * mebibyte}));
  ASSERT_TRUE(plan.library_workspace.has_value());
  const Buffer& workspace = buffer_at(plan, *plan.library_workspace);
  EXPECT_EQ(workspace.bytes, 4 * mebibyte);
  EXPECT_EQ(workspace.purpose, Purpose::workspace);
  EXPECT_EQ(value(plan, Metric::peak_live), value(unfused(), Metric::peak_live) + 4 * mebibyte);
  EXPECT_FALSE(plan_of(with_layer_norm({"m.so", "norm"})).library_workspace);
}

TEST(ReplaceKernels, KnowsNothingOfHowALibraryAccessesMemory) {
  Knobs knobs;
  knobs.model.kind = ModelKind::elementwise;
  knobs.model.hidden = 1024;
  knobs.model.stride = 32;
  const StepPlan ours = plan_of(knobs);
  ASSERT_TRUE(counted(ours, Metric::sectors_per_request).has_value());
  knobs.kernels.emplace("strided_scale", KernelReplacement{"m.so", "strided_scale"});
  EXPECT_FALSE(counted(plan_of(knobs), Metric::sectors_per_request).has_value());
}

TEST(ReplaceKernels, RefusesAKernelThatTheStepDoesNotLaunch) {
  Knobs knobs = unfused();
  knobs.kernels.emplace("rms_norm", KernelReplacement{"m.so", "rms_norm"});
  const std::string refusal = refusal_of(knobs);
  EXPECT_NE(refusal.find("replaces the kernel 'rms_norm', which it does not launch"),
            std::string::npos)
      << refusal;
  EXPECT_EQ(refusal_of(with_layer_norm({"m.so", "norm"})), "accepted");
}

}  // namespace
}  // namespace stepgate
