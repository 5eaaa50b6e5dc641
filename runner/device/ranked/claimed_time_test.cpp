// SPDX-License-Identifier: MIT
#include "device/ranked/claimed_time.h"

#include <gtest/gtest.h>

#include <random>

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Returns the words after so many answers of 20 ms that each claim this share of their time; half
// of their steps are scored.
std::string after(int answers, double share, ClaimedTimes& times) {
  std::string words;
  for (int answer = 0; answer < answers && words.empty(); ++answer) {
    const nanoseconds claimed(static_cast<std::int64_t>(share * 10'000'000));
    words = times.problem_with("'fix'", {.claimed = claimed, .waited = 20ms, .explained = 2})
                .value_or("");
  }
  return words;
}

TEST(ClaimedTimes, AreBelievedWhereTheyExplainTheWait) {
  ClaimedTimes times;
  EXPECT_EQ(after(1000, 1, times), "");
  EXPECT_EQ(after(1000, 0.82, times), "") << "the request costs 2 ms, and a tenth is allowed";
}

TEST(ClaimedTimes, AreNotBelievedWhereEveryAnswerComesLater) {
  ClaimedTimes times;
  EXPECT_EQ(after(late_in_a_row - 1, 0.5, times), "");
  EXPECT_EQ(after(1, 0.5, times),
            "says that steps of 'fix' took 100 ms, and answered after 200 ms, 10 times in a row "
            "later than it says; its clock cannot be believed");
}

TEST(ClaimedTimes, AreBelievedWhereAnAnswerIsLateNowAndThen) {
  ClaimedTimes times;
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(after(late_in_a_row - 1, 0.5, times), "");
    EXPECT_EQ(after(1, 1, times), "");
  }
}

// Ten answers of 5 ms are too short to tell a clock from the cost of requests.
TEST(ClaimedTimes, AreBelievedUntilTheyAddUpToALongTime) {
  ClaimedTimes times;
  for (int answer = 0; answer < 19; ++answer)
    EXPECT_FALSE(times.problem_with("'fix'", {.claimed = 1ms, .waited = 5ms}));
  EXPECT_TRUE(times.problem_with("'fix'", {.claimed = 1ms, .waited = 5ms}));
}

TEST(ClaimedTimes, AreNotBelievedWhereTheyAreLongerThanTheWait) {
  ClaimedTimes times;
  EXPECT_FALSE(times.problem_with("'fix'", {.claimed = 11ms, .waited = 10ms}));
  EXPECT_EQ(times.problem_with("'fix'", {.claimed = 12ms, .waited = 10ms}),
            "says that steps of 'fix' took 12 ms, but answered within 10 ms");
}

TEST(ClaimedTimes, OfOtherStepsAreOthers) {
  ClaimedTimes times;
  for (int answer = 0; answer < 1000; ++answer) {
    const std::string steps = "'" + std::to_string(answer) + "'";
    EXPECT_FALSE(times.problem_with(steps, {.claimed = 1ms, .waited = 20ms}));
  }
}

// Answers of a busy machine are late by an exponential time of 3 ms on average.
TEST(ClaimedTimes, AreBelievedOnABusyMachine) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> late(1 / 3e6);
  ClaimedTimes times;
  for (int answer = 0; answer < 100'000; ++answer) {
    const nanoseconds waited = 20ms + nanoseconds(static_cast<std::int64_t>(late(random)));
    ASSERT_FALSE(times.problem_with("'fix'", {.claimed = 10ms, .waited = waited, .explained = 2}))
        << answer;
  }
}

}  // namespace
}  // namespace stepgate
