// SPDX-License-Identifier: MIT
// The building blocks of report.html, as text that is both HTML and well-formed XML: every element
// is closed, and text from files never becomes markup. The page loads nothing, neither scripts nor
// fonts nor pictures. A policy in its head also forbids it, in case anything else gets in.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace stepgate {

// Returns the text on one line, escaped for elements and attributes, with visible control
// characters. A very long text is truncated.
std::string html_text(std::string_view);

// html_begin returns the page from the doctype to the begin of <main>, and html_end the rest after
// the content. `style` is added to that of every page.
std::string html_begin(std::string_view title, std::string_view style = {});
std::string html_end();

// The outcome as a class of the style. It only sets the colour; the words say the outcome too.
enum class Tone { good, bad, open, none };
std::string_view class_of(Tone);
Tone tone_of(CaseEnd);

std::string html_badge(std::string_view words, Tone);

// Returns <p> with the words, or nothing without words. `look` is a class of the style and may be
// empty.
std::string html_paragraph(std::string_view words, std::string_view look = {});

// A list of the items below a heading of this level; nothing without items.
std::string html_list(int level, std::string_view title, const std::vector<std::string>& items);

// A table with the column titles in its first row and the row titles in its first column. It
// scrolls in its own box on narrow pages. Returns nothing without rows. Cells are plain text.
// `look` is that of html_table_of_html.
std::string html_table(std::string_view caption, const std::vector<std::vector<std::string>>& rows,
                       std::string_view look = {});
// A table whose cells are HTML. `look` is "words" where most columns are not numbers: on narrow
// pages the cells of a row then lie below each other, each after the title of its column.
std::string html_table_of_html(std::string_view caption, const std::vector<std::string>& titles,
                               const std::vector<std::vector<std::string>>& rows,
                               std::string_view look = {});

// A collapsible section; `summary` and `content` are HTML.
std::string html_details(bool open, std::string_view summary, std::string_view content,
                         std::string_view look = {});

// Returns the SVG of draw_timeline or draw_memory for embedding. Removes its style and namespace,
// and makes names of patterns unique by the number of the picture. `words` describe it, and `look`
// has its classes.
std::string embedded_picture(std::string_view svg, std::string_view words, int number,
                             std::string_view look = "picture");

// Whether the words of a number stand in its picture, or beside it.
enum class DrawnWords { inside, left_out };

// Draws a number with its interval and limit as a small SVG. Several numbers may share `axis`; what
// lies outside ends in an arrow. Returns nothing where the numbers are not finite.
std::string draw_interval(const ReportedNumber&, Tone, const std::optional<Span>& axis = {},
                          DrawnWords = DrawnWords::inside);

enum class ForestNames { names, titles };  // "faster", or "sync_every_step.faster"

// A row for each case: its name, the picture of its number, and the number in words. Counts that
// are exactly what they must be share one row. The elements may stand in a <summary>.
std::string html_forest(std::span<const ReportedCase* const>, ForestNames);

// The part of the page about a completed gate: findings with blocking ones first, timed workloads,
// HEAD's assertions, and accepted changes.
std::string html_gate(const ReportedGate&);

}  // namespace stepgate
