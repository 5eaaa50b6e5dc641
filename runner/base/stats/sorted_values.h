// SPDX-License-Identifier: MIT
// A sample that grows one by one and is sorted all the time: in blocks, so that a value that comes
// moves few others.
#pragma once

#include <cstddef>
#include <vector>

namespace stepgate {

class SortedValues {
 public:
  void add(double value);
  std::size_t size() const { return size_; }
  // The value that so many others come before.
  double operator[](std::size_t rank) const;
  struct Part {
    std::size_t count = 0;
    double sum = 0;
  };
  // Count and sum of the values that are less.
  Part below(double value) const;

 private:
  struct Block {
    std::vector<double> values;  // at least one
    double sum = 0;
  };

  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

// Type 7, as quantile.h has it. Not empty.
double median_of(const SortedValues&);

// The absolute deviation from the centre that is in the middle; of two the larger. Not empty.
double upper_median_deviation(const SortedValues&, double centre);

// Sum of the distances of the values from the centre, each at most `reach`, which is not negative.
double sum_of_bounded_deviations(const SortedValues&, double centre, double reach);

}  // namespace stepgate
