// SPDX-License-Identifier: MIT
// Sets of points in time as unions of half-open intervals, in whole numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepgate {

struct Interval {
  std::int64_t begin = 0;  // in it
  std::int64_t end = 0;    // no more in it

  bool operator==(const Interval&) const = default;
};

// Ascending, disjoint, none of them empty and none adjacent to the next.
using IntervalUnion = std::vector<Interval>;

// The union of intervals in any order, which may overlap; those that end before they begin are
// empty.
IntervalUnion union_of(std::vector<Interval>);

std::int64_t length_of(std::span<const Interval>);

IntervalUnion intersection_of(std::span<const Interval>, std::span<const Interval>);

// The part of the first that is not in the second.
IntervalUnion difference_of(std::span<const Interval> from, std::span<const Interval> what);

}  // namespace stepgate
