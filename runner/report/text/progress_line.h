// SPDX-License-Identifier: MIT
// One line that says how far a scenario is, rewritten in place.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>

namespace stepgate {

// Where the line goes: nowhere when the output is not a terminal.
class ProgressLine {
 public:
  // Null: says nothing.
  explicit ProgressLine(std::ostream* terminal) : terminal_(terminal) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);
  void show(const std::string& scenario, std::int64_t rounds, std::chrono::nanoseconds spent);
  void clear();

 private:
  std::ostream* terminal_;
  std::size_t width_ = 0;
};

}  // namespace stepgate
