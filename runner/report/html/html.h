// SPDX-License-Identifier: MIT
// The few pieces that report.html is put together from, as text that is both HTML and well-formed
// XML: every element is closed, and nothing that a file says is markup. Nothing is loaded: no
// script, font or picture from anywhere; a policy in the page's head forbids it, whatever else
// should get in.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace stepgate {

// Returns the text on one line, escaped for elements and attributes, with control characters made
// visible. A very long text is truncated.
std::string html_text(std::string_view);

// From the doctype to the begin of <main>, and from its end to the end.
std::string html_begin(std::string_view title);
std::string html_end();

// How something ended, as a class of the style: colour and nothing else, the word says it too.
enum class Tone { good, bad, open, none };
std::string_view class_of(Tone);

std::string html_badge(std::string_view words, Tone);

// <p>, or nothing without words. `look`: a class of the style, may be empty.
std::string html_paragraph(std::string_view words, std::string_view look = {});

// A list of these, below a heading of that level; nothing without items.
std::string html_list(int level, std::string_view title, const std::vector<std::string>& items);

// A table whose first row has the titles of its columns and whose first column those of its rows,
// in a box that scrolls by itself where the page is narrower. Nothing without rows. Cells are
// text.
std::string html_table(std::string_view caption, const std::vector<std::vector<std::string>>& rows);
// The same of cells that are HTML already. `look`: "words" where most columns are no numbers.
std::string html_table_of_html(std::string_view caption, const std::vector<std::string>& titles,
                               const std::vector<std::vector<std::string>>& rows,
                               std::string_view look = {});

// A section that folds: `summary` and `content` are HTML.
std::string html_details(bool open, std::string_view summary, std::string_view content,
                         std::string_view look = {});

// The SVG of draw_timeline or draw_memory without what would reach beyond it in a page: its style,
// its namespace, and names of patterns, which get the number of the picture. `words` say what it
// shows.
std::string embedded_picture(std::string_view svg, std::string_view words, int number);

// A number and its interval against its limit, as a small SVG. `axis`: that several share; what
// lies beyond ends in an arrow. Nothing where the numbers are not finite.
std::string draw_interval(const ReportedNumber&, Tone, const std::optional<Span>& axis = {});

// The part about a gate that has come to its end: findings, what blocks first; the works that were
// timed; HEAD's assertions; what was accepted.
std::string html_gate(const ReportedGate&);

}  // namespace stepgate
