// SPDX-License-Identifier: MIT
// Adds the wall time from its construction to its destruction to a sum.
#pragma once

#include <chrono>

namespace stepgate {

class TimeOfScope {
 public:
  // `sum` must outlive this object.
  explicit TimeOfScope(std::chrono::nanoseconds& sum) : sum_(sum) {}
  ~TimeOfScope() { sum_ += std::chrono::steady_clock::now() - begin_; }
  TimeOfScope(const TimeOfScope&) = delete;
  TimeOfScope& operator=(const TimeOfScope&) = delete;

 private:
  std::chrono::nanoseconds& sum_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace stepgate
