// SPDX-License-Identifier: MIT
#include "report/html/html.h"

#include <fmt/format.h>

#include "base/text/visible_text.h"
#include "report/append.h"
#include "report/html/html_style.h"
#include "report/picture/svg.h"

namespace stepgate {

std::string html_text(std::string_view text) {
  constexpr std::size_t most_bytes = 4000;  // a scenario file may be one long claim
  return xml_text(beginning_of(one_line(text), most_bytes));
}

std::string html_begin(std::string_view title) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n";
  append(page, "<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
         html_text(title), html_style);
  return page;
}

std::string html_end() {
  return "</main>\n</body>\n</html>\n";
}

std::string_view class_of(Tone tone) {
  switch (tone) {
    case Tone::good:
      return "good";
    case Tone::bad:
      return "bad";
    case Tone::open:
      return "open";
    case Tone::none:
      break;
  }
  return "none";
}

std::string html_badge(std::string_view words, Tone tone) {
  return fmt::format("<span class=\"badge {}\">{}</span>", class_of(tone), html_text(words));
}

std::string html_paragraph(std::string_view words, std::string_view look) {
  if (words.empty()) return "";
  if (look.empty()) return fmt::format("<p>{}</p>\n", html_text(words));
  return fmt::format("<p class=\"{}\">{}</p>\n", look, html_text(words));
}

std::string html_list(int level, std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string list = fmt::format("<h{0}>{1}</h{0}>\n<ul>\n", level, html_text(title));
  for (const std::string& item : items) append(list, "<li>{}</li>\n", html_text(item));
  return list + "</ul>\n";
}

std::string html_table(std::string_view caption,
                       const std::vector<std::vector<std::string>>& rows) {
  if (rows.size() < 2) return "";
  std::vector<std::vector<std::string>> cells;
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    cells.emplace_back();
    for (const std::string& cell : *row) cells.back().push_back(html_text(cell));
  }
  return html_table_of_html(caption, rows.front(), cells);
}

std::string html_table_of_html(std::string_view caption, const std::vector<std::string>& titles,
                               const std::vector<std::vector<std::string>>& rows,
                               std::string_view look) {
  if (rows.empty()) return "";
  const std::string name = html_text(caption);
  std::string table = fmt::format(
      "<div class=\"scrolls\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n<table{1}>\n"
      "<caption>{0}</caption>\n<thead><tr>",
      name, look.empty() ? "" : fmt::format(" class=\"{}\"", look));
  for (const std::string& title : titles)
    append(table, "<th scope=\"col\">{}</th>", html_text(title));
  table += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    table += "<tr>";
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (column == 0) {
        append(table, "<th scope=\"row\">{}</th>", row[column]);
      } else {
        append(table, "<td>{}</td>", row[column]);
      }
    }
    table += "</tr>\n";
  }
  return table + "</tbody>\n</table>\n</div>\n";
}

std::string html_details(bool open, std::string_view summary, std::string_view content,
                         std::string_view look) {
  return fmt::format("<details{}{}>\n<summary>{}</summary>\n{}</details>\n",
                     look.empty() ? "" : fmt::format(" class=\"{}\"", look),
                     open ? " open=\"open\"" : "", summary, content);
}

}  // namespace stepgate
