// SPDX-License-Identifier: MIT
#include "report/text/table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ostream>
#include <system_error>

#include "base/text/visible_stream.h"
#include "base/text/visible_text.h"
#include "judge/verdict/words.h"

namespace stepgate {

namespace {

constexpr std::size_t gap = 2;  // between columns, and before the first

// Some of the columns of a table, by index.
using Columns = std::vector<std::size_t>;

bool is_right(const std::vector<Align>& alignment, std::size_t column) {
  return column < alignment.size() && alignment[column] == Align::right;
}

// Text in the last column is fitted by its words.
std::vector<Columns> tables_of(const std::vector<Align>& alignment,
                               const std::vector<std::size_t>& widths, std::size_t width) {
  constexpr std::size_t least_text = 20;
  std::vector<Columns> tables(1);
  std::size_t used = 0;
  for (std::size_t column = 0; column < widths.size(); ++column) {
    const bool is_text = column + 1 == widths.size() && !is_right(alignment, column);
    const std::size_t own = gap + (is_text ? std::min(widths[column], least_text) : widths[column]);
    if (tables.back().size() > 1 && used + own > width) {
      tables.push_back({0});
      used = gap + widths[0];
    }
    tables.back().push_back(column);
    used += own;
  }
  return tables;
}

// Columns of a terminal: not the bytes after the first of a character, and no colours.
std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      at = std::min(text.find('m', at), text.size());
    } else if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80) {
      ++columns;
    }
  }
  return columns;
}

// Where a line goes on: below its last column that leaves half of the width for words.
std::size_t indent_of(std::string_view line, std::size_t width) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::size_t indent = begin + gap;
  for (std::size_t at = line.find("  ", begin); at != std::string_view::npos;
       at = line.find("  ", at)) {
    at = line.find_first_not_of(' ', at);
    if (at == std::string_view::npos || columns_of(line.substr(0, at)) > width / 2) break;
    indent = columns_of(line.substr(0, at));
  }
  return begin > gap && indent == begin + gap ? begin : indent;
}

void fit_line(std::string_view line, std::size_t width, std::string& fitted) {
  const std::string indent(std::min(indent_of(line, width), width / 2), ' ');
  std::size_t used = 0;
  bool has_word = false;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    const std::size_t columns = columns_of(word);
    if (has_word && used + (begin - at) + columns > width) {
      fitted += '\n' + indent;
      used = indent.size();
    } else {
      fitted.append(begin - at, ' ');
      used += begin - at;
    }
    fitted += word;
    used += columns;
    has_word = true;
    at = end;
  }
}

}  // namespace

std::string fitted(std::string_view text, std::size_t width) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (columns_of(line) <= width) {
      all += line;
    } else {
      fit_line(line, width, all);
    }
    if (end < text.size()) all += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

void print_table(std::ostream& out, const std::vector<Align>& alignment,
                 const std::vector<std::vector<std::string>>& rows, std::size_t width) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  const std::vector<Columns> tables = tables_of(alignment, widths, width);
  for (const Columns& columns : tables) {
    if (&columns != &tables.front()) out << '\n';
    for (const auto& row : rows) {
      std::string line;
      for (const std::size_t column : columns) {
        if (column >= row.size()) continue;
        line += is_right(alignment, column) ? fmt::format("  {:>{}}", row[column], widths[column])
                                            : fmt::format("  {:<{}}", row[column], widths[column]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out << line << '\n';
    }
  }
}

namespace {

// 0: not known.
std::size_t width_of_terminal(int file_descriptor) {
  const char* columns = std::getenv("COLUMNS");
  std::size_t width = 0;
  if (columns != nullptr) {
    const std::string_view text(columns);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
    if (error == std::errc() && end == text.data() + text.size()) return width;
  }
  winsize size{};
  return ::ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

Style style_of(int file_descriptor) {
  constexpr std::size_t least = 40;  // columns of a table, with room for words
  const char* no_colour = std::getenv("NO_COLOR");
  const bool wants_none = no_colour != nullptr && *no_colour != 0;
  const std::size_t width = width_of_terminal(file_descriptor);
  return {.has_colours = ::isatty(file_descriptor) == 1 && !wants_none,
          .width = width == 0 ? any_width : std::max(width, least)};
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
  return !style.has_colours ? std::string(words)
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
  // A line that goes on in the next one could not be cleared. The ellipsis has three bytes.
  const std::size_t width = width_of_terminal(STDERR_FILENO);
  const std::string line = beginning_of(one_line(text), width > 4 ? width - 4 : any_width);
  as_it_is(*terminal_) << '\r' << line << std::flush;
  width_ = line.size();
}

void ProgressLine::clear() {
  if (!terminal_ || width_ == 0) return;
  as_it_is(*terminal_) << '\r' << std::string(width_, ' ') << '\r' << std::flush;
  width_ = 0;
}

}  // namespace stepgate
