// SPDX-License-Identifier: MIT
// Tests histories of artificial runs: which runs are compared, and what counts as drift.
#include "ledger/series/history.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>

#include "base/random.h"
#include "base/text/diagnostic.h"
#include "judge/testing/stored_runs_by_hand.h"

namespace stepgate {
namespace {

const Scenario one_variant = scenario_of_one({no_slide});

std::string date_of_week(double week) {
  using namespace std::chrono;
  const sys_days first(year(2026) / 1 / 5);
  const year_month_day day(first + days(static_cast<int>(std::lround(7 * week))));
  return fmt::format("{:04}-{:02}-{:02}T10:00:00Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

// Returns one run per week, with the commits "c0", "c1", ...
Baseline weekly_runs(const std::vector<double>& contrasts) {
  Baseline baseline = baseline_of(one_variant, contrasts);
  for (std::size_t run = 0; run < baseline.runs.size(); ++run) {
    baseline.runs[run].provenance.date = date_of_week(static_cast<double>(run));
    baseline.runs[run].provenance.commit = fmt::format("c{}", run);
  }
  return baseline;
}

VariantHistory judged_history(const Baseline& baseline) {
  std::vector<VariantHistory> all = histories_of(baseline, one_variant);
  EXPECT_EQ(all.size(), 1U);
  judge_drifts(all);
  return all.front();
}

std::vector<double> creeping(std::size_t runs, double a_week, double deviation = 0.001) {
  Random random(7);
  std::vector<double> contrasts;
  for (std::size_t run = 0; run < runs; ++run)
    contrasts.push_back(1 + a_week * static_cast<double>(run) + deviation * random.normal());
  return contrasts;
}

TEST(History, CallsADriftThatEverySingleRunKeepsWithinItsLimit) {
  const VariantHistory history = judged_history(weekly_runs(creeping(14, 0.003)));
  EXPECT_EQ(history.outcome, HistoryOutcome::drifts);
  ASSERT_TRUE(history.drift && history.drift->alarm);
  EXPECT_LE(*history.drift->alarm, 11U) << "run 12";
  EXPECT_NEAR(history.drift->now.slope, 0.003, 0.0005);
  const CommitRange at = commits_of_alarm(history);
  EXPECT_EQ(at.after, fmt::format("c{}", *history.drift->alarm));
  EXPECT_EQ(at.before, "c0") << "with which it shows most";
  EXPECT_EQ(history.periods.size(), 1U);
  EXPECT_DOUBLE_EQ(history.error, drift_error_a_year);
  EXPECT_NEAR(history.oldest, 1 + 2 * 0.003, 0.002) << "the mean of the first five";
}

TEST(History, IsSteadyWhereNothingChanges) {
  const VariantHistory history = judged_history(weekly_runs(creeping(52, 0, 0.003)));
  EXPECT_EQ(history.outcome, HistoryOutcome::steady);
  EXPECT_TRUE(history.changes.empty());
}

// The drift is smaller than seasonal variation.
TEST(History, WandersWhereItRisesByLittle) {
  const VariantHistory history = judged_history(weekly_runs(creeping(10, 0.0005, 0.0003)));
  EXPECT_EQ(history.outcome, HistoryOutcome::wanders);
  EXPECT_TRUE(history.drift->rise);
  EXPECT_FALSE(history.drift->alarm);
}

TEST(History, IsSteadyWhereItGetsFaster) {
  EXPECT_EQ(judged_history(weekly_runs(creeping(20, -0.003))).outcome, HistoryOutcome::steady);
}

TEST(History, SaysNothingOfFewRunsOrOfOneDay) {
  EXPECT_EQ(judged_history(weekly_runs(creeping(5, 0.01))).outcome, HistoryOutcome::too_few);
  Baseline of_one_day = weekly_runs(creeping(12, 0.01));
  for (std::size_t run = 0; run < 12; ++run)
    of_one_day.runs[run].provenance.date = fmt::format("2026-01-05T{:02}:00:00Z", run);
  const VariantHistory history = judged_history(of_one_day);
  EXPECT_EQ(history.outcome, HistoryOutcome::too_few);
  EXPECT_EQ(history.units.size(), 1U) << "one session";
  EXPECT_FALSE(is_watched(history));
}

// Steps and anchors both take longer from week to week.
TEST(History, BlamesTheMachineForWhatItsAnchorDoesToo) {
  Baseline baseline = weekly_runs(creeping(14, 0));
  for (std::size_t run = 0; run < 14; ++run)
    baseline.runs[run].variants[0].anchor_seconds *= std::exp(0.003 * static_cast<double>(run));
  EXPECT_EQ(judged_history(baseline).outcome, HistoryOutcome::machine_drifts);
}

// In a ledger without anchors, changes of the machine and of the step look alike.
TEST(History, GatesNoStepTimesWithoutAnAnchor) {
  Baseline baseline = weekly_runs(creeping(14, 0.003));
  for (StoredRun& run : baseline.runs) {
    const StoredVariant& variant = run.variants.front();
    run.step_seconds[variant.name] = std::exp(variant.times.front().contrasts.front());
  }
  EXPECT_EQ(judged_history(baseline).outcome, HistoryOutcome::drifts) << "by its anchors alone";
  for (StoredRun& run : baseline.runs) run.variants.clear();
  const VariantHistory history = judged_history(baseline);
  EXPECT_EQ(history.anchor, "");
  EXPECT_EQ(history.units.size(), 14U);
  EXPECT_DOUBLE_EQ(history.runs.front().raw, history.runs.front().normalised);
  EXPECT_EQ(history.outcome, HistoryOutcome::machine_drifts);
  EXPECT_FALSE(history.runs.front().half_interval) << "the rounds are not stored";
}

TEST(History, TellsAnAcceptedRunFromThatOfALedgerAndHowItsRoundsScatter) {
  Baseline baseline = weekly_runs(creeping(2, 0));
  baseline.runs[1].provenance.build = "0x7";
  baseline.runs[1].environment.driver = "590.2";
  baseline.runs[1].variants[0].times[0].contrasts = {1, 2, 3};
  const VariantHistory history = judged_history(baseline);
  EXPECT_TRUE(history.runs[0].is_accepted);
  EXPECT_FALSE(history.runs[1].is_accepted);
  EXPECT_EQ(history.runs[1].driver, "590.2");
  EXPECT_NEAR(*history.runs[1].half_interval, 4.3027 / std::sqrt(3.0), 1e-4);
}

// The normalised values rise, but the step time does not.
TEST(History, DoesNotCallADriftWhatOnlyTheAnchorDoes) {
  Baseline baseline = weekly_runs(creeping(12, 0.003));
  for (std::size_t run = 0; run < 12; ++run)
    baseline.runs[run].variants[0].anchor_seconds *= std::exp(-0.004 * static_cast<double>(run));
  EXPECT_EQ(judged_history(baseline).outcome, HistoryOutcome::steady);
}

TEST(History, BeginsAnewWithWhatCannotBeCompared) {
  const std::vector<std::pair<const char*, std::function<void(StoredRun&)>>> changes{
      {"the driver branch is '590', the stored runs have '580'",
       [](StoredRun& run) { run.environment.driver = "590.1"; }},
      {"the knobs of 'fix' are not those of the stored runs",
       [](StoredRun& run) { run.variants[0].knobs += 1; }},
      {"another GPU, GPU-2", [](StoredRun& run) { run.environment.uuid = "GPU-2"; }}};
  for (const auto& [why, change] : changes) {
    Baseline baseline = weekly_runs(creeping(14, 0));
    for (std::size_t run = 7; run < 14; ++run) {
      change(baseline.runs[run]);
      for (double& contrast : baseline.runs[run].variants[0].times[0].contrasts) contrast += 0.05;
    }
    const VariantHistory history = judged_history(baseline);
    EXPECT_EQ(history.outcome, HistoryOutcome::steady) << why;
    EXPECT_EQ(history.units.size(), 7U) << why;
    EXPECT_EQ(history.runs.size(), 14U) << "all are shown";
    ASSERT_EQ(history.periods.size(), 2U) << why;
    EXPECT_EQ(history.periods[1].why, why);
    EXPECT_FALSE(history.runs[6].is_compared);
    EXPECT_TRUE(history.runs[7].is_compared);
    EXPECT_NEAR(history.periods[1].oldest - history.periods[0].oldest, 0.05, 0.002);
  }
  Baseline meant = weekly_runs(creeping(14, 0));
  meant.runs[7].baseline_reset = "checks its input now";
  const VariantHistory history = judged_history(meant);
  ASSERT_EQ(history.periods.size(), 2U);
  EXPECT_EQ(history.periods[1].why, "checks its input now");
  EXPECT_EQ(history.units.size(), 7U);
}

TEST(History, TakesUpThePeriodOfAGpuThatComesBack) {
  Baseline baseline = weekly_runs(creeping(20, 0));
  for (std::size_t run = 1; run < 20; run += 2) baseline.runs[run].environment.uuid = "GPU-2";
  const VariantHistory history = judged_history(baseline);
  EXPECT_EQ(history.periods.size(), 2U);
  EXPECT_EQ(history.units.size(), 10U) << "those of the latest run's GPU";
}

TEST(History, FindsTheCommitsOfAStep) {
  std::vector<double> contrasts = creeping(20, 0, 0.002);
  for (std::size_t run = 12; run < 20; ++run) contrasts[run] += 0.02;
  const VariantHistory history = judged_history(weekly_runs(contrasts));
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_NEAR(history.changes[0].shift, 0.02, 0.004);
  EXPECT_EQ(commits_around(history, history.changes[0].unit).before, "c11");
  EXPECT_EQ(commits_around(history, history.changes[0].unit).after, "c12");
}

TEST(History, IsByDateNotByTheOrderOfTheFile) {
  Baseline baseline = weekly_runs(creeping(12, 0.003));
  std::reverse(baseline.runs.begin(), baseline.runs.end());
  const VariantHistory history = judged_history(baseline);
  EXPECT_EQ(history.outcome, HistoryOutcome::drifts);
  EXPECT_EQ(history.runs.front().commit, "c0");
}

TEST(History, SharesItsErrorAmongAllThatAreWatched) {
  std::vector<VariantHistory> all;
  for (const std::size_t runs : {12U, 12U, 3U, 12U, 12U}) {
    for (VariantHistory& one : histories_of(weekly_runs(creeping(runs, 0)), one_variant))
      all.push_back(std::move(one));
  }
  judge_drifts(all);
  for (const VariantHistory& one : all) EXPECT_DOUBLE_EQ(one.error, drift_error_a_year / 4);
}

TEST(History, KnowsTheLimitOfItsAssertion) {
  const auto limit_of_assertion = [](const Expectation& assertion) {
    const Scenario scenario = scenario_of_one({assertion});
    return histories_of(weekly_runs({1}), scenario).front().limit;
  };
  const auto slide = limit_of_assertion(no_slide);
  ASSERT_TRUE(slide);
  EXPECT_NEAR(std::exp(*slide), 1 / 0.98, 1e-12);
  const auto time =
      limit_of_assertion(fix_against_stored(Metric::step_ms_mean, Relation::at_most, 1.03));
  ASSERT_TRUE(time);
  EXPECT_NEAR(std::exp(*time), 1.03, 1e-12);
  EXPECT_FALSE(
      limit_of_assertion(fix_against_stored(Metric::step_ms_mean, Relation::at_least, 0.5)));
  EXPECT_FALSE(
      limit_of_assertion(fix_against_stored(Metric::launches_per_step, Relation::at_most, 1)));
}

TEST(History, RefusesADateThatIsNone) {
  for (const char* date : {"", "yesterday", "2026-13-01", "2026-02-30T10:00:00Z", "2026-1-1",
                           "2026-01-01 10:00:00Z"}) {
    EXPECT_FALSE(weeks_of_date(date)) << date;
    Baseline baseline = weekly_runs({1, 1});
    baseline.runs[1].provenance.date = date;
    try {
      (void)histories_of(baseline, one_variant);
      ADD_FAILURE() << date;
    } catch (const RequestError& error) {
      EXPECT_EQ(error.diagnostics().front().place.file, baseline.file);
    }
  }
  EXPECT_NEAR(*weeks_of_date("2026-01-08") - *weeks_of_date("2026-01-01T12:00:00Z"), 6.5 / 7, 1e-9);
}

}  // namespace
}  // namespace stepgate
