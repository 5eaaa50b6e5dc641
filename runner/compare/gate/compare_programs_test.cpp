// SPDX-License-Identifier: MIT
#include "compare/gate/compare_programs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stepgate {
namespace {

StepCounts counted(StepCounts::Numbers numbers) {
  return {.planned = std::move(numbers),
          .untraced = "not traced",
          .counted = "20 steps from step 11 on of 1 process"};
}

CountedPair waits(double base, double head) {
  return {.workload = "p/small",
          .base = counted({{"host_waits_per_step", base}}),
          .head = counted({{"host_waits_per_step", head}})};
}

// The severity of the only finding after these launches: the first one finds a difference.
Severity severity_of(const std::vector<CountedPair>& launches) {
  std::vector<Finding> findings = compare_program_counts(launches.front());
  EXPECT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings.front().severity, Severity::blocks);
  keep_what_comes_again(findings, std::span(launches).first(1), std::span(launches).subspan(1));
  return findings.front().severity;
}

TEST(ComparePrograms, OnlyADifferenceThatComesAgainBlocks) {
  EXPECT_EQ(severity_of({waits(1, 2), waits(1, 2), waits(1, 2)}), Severity::blocks);
  EXPECT_EQ(severity_of({waits(1, 2), waits(1, 1), waits(1, 1)}), Severity::undecided);
  EXPECT_EQ(severity_of({waits(1, 2), waits(2, 2), waits(1, 2)}), Severity::undecided);
  // The sides differ by more than their launches do, and by less.
  EXPECT_EQ(severity_of({waits(1, 3), waits(1.5, 3), waits(1, 2.9)}), Severity::blocks);
  EXPECT_EQ(severity_of({waits(1, 2), waits(1.6, 2), waits(1, 2)}), Severity::undecided);
  EXPECT_EQ(severity_of({waits(1, 2)}), Severity::undecided) << "it was not launched again";
}

TEST(ComparePrograms, ACallIsOneFindingUnderTheCountThatContainsIt) {
  const CountedPair one{
      .workload = "p/small",
      .base = counted({{"host_waits_per_step", 1}, {"waits", 1}, {"device_syncs_per_step", 0}}),
      .head = counted({{"host_waits_per_step", 2}, {"waits", 2}, {"device_syncs_per_step", 1}})};
  EXPECT_EQ(compare_program_counts(one).size(), 1u);
  // A wait that takes the place of a copy that blocks is none less.
  const CountedPair moved{
      .workload = "p/small",
      .base = counted({{"host_waits_per_step", 1}, {"waits", 0}, {"blocking_copies", 1}}),
      .head = counted({{"host_waits_per_step", 1}, {"waits", 1}, {"blocking_copies", 0}})};
  const std::vector<Finding> findings = compare_program_counts(moved);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].what, "waits");
  EXPECT_EQ(findings[0].severity, Severity::blocks);
  EXPECT_EQ(findings[1].severity, Severity::note);
}

TEST(ComparePrograms, NoNumberIsNoZero) {
  CountedPair unknown = waits(0, 0);
  unknown.base.planned["pageable_copies_per_step"] = 0;
  ASSERT_EQ(compare_program_counts(unknown).size(), 1u);
  EXPECT_EQ(compare_program_counts(unknown)[0].severity, Severity::not_gated);
  CountedPair blind = waits(0, 0);
  blind.base = blind.head = {.untraced = "CUPTI is held"};
  ASSERT_TRUE(is_of_program(blind));
  EXPECT_EQ(compare_program_counts(blind).size(), 2u);
}

}  // namespace
}  // namespace stepgate
