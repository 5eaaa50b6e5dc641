// SPDX-License-Identifier: MIT
// Tests the decision table of raw value, anchor and normalised value, row by row and as a whole.
#include "judge/stored/stored_rule.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

enum class Anchor { steady, slower, faster };

StoredPosition at(Against raw, Anchor anchor, Against normalised) {
  return {.raw = raw,
          .raw_looks_beyond = raw == Against::beyond,
          .normalised = normalised,
          .anchor_is_slower = anchor == Anchor::slower,
          .anchor_is_faster = anchor == Anchor::faster};
}

TEST(StoredRule, PassesWhereBothAreWithinTheLimit) {
  EXPECT_EQ(decide_by_both(at(Against::within, Anchor::steady, Against::within)).outcome,
            Outcome::passes);
}

TEST(StoredRule, FailsWhereBothAreBeyondAndSaysThatTheMachineIsSlowerToo) {
  for (const Anchor anchor : {Anchor::steady, Anchor::faster}) {
    const StoredDecision decision = decide_by_both(at(Against::beyond, anchor, Against::beyond));
    EXPECT_EQ(decision.outcome, Outcome::fails);
    EXPECT_EQ(decision.note, StoredNote::none);
  }
  const StoredDecision decision =
      decide_by_both(at(Against::beyond, Anchor::slower, Against::beyond));
  EXPECT_EQ(decision.outcome, Outcome::fails);
  EXPECT_EQ(decision.note, StoredNote::machine_is_slower);
}

TEST(StoredRule, SaysThatTheMachineIsSlowerWhereTheAnchorAccountsForIt) {
  EXPECT_EQ(decide_by_both(at(Against::beyond, Anchor::slower, Against::within)).outcome,
            Outcome::machine_slower);
  // Here the assertion demands that the step is slower.
  const StoredDecision faster =
      decide_by_both(at(Against::beyond, Anchor::faster, Against::within));
  EXPECT_EQ(faster.outcome, Outcome::not_comparable);
  EXPECT_EQ(faster.note, StoredNote::machine_is_faster);
}

TEST(StoredRule, IsUndecidedWhereOnlyTheAnchorPutsTheStepBeyondTheLimit) {
  for (const Against raw : {Against::within, Against::open}) {
    const StoredDecision decision = decide_by_both(at(raw, Anchor::faster, Against::beyond));
    EXPECT_EQ(decision.outcome, Outcome::undecided);
    EXPECT_EQ(decision.note, StoredNote::anchor_moved);
  }
}

TEST(StoredRule, NeedsNoMoreThanAnEstimateOfTheRawValueToRefute) {
  StoredPosition position = at(Against::open, Anchor::steady, Against::beyond);
  position.raw_looks_beyond = true;
  EXPECT_EQ(decide_by_both(position).outcome, Outcome::fails);
}

// This must hold for every state of the anchor.
TEST(StoredRule, NeverPassesWhereEitherIsNotShownToBeWithin) {
  for (const Against raw : {Against::within, Against::open, Against::beyond}) {
    for (const Anchor anchor : {Anchor::steady, Anchor::slower, Anchor::faster}) {
      for (const Against normalised : {Against::within, Against::open, Against::beyond}) {
        if (raw == Against::within && normalised == Against::within) continue;
        EXPECT_NE(decide_by_both(at(raw, anchor, normalised)).outcome, Outcome::passes);
        if (normalised != Against::beyond) {
          EXPECT_NE(decide_by_both(at(raw, anchor, normalised)).outcome, Outcome::fails);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepgate
