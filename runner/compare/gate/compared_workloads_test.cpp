// SPDX-License-Identifier: MIT
#include "compare/gate/compared_workloads.h"

#include <gtest/gtest.h>

#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

using Words = std::vector<std::string>;

TEST(ComparedWorks, AreThoseThatBothHaveAndAPatternMatchesInTheOrderOfBase) {
  Introduction both;
  both.base.workloads = {"c/x", "a/x", "b/x", "a/y"};
  both.head.workloads = {"a/x", "d/x", "c/x", "a/y"};
  both.base.planned = both.head.planned = {"p/x"};
  EXPECT_EQ(workloads_in_common(both, &Hello::workloads, {}), (Words{"c/x", "a/x", "a/y"}));
  EXPECT_EQ(workloads_in_common(both, &Hello::workloads, Words{"*/y", "c/*"}),
            (Words{"c/x", "a/y"}));
  EXPECT_EQ(workloads_in_common(both, &Hello::planned, {}), Words{"p/x"});
}

TEST(ComparedWorks, HaveAMarginOfTheirOwnWhereItIsWiderAndTheyAreWantedAndTimed) {
  std::vector<Scenario> scenarios(2);
  scenarios[0].name = "a";
  scenarios[1].name = "planned";
  scenarios[1].tags = {"no_gpu"};
  for (Scenario& scenario : scenarios) {
    for (const auto& [name, margin] : {std::pair{"wide", 0.05}, {"narrow", 0.01}}) {
      Variant variant;
      variant.name = name;
      variant.gate.margin = margin;
      scenario.variants.push_back(variant);
    }
    scenario.variants.emplace_back().name = "plain";
  }
  EXPECT_EQ(workloads_of(scenarios).size(), 6U);
  using Margins = std::map<std::string, double>;
  EXPECT_EQ(wider_margins(scenarios, {}, 0.02), (Margins{{"a/wide", 0.05}}));
  EXPECT_EQ(wider_margins(scenarios, Words{"*/narrow"}, 0.02), Margins{});
  EXPECT_EQ(wider_margins(scenarios, Words{"*/narrow"}, 0.005), (Margins{{"a/narrow", 0.01}}));
}

TEST(ComparedWorks, APatternThatMatchesNoneIsRefusedWithTheNearest) {
  const Words workloads{"sort_numbers", "hash_blocks"};
  EXPECT_NO_THROW(refuse_unmatched(Words{"sort*", "hash_blocks"}, workloads));
  try {
    refuse_unmatched(Words{"sort*", "hash_block"}, workloads);
    FAIL() << "a pattern that matches nothing was accepted";
  } catch (const RequestError& error) {
    EXPECT_STREQ(error.what(), "no workload is named 'hash_block'; did you mean 'hash_blocks'?");
  }
}

}  // namespace
}  // namespace stepgate
