// SPDX-License-Identifier: MIT
#include "verbs/mutate/faults_of_files.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

Scenario scenario_of(const std::string& file, const std::vector<int>& lines_of_assertions) {
  Scenario scenario;
  scenario.file = file;
  for (const int line : lines_of_assertions) {
    scenario.expect.emplace_back();
    scenario.expect.back().place = {file, line, 1};
  }
  return scenario;
}

Diagnostic at(const std::string& file, int line) {
  return {{file, line, 1}, "a fault", "a way out"};
}

TEST(FaultsOfFiles, AreAllOfAScenarioThatStandsAlone) {
  FaultsOfFiles faults;
  faults.add(scenario_of("a.toml", {9}), {at("a.toml", 3), at("a.toml", 9)});
  faults.add(scenario_of("b.toml", {9}), {});
  EXPECT_EQ(faults.all().size(), 2U);
}

TEST(FaultsOfFiles, AreThoseThatEveryPointOfASweepHas) {
  FaultsOfFiles faults;
  faults.add(scenario_of("a.toml", {9}), {at("a.toml", 3), at("a.toml", 4)});
  faults.add(scenario_of("a.toml", {9}), {at("a.toml", 4)});
  ASSERT_EQ(faults.all().size(), 1U);
  EXPECT_EQ(faults.all().front().place.line, 4);
}

TEST(FaultsOfFiles, OfAnAssertionAreAskedOfThePointsThatItIsAbout) {
  FaultsOfFiles faults;
  faults.add(scenario_of("a.toml", {8, 9}), {at("a.toml", 8), at("a.toml", 9)});
  faults.add(scenario_of("a.toml", {9}), {});
  ASSERT_EQ(faults.all().size(), 1U) << "line 8 cannot fail where it is one";
  EXPECT_EQ(faults.all().front().place.line, 8);
}

}  // namespace
}  // namespace stepgate
