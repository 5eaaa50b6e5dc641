// SPDX-License-Identifier: MIT
// The rule on step times that a real GPU produced: identical code is never called slower, and what
// is known to be slower is.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "judge/scripted_scenario.h"
#include "judge/timed_sentence.h"

namespace stepgate {
namespace {

using Blocks = std::map<int, double>;                                    // microseconds a step
using Recording = std::map<std::string, std::map<std::string, Blocks>>;  // by shape, by variant

Recording recording() {
  std::ifstream file(STEPGATE_SOURCE_DIR "/runner/judge/recorded/h200_blocks.csv");
  Recording blocks;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::string shape, variant, block, microseconds;
    std::getline(row, shape, ',');
    std::getline(row, variant, ',');
    std::getline(row, block, ',');
    std::getline(row, microseconds, ',');
    blocks[shape][variant][std::stoi(block)] = std::stod(microseconds);
  }
  return blocks;
}

// log(variant / good) of each mirrored round: blocks 2k and 2k + 1.
std::vector<double> contrasts(const std::map<std::string, Blocks>& shape, const std::string& name) {
  const Blocks& good = shape.at("good");
  const Blocks& variant = shape.at(name);
  std::vector<double> rounds;
  for (int block = 0; variant.contains(block + 1) && good.contains(block + 1); block += 2) {
    rounds.push_back(0.5 * std::log(variant.at(block) * variant.at(block + 1) /
                                    (good.at(block) * good.at(block + 1))));
  }
  return rounds;
}

// "variant.step_ms_mean <= (1 + margin) * good.step_ms_mean"
Outcome no_slower_than(double margin, const std::vector<double>& rounds) {
  TimedSentence test(fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 1 + margin),
                     0.01, 0.05);
  for (const double contrast : rounds) test.add(contrast - std::log1p(margin));
  return test.outcome();
}

TEST(RecordedRounds, AreAllThere) {
  const Recording shapes = recording();
  ASSERT_EQ(shapes.size(), 4U);
  for (const auto& [shape, variants] : shapes) {
    EXPECT_EQ(variants.size(), 8U) << shape;
    EXPECT_GE(contrasts(variants, "good_again").size(), 10U) << shape;
  }
}

TEST(RecordedRounds, NeverRefuteIdenticalCodeAtHalfAPercent) {
  for (const auto& [shape, variants] : recording()) {
    EXPECT_NE(no_slower_than(0.005, contrasts(variants, "good_again")), Outcome::refuted) << shape;
  }
}

TEST(RecordedRounds, ShowThatIdenticalCodeIsNoSlowerWhereTheGpuIsBusy) {
  const Recording shapes = recording();
  for (const char* shape : {"d1024_L4_B1024", "d4096_L4_B4096"}) {
    EXPECT_EQ(no_slower_than(0.005, contrasts(shapes.at(shape), "good_again")), Outcome::holds)
        << shape;
  }
}

// 7 to 12 % slower, in quiet rounds with outliers of 5 to 20 % from the host.
TEST(RecordedRounds, RefuteLaunchBoundSlowdownsWithinTheRecording) {
  const Recording shapes = recording();
  for (const char* variant : {"sync_device", "sync_item", "malloc"}) {
    const std::vector<double> rounds = contrasts(shapes.at("d1024_L4_B64"), variant);
    EXPECT_LE(rounds.size(), 12U);
    EXPECT_EQ(no_slower_than(0.005, rounds), Outcome::refuted) << variant;
  }
}

TEST(RecordedRounds, RefuteEveryLargeSlowdownWithinNineRounds) {
  const std::map<std::string, std::vector<std::string>> slower{
      {"d256_L4_B64", {"malloc", "sync_device", "sync_item", "pageable"}},
      {"d1024_L4_B1024", {"malloc", "sync_item", "pageable"}},
      {"d4096_L4_B4096", {"malloc", "pageable"}}};
  const Recording shapes = recording();
  for (const auto& [shape, variants] : slower) {
    for (const std::string& variant : variants) {
      std::vector<double> rounds = contrasts(shapes.at(shape), variant);
      rounds.resize(9);
      EXPECT_EQ(no_slower_than(0.005, rounds), Outcome::refuted) << shape << " " << variant;
    }
  }
}

}  // namespace
}  // namespace stepgate
