// SPDX-License-Identifier: MIT
// Tests the operations that an injection adds to a step, by the plan's own counts.
#include "plan/derive/inject.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text/diagnostic.h"
#include "plan/analyse/find_races.h"
#include "plan/compose/build_step_plan.h"
#include "plan/testing/counted.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

StepPlan pinned_step() {
  const Scenario scenario = parse_scenario(
      "claim = \"injected\"\nbatch.size = 64\ntransfer = { host = \"pinned\", stream = \"side\", "
      "buffers = 2 }\n"
      "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n",
      "inject.toml");
  return build_step_plans(scenario, 1).front();
}

double counted_after(InjectionKind kind, Metric metric) {
  StepPlan plan = pinned_step();
  inject(plan, {.kind = kind, .duration = 3us});
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

TEST(Inject, RepeatsTheShareThatItIsToldAndNothingElse) {
  const auto changed = [](const std::string& what, Metric metric) {
    StepPlan plan = pinned_step();
    inject(plan, parse_injection(what));
    EXPECT_FALSE(find_race(plan)) << what << ": " << find_race(plan).value_or("");
    return counted(plan, metric).value() / counted_before(metric);
  };
  // GEMMs do nearly all arithmetic of the step.
  EXPECT_NEAR(changed("repeated_products:10%", Metric::flops_per_step), 1.1, 0.001);
  EXPECT_EQ(changed("repeated_products:10%", Metric::copies_per_step), 1);
  EXPECT_DOUBLE_EQ(changed("repeated_copies:25%", Metric::copy_bytes_per_step), 1.25);
  EXPECT_EQ(changed("repeated_copies:25%", Metric::launches_per_step), 1);
  EXPECT_NEAR(changed("repeated_kernels:100%", Metric::flops_per_step), 1, 0.01);
  EXPECT_GT(changed("repeated_kernels:100%", Metric::launches_per_step), 1.5);
  EXPECT_EQ(changed("dearer_launches:0.5", Metric::launches_per_step), 1);
}

TEST(Inject, SpreadsWhatIsRepeatedOverTheSteps) {
  StepPlan plan = pinned_step();
  inject(plan, parse_injection("repeated_products:25%"));
  std::set<std::int64_t> turns;
  for (const Operation& operation : plan.operations) {
    if (operation.every == 4) turns.insert(operation.turn);
  }
  EXPECT_EQ(turns.size(), 4u);
}

TEST(Inject, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"extra_waits", "repeated_products", "repeated_products:10", "repeated_products:0%",
        "repeated_products:101%", "host_delay:-1", "host_delay:2%", ""})
    EXPECT_THROW(parse_injection(text), RequestError) << text;
}

TEST(Inject, LeavesTheBuffersOfTheStepInTheirPlaces) {
  const StepPlan plain = pinned_step();
  for (const InjectionKind kind : {InjectionKind::device_spin, InjectionKind::extra_copy}) {
    StepPlan injected = pinned_step();
    inject(injected, {.kind = kind, .duration = 3us});
    ASSERT_GT(injected.buffers.size(), plain.buffers.size());
    for (std::size_t index = 0; index < plain.buffers.size(); ++index) {
      EXPECT_EQ(injected.buffers[index].name, plain.buffers[index].name);
    }
  }
}

TEST(Inject, IsReadBackFromItsText) {
  for (const char* text : {"device_spin", "host_delay:20.000", "device_spin:0.001", "extra_wait",
                           "extra_copy", "dearer_launches:1.500", "repeated_copies:25%"})
    EXPECT_EQ(text_of(parse_injection(text)), text);
}

}  // namespace
}  // namespace stepgate
