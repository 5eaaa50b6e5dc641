// SPDX-License-Identifier: MIT
#include "stats/sorted_values.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "stats/quantile.h"

namespace stepgate {
namespace {

constexpr std::size_t largest_block = 1024;

}  // namespace

void SortedValues::add(double value) {
  ++size_;
  if (blocks_.empty()) blocks_.emplace_back();
  // The last block may begin with more: what comes behind all others goes there too.
  auto block = std::partition_point(blocks_.begin(), blocks_.end() - 1,
                                    [&](const auto& one) { return one.back() < value; });
  block->insert(std::upper_bound(block->begin(), block->end(), value), value);
  if (block->size() <= largest_block) return;
  const auto half = block->begin() + largest_block / 2;
  std::vector<double> upper(half, block->end());
  block->erase(half, block->end());
  blocks_.insert(block + 1, std::move(upper));
}

double SortedValues::operator[](std::size_t rank) const {
  auto block = blocks_.begin();
  for (; rank >= block->size(); ++block) rank -= block->size();
  return (*block)[rank];
}

std::size_t SortedValues::below(double value) const {
  std::size_t before = 0;
  for (const std::vector<double>& block : blocks_) {
    if (block.back() < value) {
      before += block.size();
      continue;
    }
    return before + static_cast<std::size_t>(std::lower_bound(block.begin(), block.end(), value) -
                                             block.begin());
  }
  return before;
}

double median_of(const SortedValues& values) {
  const std::size_t middle = (values.size() - 1) / 2;
  const std::array<double, 2> around{values[middle],
                                     values[std::min(middle + 1, values.size() - 1)]};
  return values.size() % 2 == 1 ? around.front() : quantile_of_sorted(around, 0.5);
}

// The deviations above the centre and those below it are two sorted lists. A bisection finds how
// many of the smallest ones come from the first.
double upper_median_deviation(const SortedValues& values, double centre) {
  const std::size_t split = values.below(centre);
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

}  // namespace stepgate
