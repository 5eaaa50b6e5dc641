// SPDX-License-Identifier: MIT
#include "device/reference/rank_meetings.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "device/device.h"

namespace stepgate {
namespace {

constexpr std::int64_t word = 4;

// A collective of `words` fp32 numbers in total.
Collective of_words(CollectiveKind kind, std::int64_t words, std::int64_t ranks) {
  Collective made{.kind = kind, .dtype = DType::fp32, .reduction = Reduction::sum};
  made.from.bytes = word * words / (kind == CollectiveKind::all_gather ? ranks : 1);
  made.to.bytes = word * words / (kind == CollectiveKind::reduce_scatter ? ranks : 1);
  return made;
}

using Words = std::vector<float>;

const std::byte* bytes(const Words& words) {
  return reinterpret_cast<const std::byte*>(words.data());
}
std::byte* bytes(Words& words) {
  return reinterpret_cast<std::byte*>(words.data());
}

// The numbers that two ranks have after the collective, when they contribute `first` and `second`.
std::array<Words, 2> met(const Collective& collective, const Words& first, const Words& second) {
  RankMeeting meeting(2);
  const auto room = static_cast<std::size_t>(collective.to.bytes / word);
  std::array<Words, 2> to = {Words(room), Words(room)};
  meeting.come(1, collective, bytes(second), bytes(to[1]));
  EXPECT_FALSE(meeting.over()->done);
  meeting.come(0, collective, bytes(first), bytes(to[0]));
  EXPECT_TRUE(meeting.over()->done);
  return to;
}

TEST(RankMeeting, AllReduceGivesEveryRankTheWholeSum) {
  Collective sum = of_words(CollectiveKind::all_reduce, 4, 2);
  const auto made = met(sum, {1, 2, 3, 4}, {10, 20, 30, 40});
  EXPECT_EQ(made[0], (Words{11, 22, 33, 44}));
  EXPECT_EQ(made[1], made[0]);
  sum.reduction = Reduction::average;
  EXPECT_EQ(met(sum, {1, 2, 3, 4}, {2, 2, 2, 2})[1], (Words{1.5, 2, 2.5, 3}));
}

TEST(RankMeeting, ReduceScatterGivesEveryRankItsPart) {
  const auto made =
      met(of_words(CollectiveKind::reduce_scatter, 4, 2), {1, 2, 3, 4}, {10, 20, 30, 40});
  EXPECT_EQ(made[0], (Words{11, 22}));
  EXPECT_EQ(made[1], (Words{33, 44}));
}

TEST(RankMeeting, AllGatherPutsThePartsTogether) {
  const auto made = met(of_words(CollectiveKind::all_gather, 4, 2), {1, 2}, {3, 4});
  EXPECT_EQ(made[0], (Words{1, 2, 3, 4}));
  EXPECT_EQ(made[1], made[0]);
}

TEST(RankMeeting, BroadcastGivesEveryRankWhatRank0Has) {
  const auto made = met(of_words(CollectiveKind::broadcast, 3, 2), {1, 2, 3}, {4, 5, 6});
  EXPECT_EQ(made[0], (Words{1, 2, 3}));
  EXPECT_EQ(made[1], made[0]);
}

// All sharded steps gather in place like this.
TEST(RankMeeting, APartMayLieInTheWhole) {
  Words first = {1, 2, 0, 0}, second = {0, 0, 3, 4};
  const Collective gather = of_words(CollectiveKind::all_gather, 4, 2);
  RankMeeting meeting(2);
  meeting.come(0, gather, bytes(first), bytes(first));
  meeting.come(1, gather, bytes(second) + 2 * word, bytes(second));
  EXPECT_EQ(first, (Words{1, 2, 3, 4}));
  EXPECT_EQ(second, first);
}

TEST(RankMeeting, RefusesRanksThatDisagree) {
  Words words(4);
  RankMeeting meeting(3);
  const Collective all = of_words(CollectiveKind::all_reduce, 4, 3);
  const Collective less = of_words(CollectiveKind::all_reduce, 2, 3);
  meeting.come(0, all, bytes(words), bytes(words));
  try {
    meeting.come(2, less, bytes(words), bytes(words));
    FAIL() << "ranks reduce different sizes together";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "rank 2 is at all-reduce of 8 B where rank 0 is at all-reduce of 16 B");
  }
}

TEST(RankMeetings, OfOneCommunicatorAreToldApartByTheirOrder) {
  RankMeetings meetings(2);
  const auto first = meetings.next(0, 0);
  const auto second = meetings.next(0, 0);
  EXPECT_NE(first, second);
  EXPECT_NE(meetings.next(0, 1), first);  // on another communicator
  EXPECT_EQ(meetings.next(1, 0), first);
  EXPECT_EQ(meetings.next(1, 0), second);
  EXPECT_NE(meetings.next(1, 0), second);
}

}  // namespace
}  // namespace stepgate
