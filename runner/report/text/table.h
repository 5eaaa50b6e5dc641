// SPDX-License-Identifier: MIT
// Aligned text columns, outcomes in colour on a terminal, and the progress line of a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "judge/verdict/verdict.h"

namespace stepgate {

enum class Align { left, right };

// Prints rows in columns as wide as their widest cell, with two blanks between, lines indented by
// two and no trailing blanks. Columns beyond `alignment` are left-aligned. The width of a cell is
// its number of bytes.
void print_table(std::ostream&, const std::vector<Align>& alignment,
                 const std::vector<std::vector<std::string>>& rows);

enum class Style { plain, terminal };  // terminal: outcomes in colour

// The style for a stream: coloured if it is a terminal and NO_COLOR is unset or empty
// (no-color.org).
Style style_of(int file_descriptor);

constexpr int outcome_width = 14;  // of "not comparable"

std::string_view colour_of(Outcome);
std::string coloured(std::string_view words, std::string_view colour, Style);
std::string coloured(Outcome, Style);

// Returns the outcome, padded to the width of the widest outcome.
std::string outcome_cell(Outcome, Style);

// The progress line of a run. It prints nothing when the output is not a terminal.
class ProgressLine {
 public:
  // Null means that nothing is printed.
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
