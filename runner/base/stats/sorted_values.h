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
  // The value with this rank, counted from 0.
  double operator[](std::size_t rank) const;
  struct Part {
    std::size_t count = 0;
    double sum = 0;
  };
  // Count and sum of the values that are less than `value`.
  Part below(double value) const;

 private:
  struct Block {
    std::vector<double> values;  // at least one
    double sum = 0;
  };

  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

// The median of type 7 (quantile.h). Not empty.
double median_of(const SortedValues&);

// The median of the absolute deviations from the centre, the upper one of an even number. Not
// empty.
double upper_median_deviation(const SortedValues&, double centre);

// Sum of the deviations of the values from the centre, each clipped to [-reach, reach]; reach >= 0.
double sum_of_bounded_deviations(const SortedValues&, double centre, double reach);

}  // namespace stepgate
