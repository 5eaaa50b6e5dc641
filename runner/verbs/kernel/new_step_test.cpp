// SPDX-License-Identifier: MIT
#include "verbs/kernel/new_step.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/catalogue.h"
#include "plan/compose/build_step_plan.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

// A kernel that one of the steps launches comes with that step, whose variant is planned with the
// library.
TEST(NewStep, LaunchesTheKernelFromALibrary) {
  std::set<std::string_view> without;
  for (const Kernel& each : kernel_catalogue()) {
    const std::string text = step_with_own(each);
    if (text.empty()) {
      without.insert(each.name);
      continue;
    }
    const Scenario scenario = parse_scenario(text, "step.toml");
    const std::vector<StepPlan> plans = build_step_plans(scenario, 1);
    ASSERT_EQ(plans.size(), 2u) << text;
    EXPECT_TRUE(plans[0].library_kernels.empty()) << text;
    ASSERT_EQ(plans[1].library_kernels.size(), 1u) << text;
    EXPECT_EQ(plans[1].library_kernels.front()->name, each.name);
  }
  EXPECT_LE(without.size(), kernel_catalogue().size() / 3);
  for (const std::string_view usual :
       {"layer_norm", "rms_norm", "swiglu", "gelu", "attention", "rope", "add", "adamw_clipped",
        "lion_clipped", "adamw", "lion", "momentum", "cross_entropy", "sgd"})
    EXPECT_FALSE(without.contains(usual)) << usual;
  EXPECT_TRUE(without.contains("spin")) << "no usual step waits";
}

}  // namespace
}  // namespace stepgate
