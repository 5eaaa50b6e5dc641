// SPDX-License-Identifier: MIT
#include "line/ranks/rank_team.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/files/temporary_folder.h"
#include "base/files/write_file.h"
#include "base/text/diagnostic.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

Planned scenario(std::string file, std::int64_t ranks, RankLinks links,
                 std::vector<std::string> tags = {}) {
  Planned planned;
  planned.scenario.file = std::move(file);
  planned.scenario.tags = std::move(tags);
  Variant alone{.name = "alone", .knobs = {}, .place = {}};
  Variant several{.name = "several", .knobs = {}, .place = {}};
  several.knobs.ranks.count = ranks;
  several.knobs.ranks.collectives.links = links;
  planned.scenario.variants = {alone, several};
  return planned;
}

TEST(KnobsOfAProcess, AreThoseOfTheScenariosThatHaveSeveralRanks) {
  EXPECT_EQ(collectives_of_process({}), CollectiveKnobs());
  const std::vector<Planned> all{scenario("one.toml", 1, RankLinks::usual),
                                 scenario("a.toml", 2, RankLinks::no_p2p),
                                 scenario("plans.toml", 2, RankLinks::usual, {"no_gpu"}),
                                 scenario("b.toml", 4, RankLinks::no_p2p)};
  EXPECT_EQ(collectives_of_process(all).links, RankLinks::no_p2p);
}

TEST(KnobsOfAProcess, AreRefusedWhereScenariosDiffer) {
  const std::vector<Planned> all{scenario("a.toml", 2, RankLinks::usual),
                                 scenario("b.toml", 2, RankLinks::no_p2p)};
  try {
    (void)collectives_of_process(all);
    FAIL() << "one process cannot have both";
  } catch (const RequestError& error) {
    EXPECT_STREQ(error.what(),
                 "a.toml and b.toml have different 'ranks.link', which is decided once for a run; "
                 "run them one after the other");
  }
}

// Returns a step of `count` ranks with `communicators` communicators for each of `limits` limits of
// thread blocks.
Planned with_limits(int count, int communicators, int limits) {
  Planned planned = scenario("limits.toml", count, RankLinks::usual);
  std::vector<StepPlan> plans(static_cast<std::size_t>(limits));
  for (int limit = 0; limit < limits; ++limit) {
    RanksPlan& ranks = plans[static_cast<std::size_t>(limit)].ranks;
    ranks = {.count = count, .communicators = communicators};
    ranks.collectives.max_ctas = limit + 1;
  }
  planned.plans = with_facts(plans);
  return planned;
}

TEST(RanksOfARun, HaveSixteenCommunicatorsForEachCount) {
  EXPECT_NO_THROW(
      refuse_together(std::vector<Planned>{with_limits(2, 1, 15), with_limits(4, 1, 15)}));
  EXPECT_NO_THROW(
      refuse_together(std::vector<Planned>{with_limits(2, 1, 15), with_limits(2, 1, 15)}));
  EXPECT_THROW(refuse_together(std::vector<Planned>{with_limits(2, 1, 16)}), RequestError);
  EXPECT_NO_THROW(refuse_together(std::vector<Planned>{with_limits(2, 2, 7)}));
  EXPECT_THROW(refuse_together(std::vector<Planned>{with_limits(2, 2, 8)}), RequestError);
}

// The process that calibrates opens no library, and has the knobs that the others have.
TEST(Calibration, IsOfStepsWithOurKernels) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "step.toml";
  write_file(file,
             "claim = \"mine is no slower\"\nmodel = { kind = \"transformer\", layers = 1 }\n"
             "kernels.add = \"m.so\"\nlaunch.fuse = \"none\"\n"
             "[calibrate]\nhost.step_us = \"ours.host_share ~= 50% within 5%\"\n"
             "[variant.ours]\nkernels.add = \"ours\"\n"
             "[variant.mine]\nkernels.layer_norm = { library = \"m.so\", otherwise = \"ours\" }\n"
             "[expect]\nsame = \"mine.launches_per_step == ours.launches_per_step\"\n");
  LineArguments arguments;
  arguments.overrides = {"kernels.gelu=other.so", "batch.size=4", "kernels=new.so"};
  const Scenario scenario = read_scenario(file, arguments.overrides);
  ASSERT_EQ(scenario.variants.at(1).knobs.kernels.size(), 3U);
  const LineArguments own = with_own_kernels(scenario, arguments);
  EXPECT_EQ(own.files, std::vector{file});
  const Scenario ours = read_scenario(file, own.overrides);
  ASSERT_TRUE(ours.calibrate);
  for (const Variant& variant : ours.variants) {
    EXPECT_TRUE(variant.knobs.kernels.empty()) << variant.name;
    EXPECT_EQ(variant.knobs.batch.size, 4);
  }
  std::vector<std::string> found = arguments.overrides;
  found.push_back("host.step_us=80");
  EXPECT_FALSE(read_scenario(file, found).calibrate) << "the others have its value";
}

}  // namespace
}  // namespace stepgate
