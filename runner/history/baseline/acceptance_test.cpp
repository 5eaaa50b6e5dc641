// SPDX-License-Identifier: MIT
// The reasons that keep a run out of a baseline.
#include "history/baseline/acceptance.h"

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
  verdict.sentences.emplace_back();
  verdict.sentences.back().name = "line";
  verdict.sentences.back().text = "text of line";
  verdict.sentences.back().reason = "numbers";
  verdict.sentences.back().outcome = outcome;
  return verdict;
}

TEST(Acceptance, WantsNoSentenceRefuted) {
  for (const Outcome outcome : {Outcome::holds, Outcome::undecided, Outcome::skipped,
                                Outcome::no_baseline, Outcome::not_comparable}) {
    EXPECT_EQ(reason_against_storing(verdict_with(outcome)), std::nullopt);
  }
  EXPECT_EQ(reason_against_storing(verdict_with(Outcome::refuted)),
            "line is refuted: text of line (numbers)");
}

TEST(Acceptance, SaysHowToReplaceRunsThatRefuteAChangeThatIsMeant) {
  Verdict verdict = verdict_with(Outcome::refuted);
  EXPECT_NE(reason_against_storing(verdict, true), std::nullopt);
  for (const Outcome outcome : {Outcome::refuted, Outcome::machine_slower}) {
    verdict.sentences.back().outcome = outcome;
    verdict.sentences.back().about_stored_runs = true;
    EXPECT_EQ(reason_against_storing(verdict),
              "line is " + std::string(in_words(outcome)) +
                  ": text of line (numbers); if that is meant, --new-era TEXT stores it and says "
                  "why");
    EXPECT_EQ(reason_against_storing(verdict, true), std::nullopt);
  }
  verdict.sentences.back().outcome = Outcome::not_comparable;
  EXPECT_EQ(reason_against_storing(verdict), std::nullopt);
  verdict.sentences.back().stored.emplace().note = StoredNote::machine_is_faster;
  EXPECT_NE(reason_against_storing(verdict), std::nullopt);
}

TEST(Acceptance, WantsARunThatIsWholeAndCanBeTrusted) {
  Verdict verdict = verdict_with(Outcome::holds);
  verdict.rounds = rounds_of_stored_run - 1;
  EXPECT_NE(reason_against_storing(verdict), std::nullopt);
  verdict = verdict_with(Outcome::holds);
  verdict.broken = "losses differ";
  EXPECT_EQ(reason_against_storing(verdict), "losses differ");
  EXPECT_EQ(reason_against_gate(verdict), "losses differ");
  verdict = verdict_with(Outcome::skipped);
  verdict.skipped_because = "needs 3 GPUs";
  EXPECT_EQ(reason_against_storing(verdict), "needs 3 GPUs");
}

TEST(Acceptance, WantsTheGateShownEqualToItselfAndNotJustNotRefuted) {
  EXPECT_EQ(reason_against_gate(verdict_with(Outcome::holds)), std::nullopt);
  EXPECT_EQ(reason_against_gate(verdict_with(Outcome::undecided)),
            "the gate fails against itself: text of line is undecided (numbers)");
  EXPECT_EQ(reason_against_gate(verdict_with(Outcome::refuted)),
            "the gate fails against itself: text of line is refuted (numbers)");
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
