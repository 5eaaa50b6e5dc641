// SPDX-License-Identifier: MIT
// Tests, with known clock rates and times, the words for slowdowns by cycles and by a lower clock
// rate.
#include "judge/judge_clocks.h"

#include <gtest/gtest.h>

#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

Judged judged_at(double fix_ratio, double fix_megahertz, double baseline_megahertz,
                 Metric metric = Metric::samples_per_s) {
  Script script;
  script.step_time = noisy(fix_ratio, 5, 0.0001, 0);
  script.sm_clock_hertz = [=](const std::string& variant) {
    return 1e6 * (variant == "fix" ? fix_megahertz : baseline_megahertz);
  };
  Scenario scenario = scenario_of({fix_against_baseline(metric, Relation::about, 1, 0.005)});
  scenario.measure.rounds = 20;
  scenario.measure.interleave = Interleave::segments;
  return measure_and_judge(scenario, script, 5);
}

TEST(Clocks, ExplainASlowdownByTheClock) {
  // Both variants need the same cycles, at clock rates that differ by 1.77 %.
  const Judged judged = judged_at(1.001 * 1980 / 1945, 1945, 1980);
  const AssertionVerdict& line = judged.verdict.assertions[0];
  EXPECT_EQ(line.outcome, Outcome::fails) << "time decides, not cycles";
  ASSERT_TRUE(line.clocks);
  EXPECT_NEAR(line.clocks->cycle_ratio, 1.001, 0.0002);
  EXPECT_EQ(in_words(*line.clocks),
            "fix takes 1.9 % more time a step than baseline: 0.1 % more cycles, and 1.8 % more "
            "because its SM clock is lower, 1945 instead of 1980 MHz");
}

TEST(Clocks, ExplainASlowdownByCycles) {
  const Judged judged = judged_at(1.03, 1980, 1980);
  EXPECT_EQ(
      in_words(*judged.verdict.assertions[0].clocks),
      "fix takes 3.0 % more time a step than baseline: 3.0 % more cycles at the same SM clock, "
      "1980 MHz");
}

TEST(Clocks, MultiplyToTheTime) {
  for (const double fix_megahertz : {1500.0, 1980.0, 2100.0}) {
    const ClockSplit split = *judged_at(0.7, fix_megahertz, 1980).verdict.assertions[0].clocks;
    EXPECT_NEAR(split.time_ratio, split.cycle_ratio / split.clock_ratio, 1e-12);
    EXPECT_NEAR(split.clock_ratio, fix_megahertz / 1980, 1e-12);
  }
}

TEST(Clocks, AreLeftOutWhereTheyAreNotKnownOrNotTheMatter) {
  Judged judged = judged_at(1, 1980, 1980);
  const Expectation timed = fix_against_baseline(Metric::step_ms_p95, Relation::at_most, 1);
  EXPECT_TRUE(clock_split(timed, judged.measurement));
  EXPECT_FALSE(
      clock_split(fix_against_baseline(Metric::host_us, Relation::at_most, 1), judged.measurement));
  EXPECT_FALSE(clock_split(assertion("self", {{of("fix", Metric::samples_per_s)}}, Relation::about,
                                     {{of("fix", Metric::samples_per_s)}}, 0.01),
                           judged.measurement));
  judged.measurement.rounds.back().segments.back().sm_clock_hertz.reset();
  EXPECT_FALSE(clock_split(timed, judged.measurement));
}

TEST(Clocks, OfStepsByTurnsAreNobodysOwn) {
  Judged judged = judged_at(1, 1945, 1980);
  for (Round& round : judged.measurement.rounds) round.interleaved = true;
  EXPECT_FALSE(clock_split(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1),
                           judged.measurement));
  EXPECT_TRUE(clock_notes(judged.measurement, 0.1).empty());
}

TEST(Clocks, OfVariantsThatDifferAreNotedOnceAtMost) {
  const Judged judged = judged_at(1, 1945, 1980);
  EXPECT_TRUE(judged.verdict.assertions[0].clocks);
  EXPECT_TRUE(judged.verdict.notes.empty()) << "the assertion says it";
  const std::vector<std::string> notes = clock_notes(judged.measurement, 0.1);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0],
            "the SM clock is 1945 MHz while 'fix' runs and 1980 MHz while 'baseline' does; the "
            "order was random, so the variants themselves move it");
  EXPECT_TRUE(clock_notes(judged_at(1, 1979.5, 1980).measurement, 0.1).empty());
}

TEST(Clocks, AreSummedUpForEveryVariant) {
  const Judged judged = judged_at(1, 1945, 1980);
  EXPECT_NEAR(judged.verdict.variants[1].sm_clock_hertz.value(), 1.945e9, 1);
  EXPECT_NEAR(judged.verdict.variants[1].cycles_per_step.value(), 1.945e6, 2e3);
}

}  // namespace
}  // namespace stepgate
