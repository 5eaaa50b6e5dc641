// SPDX-License-Identifier: MIT
// Aligned text columns, lines that fit a terminal, outcomes in colour on it, and the progress line
// of a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/text_stream.h"
#include "judge/verdict/verdict.h"

namespace stepgate {

enum class Align { left, right };

constexpr std::size_t any_width = std::numeric_limits<std::size_t>::max();

// Prints rows in columns as wide as their widest cell, with two blanks between, lines indented by
// two and no trailing blanks. Columns beyond `alignment` are left-aligned. The width of a cell is
// its number of bytes. Where lines would be wider than `width`, prints several tables with some of
// the columns each, all behind the first column.
void print_table(std::ostream&, const std::vector<Align>& alignment,
                 const std::vector<std::vector<std::string>>& rows, std::size_t width = any_width);

// Returns the text with lines of at most `width` columns, but for words that are longer. What goes
// on begins below the last column of its line, which follows two blanks. Colours have no width.
std::string fitted(std::string_view text, std::size_t width);

struct Style {
  bool has_colours = false;       // of outcomes
  std::size_t width = any_width;  // of lines

  bool operator==(const Style&) const = default;
  static const Style plain;
  static const Style terminal;
};
inline constexpr Style Style::plain{};
inline constexpr Style Style::terminal{.has_colours = true};

// The style for a stream: coloured if it is a terminal and NO_COLOR is unset or empty
// (no-color.org), and as wide as COLUMNS says or the terminal is.
Style style_of(int file_descriptor);

// Prints what `print` prints, fitted to the width of the style.
template <class Print>
void print_fitted(std::ostream& out, const Style& style, const Print& print) {
  if (style.width == any_width) return print(out);
  TextStream text;
  print(text);
  out << fitted(text.str(), style.width);
}

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
