// SPDX-License-Identifier: MIT
#include "report/text/print_duel.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/text/print_self_test.h"

namespace stepgate {
namespace {

DuelVerdict refuted_verdict() {
  DuelVerdict verdict;
  verdict.introduction.base = {
      .program = "p", .version = "1", .device = "d", .simulated = false, .works = {"a"}};
  verdict.introduction.head = verdict.introduction.base;
  verdict.works.push_back({.name = "a",
                           .outcome = Outcome::refuted,
                           .base_step_seconds = 1e-3,
                           .head_step_seconds = 1.1e-3,
                           .pairs = 7,
                           .superblocks = 21,
                           .timed = TimedEvidence{},
                           .reason = "why"});
  verdict.outcome = Outcome::refuted;
  verdict.notes = {"a note"};
  verdict.pairs = 7;
  verdict.wall_time = std::chrono::seconds(12);
  return verdict;
}

TEST(PrintDuel, SaysWhatWasDecidedByWhichUnitOfEvidenceAtWhatCost) {
  std::ostringstream out;
  print_duel(out, refuted_verdict(), Style::plain);
  EXPECT_EQ(out.str(),
            "\n"
            "  work  BASE step  HEAD step  pairs  superblocks\n"
            "  a          1 ms     1.1 ms      7           21\n"
            "\n"
            "  refuted         a\n"
            "                  why\n"
            "\n"
            "note: a note\n"
            "duel: refuted after 12 s; unit of evidence: launches of fresh processes (7 pairs); "
            "any work is wrongly refuted in at most 1 % of duels, one wrongly held in 5 %\n");
}

TEST(PrintDuel, SaysBeforehandWhatItTakes) {
  std::ostringstream out;
  const DuelVerdict verdict = refuted_verdict();
  print_duel_terms(out, verdict.introduction, {.works = {"a"}, .notes = {}}, verdict.settings, 30);
  EXPECT_EQ(out.str(),
            "duel of p 1 (BASE) and p 1 (HEAD) on d\n"
            "1 work; HEAD may be at most 1 % slower. At least 5 pairs of launches until a work "
            "holds, 7 until one is refuted, at most 30\n");
}

TEST(PrintDuel, WritesEverySegmentAsJson) {
  using namespace std::chrono_literals;
  DuelMeasurement measurement;
  measurement.works = {"a"};
  const Superblock block{DuelSegment{DuelSide::head, 2, 30ns},
                         {DuelSide::base, 2, 20ns},
                         {DuelSide::base, 2, 20ns},
                         {DuelSide::head, 2, 30ns}};
  measurement.pairs.push_back({.first = DuelSide::head, .works = {{0, 5, {block}}}});
  std::ostringstream out;
  write_duel_json(out, refuted_verdict(), measurement);
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json.at("unit_of_evidence"), "launch pair");
  EXPECT_EQ(json.at("pairs")[0].at("first"), "head");
  EXPECT_EQ(json.at("pairs")[0].at("works")[0].at("wash_out_steps"), 5);
  const auto& segment = json.at("pairs")[0].at("works")[0].at("superblocks")[0][1];
  EXPECT_EQ(segment.at("side"), "base");
  EXPECT_EQ(segment.at("elapsed_ns"), 20);
}

// So many gates, of which the first ones are slower and all others not.
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
  print_self_test(
      out,
      {.work = "a/b", .margin = margin, .alpha = 0.01, .beta = 0.05, .trials = std::move(trials)},
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
      "run` says of the environment, and keep other work off this machine\n");
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
    slow.not_slower_rate = {};  // the others are undecided
    const std::string text = told({trial("identical", 0, 0, 20), slow});
    return text.substr(text.find("a/b"));
  };
  EXPECT_EQ(about_power(2, 20),
            "a/b undecided: no power: 5 % slower (seen +5.13 %) is found in 2 of 20 gates, a rate "
            "below 28 % with 95 % confidence; give each gate more with --budget, and keep other "
            "work off this machine\n");
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
