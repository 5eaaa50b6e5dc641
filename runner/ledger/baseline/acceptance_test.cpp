// SPDX-License-Identifier: MIT
// Tests the reasons that keep a run out of a baseline.
#include "ledger/baseline/acceptance.h"

#include <gtest/gtest.h>

#include "judge/testing/stored_runs_by_hand.h"
#include "judge/verdict/words.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"

namespace stepgate {
namespace {

Verdict verdict_with(Outcome outcome) {
  Verdict verdict;
  verdict.rounds = rounds_of_stored_run;
  verdict.assertions.emplace_back();
  verdict.assertions.back().name = "line";
  verdict.assertions.back().text = "text of line";
  verdict.assertions.back().reason = "numbers";
  verdict.assertions.back().outcome = outcome;
  return verdict;
}

TEST(Acceptance, WantsNoAssertionRefuted) {
  for (const Outcome outcome : {Outcome::passes, Outcome::undecided, Outcome::skipped,
                                Outcome::no_baseline, Outcome::not_comparable}) {
    EXPECT_EQ(reason_against_storing(verdict_with(outcome)), std::nullopt);
  }
  EXPECT_EQ(reason_against_storing(verdict_with(Outcome::fails)),
            "line fails: text of line (numbers)");
}

TEST(Acceptance, SaysHowToReplaceRunsThatFailAChangeThatIsMeant) {
  Verdict verdict = verdict_with(Outcome::fails);
  EXPECT_NE(reason_against_storing(verdict, true), std::nullopt);
  for (const Outcome outcome : {Outcome::fails, Outcome::machine_slower}) {
    verdict.assertions.back().outcome = outcome;
    verdict.assertions.back().about_stored_runs = true;
    EXPECT_EQ(reason_against_storing(verdict),
              "line " + predicate_of(outcome) +
                  ": text of line (numbers); if that is meant, --reset TEXT stores it and says "
                  "why");
    EXPECT_EQ(reason_against_storing(verdict, true), std::nullopt);
  }
  verdict.assertions.back().outcome = Outcome::not_comparable;
  EXPECT_EQ(reason_against_storing(verdict), std::nullopt);
  verdict.assertions.back().stored.emplace().note = StoredNote::machine_is_faster;
  EXPECT_NE(reason_against_storing(verdict), std::nullopt);
}

TEST(Acceptance, WantsARunThatIsWholeAndCanBeTrusted) {
  Verdict verdict = verdict_with(Outcome::passes);
  verdict.rounds = rounds_of_stored_run - 1;
  EXPECT_NE(reason_against_storing(verdict), std::nullopt);
  verdict = verdict_with(Outcome::passes);
  verdict.broken = "losses differ";
  EXPECT_EQ(reason_against_storing(verdict), "losses differ");
  EXPECT_EQ(reason_against_gate(verdict), "losses differ");
  verdict = verdict_with(Outcome::skipped);
  verdict.skipped_because = "needs 3 GPUs";
  EXPECT_EQ(reason_against_storing(verdict), "needs 3 GPUs");
}

TEST(Acceptance, WantsTheGateShownEqualToItselfAndNotJustNotFailed) {
  EXPECT_EQ(reason_against_gate(verdict_with(Outcome::passes)), std::nullopt);
  EXPECT_EQ(reason_against_gate(verdict_with(Outcome::undecided)),
            "the gate cannot tell the step from itself: text of line is undecided (numbers); "
            "--budget SECONDS gives it longer");
  EXPECT_EQ(reason_against_gate(verdict_with(Outcome::fails)),
            "the gate fails against itself: text of line fails (numbers)");
}

TEST(SelfCheck, PlansTheSameStepTwice) {
  const Scenario scenario = scenario_of_one({});
  const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, 1));
  const SelfCheck check = self_check(scenario, scenario.variants[0], plans);
  ASSERT_EQ(check.plans.size(), 2U);
  EXPECT_EQ(check.plans[0].variant, "fix");
  EXPECT_EQ(check.plans[1].variant, "fix again");
  EXPECT_EQ(check.plans[1].seed, check.plans[0].seed);
  EXPECT_EQ(check.plans[1].operations.size(), check.plans[0].operations.size());
  EXPECT_EQ(check.scenario.expect[0].within, 0.03);
  Variant noisy = scenario.variants[0];
  noisy.gate.margin = 0.1;
  EXPECT_EQ(self_check(scenario, noisy, plans).scenario.expect[0].within, 0.1);
  noisy.gate.margin = 0.01;
  EXPECT_EQ(self_check(scenario, noisy, plans).scenario.expect[0].within, 0.03);
}

}  // namespace
}  // namespace stepgate
