// SPDX-License-Identifier: MIT
// Columns of text that line up, outcomes in colour where there is a terminal, and the line that
// shows there how far a run is.
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

// Prints rows in columns as wide as their widest cell, two blanks apart, each line indented by two
// and without trailing blanks. Columns beyond `alignment` are to the left. A cell's width is its
// number of bytes.
void print_table(std::ostream&, const std::vector<Align>& alignment,
                 const std::vector<std::vector<std::string>>& rows);

enum class Style { plain, terminal };  // terminal: outcomes in colour

// Style of a stream: colours where it is a terminal and NO_COLOR is not set to anything
// (no-color.org).
Style style_of(int file_descriptor);

constexpr int outcome_width = 14;  // of "not comparable"

std::string_view colour_of(Outcome);
std::string coloured(std::string_view words, std::string_view colour, Style);
std::string coloured(Outcome, Style);

// As wide on the screen as the widest outcome.
std::string outcome_cell(Outcome, Style);

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
