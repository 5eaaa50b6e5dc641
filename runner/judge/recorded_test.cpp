// SPDX-License-Identifier: MIT
// Tests the decision rule on step times that a real GPU produced: identical code is never called
// slower, and code that is known to be slower is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "judge/assertions/timed_assertion.h"
#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

using Blocks = std::map<int, double>;                                    // microseconds per step
using Recording = std::map<std::string, std::map<std::string, Blocks>>;  // by shape, by variant

// Reads rows of shape, variant, block or round, and a time.
Recording read_recording(const std::string& name) {
  std::ifstream file(STEPGATE_SOURCE_DIR "/runner/judge/recorded/" + name);
  Recording times;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::string shape, variant, index, time;
    std::getline(row, shape, ',');
    std::getline(row, variant, ',');
    std::getline(row, index, ',');
    std::getline(row, time, ',');
    times[shape][variant][std::stoi(index)] = std::stod(time);
  }
  return times;
}

Recording recording() {
  return read_recording("h200_blocks.csv");
}

// Returns log(variant / good) of each mirrored round, made of blocks 2k and 2k + 1.
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
  TimedAssertion test(fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 1 + margin),
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
    EXPECT_NE(no_slower_than(0.005, contrasts(variants, "good_again")), Outcome::fails) << shape;
  }
}

TEST(RecordedRounds, ShowThatIdenticalCodeIsNoSlowerWhereTheGpuIsBusy) {
  const Recording shapes = recording();
  for (const char* shape : {"d1024_L4_B1024", "d4096_L4_B4096"}) {
    EXPECT_EQ(no_slower_than(0.005, contrasts(shapes.at(shape), "good_again")), Outcome::passes)
        << shape;
  }
}

// These variants are 7 to 12 % slower, in quiet rounds with host outliers of 5 to 20 %.
TEST(RecordedRounds, RefuteLaunchBoundSlowdownsWithinTheRecording) {
  const Recording shapes = recording();
  for (const char* variant : {"sync_device", "sync_item", "malloc"}) {
    const std::vector<double> rounds = contrasts(shapes.at("d1024_L4_B64"), variant);
    EXPECT_LE(rounds.size(), 12U);
    EXPECT_EQ(no_slower_than(0.005, rounds), Outcome::fails) << variant;
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
      EXPECT_EQ(no_slower_than(0.005, rounds), Outcome::fails) << shape << " " << variant;
    }
  }
}

// Returns log(variant / good) of every round. Each round loaded all variants anew into every slot.
std::vector<double> contrasts_of_loads(const std::string& shape, const std::string& variant) {
  const Recording rounds = read_recording("h200_rounds.csv");
  std::vector<double> contrasts;
  for (const auto& [round, time] : rounds.at(shape).at(variant)) {
    contrasts.push_back(std::log(time / rounds.at(shape).at("good").at(round)));
  }
  return contrasts;
}

// Returns the outcomes of gates that begin at each recorded round and have at most `rounds` rounds.
std::vector<Outcome> gates_of(const std::vector<double>& contrasts, std::size_t rounds,
                              double margin) {
  std::vector<Outcome> outcomes;
  for (std::size_t first = 0; first + rounds <= contrasts.size(); ++first) {
    const auto begin = contrasts.begin() + static_cast<std::ptrdiff_t>(first);
    outcomes.push_back(
        no_slower_than(margin, std::vector(begin, begin + static_cast<std::ptrdiff_t>(rounds))));
  }
  return outcomes;
}

std::ptrdiff_t count(const std::vector<Outcome>& gates, Outcome outcome) {
  return std::count(gates.begin(), gates.end(), outcome);
}

TEST(RecordedLoads, NeverRefuteIdenticalCodeNotEvenWithoutAMargin) {
  for (const char* shape : {"1024x64", "1024x4096"}) {
    const std::vector<double> contrasts = contrasts_of_loads(shape, "good_again");
    ASSERT_EQ(contrasts.size(), 40U);
    for (const double margin : {0.0, 0.005}) {
      EXPECT_EQ(count(gates_of(contrasts, 20, margin), Outcome::fails), 0) << shape;
    }
  }
}

// This variant is 8.8 % slower. A round of all three variants takes 0.31 s on the GPU, so it is
// decided within three seconds.
TEST(RecordedLoads, FailALaunchBoundSlowdownWithinNineRounds) {
  const auto gates = gates_of(contrasts_of_loads("1024x64", "sync_device"), 9, 0.005);
  EXPECT_EQ(count(gates, Outcome::fails), std::ssize(gates));
}

TEST(RecordedLoads, ShowThatIdenticalCodeIsNoSlowerWithinTenRoundsWhereTheGpuIsBusy) {
  const auto gates = gates_of(contrasts_of_loads("1024x4096", "good_again"), 10, 0.005);
  EXPECT_EQ(count(gates, Outcome::passes), std::ssize(gates));
}

// One wait per step costs 0.7 % in this shape, and rounds differ by 0.2 %.
TEST(RecordedLoads, TellSevenTenthsOfAPercentFromNothingWithinTwelveRounds) {
  const auto gates = gates_of(contrasts_of_loads("1024x4096", "sync_device"), 12, 0);
  EXPECT_EQ(count(gates, Outcome::fails), std::ssize(gates));
}

// Returns outcomes of gates of 30 rounds (2.5 s) in all recorded processes of the step. `slower` is
// added to the contrasts, in logarithms.
std::vector<Outcome> interleaved_gates(const std::string& step, const std::string& of,
                                       double slower) {
  const Recording recorded = read_recording("h200_interleaved.csv");
  std::vector<Outcome> gates;
  for (const char* process : {" 1", " 2", " 3", " 4"}) {
    const std::map<std::string, Blocks>& variants = recorded.at(step + process);
    std::vector<double> contrasts;
    for (const auto& [round, time] : variants.at("good_again" + of)) {
      contrasts.push_back(std::log(time / variants.at("good" + of).at(round)) + slower);
    }
    EXPECT_EQ(contrasts.size(), 40U);
    const std::vector<Outcome> own = gates_of(contrasts, 30, 0.005);
    gates.insert(gates.end(), own.begin(), own.end());
  }
  return gates;
}

TEST(RecordedTurns, DecideMoreLaunchBoundGatesByTrimmedMeans) {
  for (const char* step : {"graph_launch", "256x64"}) {
    SCOPED_TRACE(step);
    const auto same = interleaved_gates(step, " trimmed", 0);
    const auto same_by_means = interleaved_gates(step, "", 0);
    const auto slower = interleaved_gates(step, " trimmed", std::log(1.01));
    const auto slower_by_means = interleaved_gates(step, "", std::log(1.01));
    std::printf(
        "%s, %zu gates of 30 rounds: identical held %td, by means %td; 1 %% slower found "
        "%td, by means %td\n",
        step, same.size(), count(same, Outcome::passes), count(same_by_means, Outcome::passes),
        count(slower, Outcome::fails), count(slower_by_means, Outcome::fails));
    EXPECT_EQ(count(same, Outcome::fails), 0);
    EXPECT_EQ(count(same_by_means, Outcome::fails), 0);
    EXPECT_EQ(count(slower, Outcome::passes), 0);
    EXPECT_GT(count(same, Outcome::passes) + count(slower, Outcome::fails),
              count(same_by_means, Outcome::passes) + count(slower_by_means, Outcome::fails));
  }
}

}  // namespace
}  // namespace stepgate
