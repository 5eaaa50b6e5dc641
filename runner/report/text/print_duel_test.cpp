// SPDX-License-Identifier: MIT
#include "report/text/print_duel.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

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

}  // namespace
}  // namespace stepgate
