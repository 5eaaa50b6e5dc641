// SPDX-License-Identifier: MIT
// What an injection adds to a step, by the plan's own counts.
#include "plan/inject.h"

#include <gtest/gtest.h>

#include "plan/build_step_plan.h"
#include "plan/counted_metrics.h"
#include "plan/find_races.h"
#include "scenario/read_scenario.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

StepPlan pinned_step() {
  const Scenario scenario = parse_scenario(
      "claim = \"injected\"\nbatch.size = 64\nh2d = { host = \"pinned\", stream = \"side\", "
      "buffers = 2 }\n"
      "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n",
      "inject.toml");
  return build_step_plans(scenario, 1).front();
}

double counted_after(InjectionKind kind, Metric metric) {
  StepPlan plan = pinned_step();
  inject(plan, kind, 3us);
  EXPECT_FALSE(find_race(plan)) << name_of(kind) << ": " << find_race(plan).value_or("");
  return counted(plan, metric).value();
}

double counted_before(Metric metric) {
  return counted(pinned_step(), metric).value();
}

TEST(Inject, AddsOneOfWhatItsNameSaysAndNothingElse) {
  using enum InjectionKind;
  const auto added = [](InjectionKind kind, Metric metric) {
    return counted_after(kind, metric) - counted_before(metric);
  };
  EXPECT_EQ(added(device_spin, Metric::launches_per_step), 1);
  EXPECT_EQ(added(extra_wait, Metric::host_waits_per_step), 1);
  EXPECT_EQ(added(extra_allocation, Metric::device_allocs_per_step), 1);
  EXPECT_EQ(added(extra_copy, Metric::copies_per_step), 1);
  EXPECT_EQ(added(extra_copy, Metric::copy_bytes_per_step),
            static_cast<double>(pinned_step().batch_bytes / 8));
  EXPECT_EQ(added(host_delay, Metric::launches_per_step), 0);
  EXPECT_EQ(added(host_delay, Metric::host_waits_per_step), 0);
}

TEST(Inject, LeavesTheBuffersOfTheStepInTheirPlaces) {
  const StepPlan plain = pinned_step();
  for (const InjectionKind kind : {InjectionKind::device_spin, InjectionKind::extra_copy}) {
    StepPlan injected = pinned_step();
    inject(injected, kind, 3us);
    ASSERT_GT(injected.buffers.size(), plain.buffers.size());
    for (std::size_t index = 0; index < plain.buffers.size(); ++index) {
      EXPECT_EQ(injected.buffers[index].name, plain.buffers[index].name);
    }
  }
}

}  // namespace
}  // namespace stepgate
