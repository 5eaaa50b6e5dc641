// SPDX-License-Identifier: MIT
#include "base/stats/interval_union.h"

#include <algorithm>

namespace stepgate {

IntervalUnion union_of(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& one, const Interval& other) { return one.begin < other.begin; });
  IntervalUnion merged;
  for (const Interval& interval : intervals) {
    if (interval.end <= interval.begin) continue;
    if (!merged.empty() && interval.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, interval.end);
    } else {
      merged.push_back(interval);
    }
  }
  return merged;
}

std::int64_t length_of(std::span<const Interval> intervals) {
  std::int64_t length = 0;
  for (const Interval& interval : intervals) length += interval.end - interval.begin;
  return length;
}

IntervalUnion intersection_of(std::span<const Interval> one, std::span<const Interval> other) {
  IntervalUnion both;
  std::size_t left = 0;
  std::size_t right = 0;
  while (left < one.size() && right < other.size()) {
    const Interval shared{std::max(one[left].begin, other[right].begin),
                          std::min(one[left].end, other[right].end)};
    if (shared.begin < shared.end) both.push_back(shared);
    // The interval that ends first overlaps nothing further.
    if (one[left].end < other[right].end) {
      ++left;
    } else {
      ++right;
    }
  }
  return both;
}

IntervalUnion difference_of(std::span<const Interval> from, std::span<const Interval> what) {
  IntervalUnion rest;
  std::size_t next = 0;
  for (Interval left : from) {
    while (next < what.size() && what[next].end <= left.begin) ++next;
    for (std::size_t cut = next; cut < what.size() && what[cut].begin < left.end; ++cut) {
      if (left.begin < what[cut].begin) rest.push_back({left.begin, what[cut].begin});
      left.begin = std::max(left.begin, what[cut].end);
    }
    if (left.begin < left.end) rest.push_back(left);
  }
  return rest;
}

}  // namespace stepgate
