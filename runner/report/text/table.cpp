// SPDX-License-Identifier: MIT
#include "report/text/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "base/text/visible_stream.h"
#include "base/text/visible_text.h"
#include "judge/verdict/words.h"

namespace stepgate {

void print_table(std::ostream& out, const std::vector<Align>& alignment,
                 const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const bool right = column < alignment.size() && alignment[column] == Align::right;
      line += right ? fmt::format("  {:>{}}", row[column], widths[column])
                    : fmt::format("  {:<{}}", row[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

Style style_of(int file_descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  const bool wants_none = no_colour != nullptr && *no_colour != 0;
  return ::isatty(file_descriptor) == 1 && !wants_none ? Style::terminal : Style::plain;
}

std::string_view colour_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::passes:
      return terminal_colours[0];
    case Outcome::fails:
      return terminal_colours[1];
    default:
      return terminal_colours[2];
  }
}

std::string coloured(std::string_view words, std::string_view colour, Style style) {
  return style == Style::plain ? std::string(words)
                               : fmt::format("{}{}{}", colour, words, terminal_colours[3]);
}

std::string coloured(Outcome outcome, Style style) {
  return coloured(in_words(outcome), colour_of(outcome), style);
}

// Pads before colouring, since an escape sequence has no width on the screen.
std::string outcome_cell(Outcome outcome, Style style) {
  return coloured(fmt::format("{:<{}}", in_words(outcome), outcome_width), colour_of(outcome),
                  style);
}

void ProgressLine::show(const std::string& scenario, std::int64_t rounds,
                        std::chrono::nanoseconds spent) {
  if (!terminal_) return;
  const double seconds = std::chrono::duration<double>(spent).count();
  const std::string state = rounds == 0 ? "warmed up" : fmt::format("round {}", rounds);
  const std::string text = fmt::format("{}: {}, {:.1f} s", scenario, state, seconds);
  show(text);
}

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  clear();
  const std::string line = one_line(text);
  as_it_is(*terminal_) << '\r' << line << std::flush;
  width_ = line.size();
}

void ProgressLine::clear() {
  if (!terminal_ || width_ == 0) return;
  as_it_is(*terminal_) << '\r' << std::string(width_, ' ') << '\r' << std::flush;
  width_ = 0;
}

}  // namespace stepgate
