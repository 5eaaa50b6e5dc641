// SPDX-License-Identifier: MIT
// Sets of points in time as unions of half-open intervals, in whole numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepgate {

struct Interval {
  std::int64_t begin = 0;  // included
  std::int64_t end = 0;    // not included

  bool operator==(const Interval&) const = default;
};

// Ascending, disjoint intervals, none of them empty or adjacent to the next.
using IntervalUnion = std::vector<Interval>;

// The union of intervals, which may overlap and come in any order. An interval whose end is not
// after its begin is empty.
IntervalUnion union_of(std::vector<Interval>);

std::int64_t length_of(std::span<const Interval>);

IntervalUnion intersection_of(std::span<const Interval>, std::span<const Interval>);

// The part of `from` that is not in `what`.
IntervalUnion difference_of(std::span<const Interval> from, std::span<const Interval> what);

}  // namespace stepgate
