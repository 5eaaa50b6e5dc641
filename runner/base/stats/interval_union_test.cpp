// SPDX-License-Identifier: MIT
// Tests unions of intervals against results by hand and against the points that they cover.
#include "base/stats/interval_union.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace stepgate {
namespace {

using Intervals = std::vector<Interval>;

TEST(IntervalUnion, MergesWhatOverlapsOrTouchesAndDropsWhatIsEmpty) {
  EXPECT_EQ(union_of({{5, 9}, {0, 2}, {2, 3}, {8, 12}, {20, 20}, {31, 30}}),
            (Intervals{{0, 3}, {5, 12}}));
  EXPECT_EQ(union_of({}), Intervals{});
  EXPECT_EQ(union_of({{0, 10}, {2, 3}}), (Intervals{{0, 10}}));
}

TEST(IntervalUnion, AddsUpLengths) {
  EXPECT_EQ(length_of(Intervals{{0, 3}, {5, 12}}), 10);
  EXPECT_EQ(length_of(Intervals{}), 0);
}

TEST(IntervalUnion, IntersectsAndSubtracts) {
  const Intervals one{{0, 10}, {20, 30}};
  const Intervals other{{5, 22}, {25, 26}, {30, 40}};
  EXPECT_EQ(intersection_of(one, other), (Intervals{{5, 10}, {20, 22}, {25, 26}}));
  EXPECT_EQ(difference_of(one, other), (Intervals{{0, 5}, {22, 25}, {26, 30}}));
  EXPECT_EQ(difference_of(one, {}), one);
  EXPECT_EQ(difference_of({}, one), Intervals{});
}

constexpr std::int64_t points = 60;
using Points = std::array<bool, points>;

Points points_of(const Intervals& intervals) {
  Points in{};
  for (const Interval& interval : intervals) {
    for (std::int64_t point = interval.begin; point < interval.end; ++point)
      in[static_cast<std::size_t>(point)] = true;
  }
  return in;
}

void expect_well_formed(const Intervals& intervals) {
  for (std::size_t index = 0; index < intervals.size(); ++index) {
    EXPECT_LT(intervals[index].begin, intervals[index].end);
    if (index > 0) {
      EXPECT_LT(intervals[index - 1].end, intervals[index].begin);
    }
  }
}

TEST(IntervalUnion, DoesWhatSetsOfPointsDo) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> point(0, points - 1);
  std::uniform_int_distribution<int> count(0, 8);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto draw = [&] {
      Intervals drawn(static_cast<std::size_t>(count(random)));
      for (Interval& interval : drawn) interval = {point(random), point(random)};
      return drawn;
    };
    const Intervals first = draw();
    const Intervals second = draw();
    const Points in_first = points_of(first);
    const Points in_second = points_of(second);
    Points in_both{};
    Points in_first_alone{};
    for (std::size_t index = 0; index < points; ++index) {
      in_both[index] = in_first[index] && in_second[index];
      in_first_alone[index] = in_first[index] && !in_second[index];
    }
    const Intervals one = union_of(first);
    const Intervals other = union_of(second);
    expect_well_formed(one);
    EXPECT_EQ(points_of(one), in_first);
    EXPECT_EQ(points_of(intersection_of(one, other)), in_both);
    EXPECT_EQ(points_of(difference_of(one, other)), in_first_alone);
    EXPECT_EQ(length_of(one),
              length_of(intersection_of(one, other)) + length_of(difference_of(one, other)));
    ASSERT_FALSE(HasFailure()) << "trial " << trial;
  }
}

}  // namespace
}  // namespace stepgate
