// SPDX-License-Identifier: MIT
#include "base/stats/sorted_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/stats/quantile.h"

namespace stepgate {
namespace {

constexpr std::size_t largest_block = 1024;

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

void SortedValues::add(double value) {
  ++size_;
  if (blocks_.empty()) blocks_.emplace_back();
  // A value above all others goes into the last block.
  const auto block =
      std::partition_point(blocks_.begin(), blocks_.end() - 1,
                           [&](const Block& one) { return one.values.back() < value; });
  std::vector<double>& values = block->values;
  values.insert(std::upper_bound(values.begin(), values.end(), value), value);
  block->sum += value;
  if (values.size() <= largest_block) return;
  const auto half = values.begin() + largest_block / 2;
  Block upper{.values = {half, values.end()}};
  upper.sum = sum_of(upper.values);
  values.erase(half, values.end());
  block->sum = sum_of(values);
  blocks_.insert(block + 1, std::move(upper));
}

double SortedValues::operator[](std::size_t rank) const {
  auto block = blocks_.begin();
  for (; rank >= block->values.size(); ++block) rank -= block->values.size();
  return block->values[rank];
}

SortedValues::Part SortedValues::below(double value) const {
  Part part;
  for (const Block& block : blocks_) {
    if (block.values.back() < value) {
      part.count += block.values.size();
      part.sum += block.sum;
      continue;
    }
    const auto end = std::lower_bound(block.values.begin(), block.values.end(), value);
    part.count += static_cast<std::size_t>(end - block.values.begin());
    part.sum += std::accumulate(block.values.begin(), end, 0.0);
    break;
  }
  return part;
}

double median_of(const SortedValues& values) {
  const std::size_t middle = (values.size() - 1) / 2;
  const std::array<double, 2> around{values[middle],
                                     values[std::min(middle + 1, values.size() - 1)]};
  return values.size() % 2 == 1 ? around.front() : quantile_of_sorted(around, 0.5);
}

// The deviations above and below the centre are two sorted lists. Bisection finds how many of the
// smallest deviations come from the first list.
double upper_median_deviation(const SortedValues& values, double centre) {
  const std::size_t split = values.below(centre).count;
  const std::size_t wanted = values.size() / 2 + 1;
  const auto above = [&](std::size_t place) { return std::abs(values[split + place] - centre); };
  const auto below = [&](std::size_t place) {
    return std::abs(values[split - 1 - place] - centre);
  };
  std::size_t least = wanted > split ? wanted - split : 0;
  std::size_t most = std::min(wanted, values.size() - split);
  while (least < most) {
    const std::size_t taken = (least + most) / 2;
    if (above(taken) < below(wanted - taken - 1)) {
      least = taken + 1;
    } else {
      most = taken;
    }
  }
  const std::size_t rest = wanted - least;
  if (rest == 0) return above(least - 1);
  if (least == 0) return below(rest - 1);
  return std::max(above(least - 1), below(rest - 1));
}

double sum_of_bounded_deviations(const SortedValues& values, double centre, double reach) {
  const SortedValues::Part low = values.below(centre - reach);
  const SortedValues::Part up_to_high = values.below(centre + reach);
  const auto within = static_cast<double>(up_to_high.count - low.count);
  const auto above = static_cast<double>(values.size() - up_to_high.count);
  return up_to_high.sum - low.sum - within * centre +
         reach * (above - static_cast<double>(low.count));
}

}  // namespace stepgate
