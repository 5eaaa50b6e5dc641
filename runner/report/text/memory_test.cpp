// SPDX-License-Identifier: MIT
// Tests the memory of steps as text and as picture, and the groups of operations that both show.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/text/units.h"
#include "plan/count/facts_of.h"
#include "report/picture/pictures.h"
#include "report/text/print_plan.h"
#include "report/times.h"

namespace stepgate {
namespace {

Operation fill(const std::string& name, Phase phase, int buffer, std::int64_t bytes = mebibyte) {
  return {.name = name, .phase = phase, .action = FillZero{{buffer, 0, bytes}}};
}

// Returns a step of two layers, forward and backward, with two activations, gradients and weights.
StepPlan small_step() {
  StepPlan plan;
  plan.scenario = "by_hand";
  plan.variant = "only";
  plan.buffers = {
      {.name = "weights", .purpose = Purpose::weights, .bytes = 4 * mebibyte},
      {.name = "hidden 0", .bytes = 2 * mebibyte},
      {.name = "hidden 1", .bytes = mebibyte},
      {.name = "gradients", .purpose = Purpose::gradients, .bytes = 4 * mebibyte},
  };
  plan.operations = {fill("layer 0: gemm", Phase::forward, 1, 2 * mebibyte),
                     fill("layer 0: bias", Phase::forward, 1),
                     fill("layer 1: gemm", Phase::forward, 2),
                     fill("layer 1: gradient", Phase::backward, 2),
                     fill("layer 0: gradient", Phase::backward, 1),
                     fill("update", Phase::optimizer, 3)};
  return plan;
}

std::string screen_of(const StepPlan& plan) {
  std::ostringstream out;
  print_memory(out, with_facts(plan));
  return out.str();
}

std::string picture_of(const std::vector<StepPlan>& plans) {
  std::ostringstream out;
  draw_memory(out, with_facts(plans));
  return out.str();
}

std::vector<std::string> names_of(const StepPlan& plan, std::size_t most) {
  std::vector<std::string> names;
  for (const OperationGroup& group : operation_groups(plan, most)) names.push_back(group.name);
  return names;
}

TEST(OperationGroups, AreLayersWithinPhases) {
  EXPECT_EQ(names_of(small_step(), 10),
            (std::vector<std::string>{"layer 0", "layer 1", "layer 1", "layer 0", "update"}));
}

TEST(OperationGroups, AreFewerWhereThatIsTooMany) {
  EXPECT_EQ(names_of(small_step(), 3),
            (std::vector<std::string>{"layer 0 to 1", "layer 1 to 0", "update"}));
  EXPECT_EQ(names_of(small_step(), 2),
            (std::vector<std::string>{"layer 0 to 1", "layer 1 .. update"}));
  EXPECT_EQ(names_of(small_step(), 1), (std::vector<std::string>{"layer 0 .. update"}));
}

TEST(OperationGroups, TakeWaitsToWhatWasBeforeAndAllocationsToWhatComesNext) {
  StepPlan plan;
  const auto add = [&](const std::string& name, Phase phase, Action action) {
    plan.operations.push_back({.name = name, .phase = phase, .action = std::move(action)});
  };
  add("copy", Phase::h2d, FillZero{});
  add("wait for the copy", Phase::sync, HostWaits{});
  add("allocate a", Phase::forward, Allocate{});
  add("allocate b", Phase::forward, Allocate{});
  add("layer 0: gemm", Phase::forward, FillZero{});
  add("allocate c", Phase::forward, Allocate{});
  add("layer 0: bias", Phase::forward, FillZero{});
  add("release a", Phase::forward, Release{});
  const auto groups = operation_groups(plan, 10);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].name, "copy");
  EXPECT_EQ(groups[0].last, 1U);
  EXPECT_EQ(groups[1].name, "layer 0");
  EXPECT_EQ(groups[1].first, 2U);
  EXPECT_EQ(groups[1].last, 7U);
}

TEST(OperationGroups, HaveEveryOperationOnceAndAreNeverMoreThanAsked) {
  StepPlan plan;
  for (int index = 0; index < 300; ++index) {
    const auto phase = static_cast<Phase>(index * index / 7 % phase_count);
    plan.operations.push_back(fill("layer " + std::to_string(index / 3) + ": work", phase, 0));
  }
  for (std::size_t most = 1; most < 320; ++most) {
    std::size_t next = 0;
    const auto groups = operation_groups(plan, most);
    EXPECT_LE(groups.size(), most);
    for (const OperationGroup& group : groups) {
      ASSERT_EQ(group.first, next);
      ASSERT_LE(group.first, group.last);
      next = group.last + 1;
    }
    ASSERT_EQ(next, plan.operations.size());
  }
  EXPECT_TRUE(operation_groups(StepPlan{}, 5).empty());
}

TEST(PrintMemory, SaysWhatIsLiveWhatIsNeededAndWhatIsHeld) {
  EXPECT_EQ(
      screen_of(small_step()),
      "by_hand, variant only: the device memory of a steady step\n"
      "\n"
      "  always live  4 MiB  weights 4 MiB\n"
      "\n"
      "  phase      operations  ops  gradients  activations  all live\n"
      "  forward    layer 0       2        0 B        2 MiB     6 MiB  ============######\n"
      "             layer 1       1        0 B        3 MiB     7 MiB  ============#########\n"
      "  backward   layer 1       1        0 B        3 MiB     7 MiB  ============#########\n"
      "             layer 0       1        0 B        2 MiB     6 MiB  ============######\n"
      "  optimizer  update        1      4 MiB          0 B     8 MiB  ============############ < "
      "peak\n"
      "  (=: always live; #: the rest; a full bar is what is needed)\n"
      "\n"
      "  need    8 MiB  the most live at once: 'update' (optimizer), operation 6 of 6\n"
      "  arena   8 MiB  one piece, places planned from the lifetimes: 0 % above need\n"
      "  held   11 MiB  as the plan is, every buffer its own; an arena would save 3 MiB, 27.3 %\n"
      "\n"
      "the largest of 2 buffers at the peak\n"
      "  4 MiB  weights    weights    always: kept from step to step\n"
      "  4 MiB  gradients  gradients  'update'\n");
}

TEST(PrintMemory, SaysWhyAnArenaCannotReuseWhatIsCarriedOver) {
  StepPlan plan = small_step();
  plan.operations.insert(
      plan.operations.begin(),
      {.name = "read", .phase = Phase::log, .action = CopyBytes{{0, 0, 4}, {3, 0, 4}}});
  const std::string screen = screen_of(plan);
  EXPECT_NE(screen.find("\n  read before the step writes it  4 MiB  'gradients'\n"),
            std::string::npos)
      << screen;
}

TEST(PrintMemory, SaysWhatGrows) {
  StepPlan plan = small_step();
  plan.buffers.push_back(
      {.name = "kept", .bytes = 512, .slots = 100, .allocated_by = AllocatedBy::cuda});
  plan.operations.push_back(
      {.name = "keep", .phase = Phase::log, .action = Allocate{4}, .every = 2});
  const std::string screen = screen_of(plan);
  EXPECT_NE(screen.find("growth   256 B  a step, never released\n"), std::string::npos) << screen;
  EXPECT_NE(screen.find("\n  never released  512 B  'kept'\n"), std::string::npos) << screen;
}

TEST(DrawMemory, ShowsEveryVariantWithItsPeakAndItsThreeSums) {
  StepPlan other = small_step();
  other.variant = "<other & more>";
  const std::string svg = picture_of({small_step(), other});
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_EQ(times(svg, ">only</text>"), 1);
  EXPECT_EQ(times(svg, ">&lt;other &amp; more&gt;</text>"), 1);
  EXPECT_EQ(times(svg, ">peak: update</text>"), 2);
  EXPECT_EQ(times(svg, "need 8 MiB  \u00b7  arena 8 MiB  \u00b7  held 11 MiB"), 2);
}

TEST(DrawMemory, HasTheSameScaleForEveryVariant) {
  StepPlan small = small_step();
  small.buffers[0].bytes = mebibyte;
  const std::string both = picture_of({small_step(), small});
  // Both plots have the axis of the larger one.
  for (const char* mark : {">0 B</text>", ">2 MiB</text>", ">10 MiB</text>"})
    EXPECT_EQ(times(both, mark), 2) << mark;
}

TEST(DrawMemory, NamesInItsLegendOnlyWhatIsThere) {
  const std::string svg = picture_of({small_step()});
  EXPECT_EQ(times(svg, ">weights</text>"), 1);
  EXPECT_EQ(times(svg, ">gradients</text>"), 1);
  EXPECT_EQ(times(svg, ">workspace</text>"), 0);
  EXPECT_EQ(times(svg, ">staging</text>"), 0);
}

TEST(DrawMemory, GivesLongRunsInWhichNothingChangesLessRoom) {
  StepPlan plan = small_step();
  const auto peak_at = [](const StepPlan& drawn) {
    const std::string svg = picture_of({drawn});
    const auto words = svg.rfind("<text x=\"", svg.find(">peak: "));
    return std::stod(svg.substr(words + 9));
  };
  std::vector<Operation> copies(500, fill("copy", Phase::h2d, 0));
  plan.operations.insert(plan.operations.begin(), copies.begin(), copies.end());
  plan.operations.insert(plan.operations.end(), 6, fill("after", Phase::log, 0));
  // Twelve columns of copies come first, then twelve for the rest, of which the sixth has the peak.
  EXPECT_GT(peak_at(plan), 600);
  EXPECT_LT(peak_at(plan), 1000);
}

TEST(DrawMemory, ShowsAStepThatDoesNothing) {
  StepPlan plan = small_step();
  plan.operations.clear();
  const std::string svg = picture_of({plan});
  EXPECT_EQ(times(svg, "peak: "), 0);
  EXPECT_EQ(times(svg, ">gradients</text>"), 1);
  EXPECT_NE(screen_of(plan).find("need   11 MiB\n"), std::string::npos) << screen_of(plan);
}

}  // namespace
}  // namespace stepgate
