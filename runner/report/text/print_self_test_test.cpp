// SPDX-License-Identifier: MIT
#include "report/text/print_gate.h"

#include <gtest/gtest.h>

#include <sstream>

namespace stepgate {
namespace {

// Returns a trial of `gates` gates, of which the first `slower` find HEAD slower.
TrialResult trial(std::string name, double share, int slower, int gates, double spread = 0) {
  TrialResult result{.name = std::move(name),
                     .injected = share,
                     .gates = gates,
                     .slower = slower,
                     .not_slower = gates - slower,
                     .slower_rate = clopper_pearson(slower, gates, 0.05),
                     .not_slower_rate = clopper_pearson(gates - slower, gates, 0.05),
                     .estimate = share,
                     .spread = spread};
  return result;
}

std::string told(std::vector<TrialResult> trials, double margin = 0.02) {
  std::ostringstream out;
  print_self_test(out,
                  {.workload = "a/b",
                   .margin = margin,
                   .alpha = 0.01,
                   .beta = 0.05,
                   .trials = std::move(trials)},
                  false);
  return out.str();
}

TEST(PrintSelfTest, SaysWhyIdenticalProgramsAreBlocked) {
  EXPECT_EQ(
      told({trial("identical", 0, 3, 20)}),
      "gates of identical programs differ by 0 % (standard deviation of their first 5 pairs' "
      "means), which their pairs explain: any margin keeps their rate\n"
      "a/b fails: identical blocks 3 of 20 gates, a rate above 4.2 % with 95 % confidence, "
      "where 1 % is promised; gates differ by too little to explain it, so see what `stepgate "
      "run` says of the environment, and keep other workload off this machine\n");
  EXPECT_EQ(
      told({trial("identical", 0, 3, 20, 0.02)}),
      "gates of identical programs differ by 2 % (standard deviation of their first 5 pairs' "
      "means), by 2 % more than their pairs explain: a margin of 5.3 % or more keeps their "
      "rate\n"
      "a/b fails: identical blocks 3 of 20 gates, a rate above 4.2 % with 95 % confidence, "
      "where 1 % is promised; gates differ by so much that no margin below 5.3 % keeps it, so "
      "widen --margin\n");
}

TEST(PrintSelfTest, SaysWhetherThereIsNoPowerOrTooFewGatesToTell) {
  const auto about_power = [](int slower, int gates) {
    TrialResult slow = trial("5 % slower", 0.05, slower, gates);
    slow.not_slower_rate = {};  // all other gates are undecided
    const std::string text = told({trial("identical", 0, 0, 20), slow});
    return text.substr(text.find("a/b"));
  };
  EXPECT_EQ(about_power(2, 20),
            "a/b undecided: no power: 5 % slower (seen +5.13 %) is found in 2 of 20 gates, a rate "
            "below 28 % with 95 % confidence; give each gate more with --budget, and keep other "
            "workload off this machine\n");
  EXPECT_EQ(about_power(4, 4),
            "a/b undecided: no power is shown: 5 % slower (seen +5.13 %) is found in 4 of 4 gates, "
            "a rate above 47 % with 95 % confidence; say more --trial-gates\n");
}

TEST(PrintSelfTest, SaysThatThereAreTooFewGatesOfIdenticalPrograms) {
  const std::string text = told({trial("identical", 0, 0, 19), trial("5 % slower", 0.05, 20, 20)});
  EXPECT_EQ(text.substr(text.find("a/b")),
            "a/b undecided: identical programs block 0 of 19 gates, a rate below 15 % with 95 % "
            "confidence; 20 gates or more say enough: --gates 20\n");
}

}  // namespace
}  // namespace stepgate
