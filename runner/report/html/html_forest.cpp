// SPDX-License-Identifier: MIT
// Draws many assertions below each other: the effect of each, its interval and its limit.
#include <fmt/format.h>

#include "report/append.h"
#include "report/html/html.h"

namespace stepgate {
namespace {

// Whether it says no more than its number: a count that is exactly what it must be.
bool is_count_as_asserted(const ReportedCase& one) {
  if (one.end != CaseEnd::passed || one.assertion == nullptr || !one.assertion->number)
    return false;
  const ReportedNumber& number = *one.assertion->number;
  return !number.interval && number.value == number.limit &&
         number.allowed.low == number.allowed.high;
}

std::string row_of(const ReportedCase& one, const std::string& name) {
  const Tone tone = tone_of(one.end);
  std::string row = fmt::format("<span class=\"row\"><span>{}{}</span>",
                                one.end == CaseEnd::passed ? "" : html_badge(one.type, tone) + " ",
                                html_text(name));
  const bool has_number = one.assertion != nullptr && one.assertion->number;
  const std::string picture =
      has_number ? draw_interval(*one.assertion->number, tone, {}, DrawnWords::left_out) : "";
  if (picture.empty()) {
    append(row, "<span class=\"why\">{}</span>", html_text(one.why));
  } else {
    const ReportedNumber& number = *one.assertion->number;
    append(row, "{}<span>{}{} <span class=\"dim\">asked: {}</span></span>", picture,
           html_text(number.value_words), html_text(number.interval_words),
           html_text(number.limit_words));
  }
  return row + "</span>\n";
}

}  // namespace

std::string html_forest(std::span<const ReportedCase* const> cases, ForestNames names) {
  std::string rows;
  std::string counts;
  for (const ReportedCase* one : cases) {
    const std::string& name = names == ForestNames::titles || one->assertion == nullptr
                                  ? one->title
                                  : one->assertion->name;
    if (is_count_as_asserted(*one)) {
      append(counts, "{}{}&#160;{}", counts.empty() ? "" : ", ", html_text(name),
             html_text(one->assertion->number->value_words));
    } else {
      rows += row_of(*one, name);
    }
  }
  if (!counts.empty()) append(rows, "<span class=\"counts\">exactly: {}</span>\n", counts);
  if (rows.empty()) return "";
  return fmt::format("<span class=\"forest{}\">\n{}</span>\n",
                     names == ForestNames::titles ? " titles" : "", rows);
}

}  // namespace stepgate
