// SPDX-License-Identifier: MIT
// Tests handwritten verdicts before and after a change of a knob.
#include "judge/verdict/mutation.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

Verdict verdict_of(std::vector<std::pair<std::string, Outcome>> assertions) {
  Verdict verdict;
  for (auto& [name, outcome] : assertions) {
    verdict.assertions.emplace_back();
    verdict.assertions.back().name = name;
    verdict.assertions.back().outcome = outcome;
  }
  return verdict;
}

const Verdict before = verdict_of(
    {{"faster", Outcome::passes}, {"no_waits", Outcome::passes}, {"open", Outcome::undecided}});

MutationEffect after(Outcome faster, Outcome no_waits, Outcome open = Outcome::undecided) {
  return effect_of(before,
                   verdict_of({{"faster", faster}, {"no_waits", no_waits}, {"open", open}}));
}

TEST(Mutation, IsNoticedByARefutationAlone) {
  EXPECT_EQ(after(Outcome::passes, Outcome::fails), MutationEffect::fails);
  EXPECT_EQ(after(Outcome::undecided, Outcome::fails), MutationEffect::fails);
  EXPECT_EQ(after(Outcome::undecided, Outcome::passes), MutationEffect::undecided);
  EXPECT_EQ(after(Outcome::skipped, Outcome::passes), MutationEffect::undecided);
  EXPECT_EQ(after(Outcome::passes, Outcome::passes), MutationEffect::survives);
  EXPECT_EQ(after(Outcome::passes, Outcome::passes, Outcome::fails), MutationEffect::survives)
      << "an assertion that did not pass before says nothing";
}

TEST(Mutation, IsNoticedByLossesThatDisagree) {
  Verdict broken = before;
  broken.broken = "losses disagree";
  EXPECT_EQ(effect_of(before, broken), MutationEffect::fails);
  EXPECT_EQ(effect_of(broken, broken), MutationEffect::survives) << "they did so before";
}

TEST(Mutation, NamesTheAssertionsInTheirOrder) {
  const Verdict now = verdict_of({{"no_waits", Outcome::fails}, {"faster", Outcome::undecided}});
  using Names = std::vector<std::string>;
  EXPECT_EQ(no_longer_holding(before, now, false), (Names{"faster", "no_waits"}));
  EXPECT_EQ(no_longer_holding(before, now, true), (Names{"no_waits"}));
  EXPECT_EQ(no_longer_holding(before, verdict_of({}), false), (Names{"faster", "no_waits"}))
      << "an assertion that is gone does not pass";
}

TEST(Mutation, TellsWhatStepsCountDifferently) {
  const std::map<Metric, double> was{{Metric::launches_per_step, 26}, {Metric::copies_per_step, 1}};
  const std::map<Metric, double> is{{Metric::launches_per_step, 26}, {Metric::copies_per_step, 0}};
  const std::vector<ChangedCount> changed = changed_counts(was, is);
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].metric, Metric::copies_per_step);
  EXPECT_EQ(changed[0].before, 1);
  EXPECT_EQ(changed[0].after, 0);
}

}  // namespace
}  // namespace stepgate
