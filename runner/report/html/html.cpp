// SPDX-License-Identifier: MIT
#include "report/html/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/visible_text.h"
#include "report/append.h"
#include "report/picture/svg.h"

namespace stepgate {
namespace {

// The style of report.html: light and dark, for phones, wide screens and paper. All text colours
// have a contrast of at least 4.5, which ci/look_at_report measures.
//
// The CSS has no < and &, so that the page stays valid XML. Pictures are drawn for white paper. The
// dark rules change their greys, which have no meaning, and keep their colours.
constexpr std::string_view html_style = R"css(:root{color-scheme:light dark;
--ink:#1c2024;--dim:#545b63;--paper:#fff;--card:#f6f7f9;--line:#d5d9de;--focus:#0b57b8;
--good:#0b6638;--goodpale:#dcf3e4;--bad:#a51c14;--badpale:#fde4e1;--open:#704c00;--openpale:#fbeecb;
--none:#434a52;--nonepale:#e6e9ed;--bar:#6b737c}
@media (prefers-color-scheme:dark){:root{
--ink:#e7eaee;--dim:#a7afb8;--paper:#14171b;--card:#1d2126;--line:#3a4149;--focus:#8ab8ff;
--good:#7fdca4;--goodpale:#123524;--bad:#ff9d94;--badpale:#451613;--open:#f1c86a;--openpale:#3a2c08;
--none:#c3cad2;--nonepale:#2b3138;--bar:#98a1ab}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;
overflow-wrap:anywhere}
main{max-width:1560px;margin:0 auto;padding:1rem}
h1,h2,h3,h4{line-height:1.25;margin:1.6em 0 .5em}
h1{font-size:1.05rem;margin:.2em 0;color:var(--dim);font-weight:600}
h2{font-size:1.3rem}h3{font-size:1.05rem}h4{font-size:.95rem;margin:1.1em 0 .3em}
p{margin:.4em 0}ul{margin:.3em 0;padding-left:1.3em}
code,.code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;font-size:.88em}
.dim{color:var(--dim)}
.verdict{font-size:1.9rem;font-weight:700;line-height:1.2;margin:.1em 0 .2em}
.verdict.good{color:var(--good)}.verdict.bad{color:var(--bad)}.verdict.open{color:var(--open)}.verdict.none{color:var(--none)}
.simulated{display:inline-block;border:2px solid currentColor;border-radius:.4rem;padding:.2rem .6rem;margin:.4rem 0;
color:var(--open);background:var(--openpale);font-weight:600}
.badge{display:inline-block;border-radius:.35rem;padding:0 .5em;font-size:.85rem;font-weight:650;overflow-wrap:normal;white-space:nowrap}
.badge.good{color:var(--good);background:var(--goodpale)}.badge.bad{color:var(--bad);background:var(--badpale)}
.badge.open{color:var(--open);background:var(--openpale)}.badge.none{color:var(--none);background:var(--nonepale)}
details{border:1px solid var(--line);border-radius:.5rem;margin-top:.6rem;margin-bottom:.6rem;background:var(--paper)}
details>:not(summary){margin-left:.9rem;margin-right:.9rem}
summary{cursor:pointer;padding:.45rem .9rem;background:var(--card);border-radius:.5rem}
summary h2,summary h3,summary h4{display:inline;margin:0 .5em 0 .1em}
summary:focus-visible,.scrolls:focus-visible{outline:3px solid var(--focus);outline-offset:1px}
details.inner>summary{background:none}
ul.assertions{list-style:none;padding:0;margin-top:.6rem;margin-bottom:.8rem}
ul.assertions>li{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,21rem);gap:.2rem 1.2rem;
border-top:1px solid var(--line);padding:.6rem 0}
ul.assertions>li:first-child{border-top:0}
ul.assertions h4{display:inline;margin:0 0 0 .4em}
.finding{border-left:4px solid var(--line);padding:.1rem 0 .1rem .8rem;margin-top:.9rem;margin-bottom:.9rem}
.finding.bad{border-color:var(--bad)}.finding.open{border-color:var(--open)}.finding.good{border-color:var(--good)}
.finding h3{display:inline;margin:0 0 0 .4em}
.scrolls{overflow-x:auto;margin-top:.6rem;margin-bottom:.6rem;
background:linear-gradient(90deg,var(--paper) 40%,transparent) 0 0/2.5rem 100% no-repeat local,
linear-gradient(-90deg,var(--paper) 40%,transparent) 100% 0/2.5rem 100% no-repeat local,
linear-gradient(90deg,var(--line),transparent) 0 0/1rem 100% no-repeat scroll,
linear-gradient(-90deg,var(--line),transparent) 100% 0/1rem 100% no-repeat scroll}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;overflow-wrap:normal}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.25rem .8rem .25rem 0;text-align:right;border-top:1px solid var(--line);vertical-align:middle}
thead th{border-top:0;color:var(--dim);font-weight:600;vertical-align:bottom}
th:first-child,table.words th,table.words td{text-align:left}table.words tbody th{white-space:normal;overflow-wrap:anywhere;min-width:13rem}
td,tbody th{white-space:nowrap}td p,table.words td:last-child{white-space:normal}table.words td:last-child{overflow-wrap:anywhere}
tbody th{font-weight:500}
table.facts{width:100%}table.facts th,table.facts td{text-align:left;white-space:normal;overflow-wrap:anywhere;vertical-align:top}
table.facts th{width:14rem;color:var(--dim)}
mark{color:var(--open);background:var(--openpale)}
td p{margin:0;min-width:14rem;text-align:left}
figure{margin:.6rem 0}figcaption{margin:.2rem 0 .5rem}
svg.interval{display:block;width:100%;max-width:21rem;height:auto}
td svg.interval{width:18rem}
svg.interval text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:var(--ink)}
svg.interval .axis{stroke:var(--line);stroke-width:1}
svg.interval .limit{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 2}
svg.interval .allowed{fill:var(--goodpale)}
svg.interval .range.good,svg.interval .value.good{fill:var(--good)}
svg.interval .range.bad,svg.interval .value.bad{fill:var(--bad)}
svg.interval .range.open,svg.interval .value.open{fill:var(--open)}
svg.interval .range.none,svg.interval .value.none{fill:var(--none)}
svg.interval .range{opacity:.45}
.forest{display:grid;grid-template-columns:minmax(0,14rem) 13rem minmax(0,1fr);gap:.1rem 1rem;margin:.3rem 0 .2rem;font-size:.88rem}
.forest.titles{grid-template-columns:minmax(0,26rem) 13rem minmax(0,1fr)}
.forest .row{display:grid;grid-template-columns:subgrid;grid-column:1/-1;align-items:center}
.forest .counts{grid-column:1/-1;color:var(--dim)}.forest .why{grid-column:2/-1}
svg.picture{display:block;width:100%;min-width:58rem;height:auto}
svg.picture text{font-family:Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:#222}
@media (prefers-color-scheme:dark){
svg.picture text{fill:#e7eaee}
svg.picture [fill="#fff"],svg.picture [fill="#fafafa"]{fill:#14171b}
svg.picture [fill="#f3f3f3"]{fill:#22262b}
svg.picture [fill="#ececec"]{fill:#23282e}svg.picture [fill="#d8d8d8"]{fill:#323941}
svg.picture [style="fill:#666"],svg.picture [style="fill:#777"],svg.picture [style="fill:#555"]{fill:#a7afb8!important}
svg.picture text[style="fill:#555"][pointer-events]{fill:#333!important}
svg.picture [stroke="#222"],svg.picture [stroke="#000"]{stroke:#e7eaee}
svg.picture [stroke="#777"],svg.picture [stroke="#bbb"]{stroke:#a7afb8}
svg.picture [stroke="#e4e4e4"],svg.picture [stroke="#e0e0e0"],svg.picture [stroke="#ccc"]{stroke:#3a4149}
svg.picture text[stroke="#fff"],svg.picture line[stroke="#fff"]{stroke:#14171b}
svg.picture path[fill="#000"]{fill:#e7eaee}
svg.picture pattern [fill="#fff"]{fill:#fff}svg.picture pattern [fill="#000"]{fill:#000}
svg.picture rect[fill="#000000"]{stroke:#98a1ab;stroke-width:.7}}
@media (max-width:720px){
main{padding:.7rem}
.forest,.forest.titles{grid-template-columns:minmax(0,1fr) 9rem}
.forest .row>span:last-child{grid-column:1/-1;color:var(--dim)}
ul.assertions>li{grid-template-columns:minmax(0,1fr)}
.verdict{font-size:1.5rem}
details>:not(summary){margin-left:.6rem;margin-right:.6rem}
table.words,table.words :is(caption,tbody,tr,th,td){display:block}
table.words thead,table.words td:empty{display:none}
table.words th,table.words td{border:0;padding:.05rem 0;white-space:normal;overflow-wrap:anywhere}
table.words tbody th{min-width:0;font-weight:600}
table.words tr{border-top:1px solid var(--line);padding:.3rem 0}
table.words td:not([data-title=""])::before{content:attr(data-title) ": ";color:var(--dim)}
table.words td p{display:inline}
table.facts th{width:8rem}}
@media print{
body{font-size:10pt}main{max-width:none;padding:0}
.scrolls{overflow:visible}svg.picture{min-width:0}
ul.assertions>li,.finding,figure,tr{break-inside:avoid}
summary{break-after:avoid}}
)css";

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

void take_out(std::string& text, std::string_view what) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.erase(at, what.size());
}

}  // namespace

std::string html_text(std::string_view text) {
  constexpr std::size_t most_bytes = 4000;  // a scenario file may be one long assertion
  return xml_text(beginning_of(one_line(text), most_bytes));
}

std::string html_begin(std::string_view title, std::string_view style) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n";
  append(page, "<title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n",
         html_text(title), html_style, style);
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

Tone tone_of(CaseEnd end) {
  switch (end) {
    case CaseEnd::passed:
      return Tone::good;
    case CaseEnd::failed:
    case CaseEnd::error:
      return Tone::bad;
    case CaseEnd::skipped:
      return Tone::open;
  }
  return Tone::bad;
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

std::string html_table(std::string_view caption, const std::vector<std::vector<std::string>>& rows,
                       std::string_view look) {
  if (rows.size() < 2) return "";
  std::vector<std::vector<std::string>> cells;
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    cells.emplace_back();
    for (const std::string& cell : *row) cells.back().push_back(html_text(cell));
  }
  return html_table_of_html(caption, rows.front(), cells, look);
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
      } else if (look.empty()) {
        append(table, "<td>{}</td>", row[column]);
      } else {
        append(table, "<td data-title=\"{}\">{}</td>", html_text(titles[column]), row[column]);
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

std::string embedded_picture(std::string_view svg, std::string_view words, int number,
                             std::string_view look) {
  std::string embedded(svg);
  take_out(embedded, text_style);
  take_out(embedded, " xmlns=\"http://www.w3.org/2000/svg\"");
  take_out(embedded, fitting_style);
  // Text from a file cannot look like this, since its quotes are entities.
  replace_all(embedded, "<pattern id=\"", fmt::format("<pattern id=\"p{}-", number));
  replace_all(embedded, "\"url(#", fmt::format("\"url(#p{}-", number));
  const std::string_view begin = "<svg";
  const std::size_t at = embedded.find(begin);
  if (at == std::string::npos) return "";
  embedded.insert(at + begin.size(), fmt::format(" class=\"{}\" role=\"img\" aria-label=\"{}\"",
                                                 look, html_text(words)));
  return embedded;
}

namespace {

// Sizes are in pixels.
constexpr double drawn_width = 320;
constexpr double drawn_margin = 8;
constexpr double bar_height = 12;
constexpr double words_height = 15;

class DrawnAxis {
 public:
  explicit DrawnAxis(Span span) : span_(span) {}

  double at(double value) const {
    const double share = (value - span_.low) / (span_.high - span_.low);
    return drawn_margin + std::clamp(share, 0.0, 1.0) * (drawn_width - 2 * drawn_margin);
  }
  bool is_below(double value) const { return value < span_.low; }
  bool is_above(double value) const { return value > span_.high; }

 private:
  Span span_;
};

Span axis_around(const ReportedNumber& drawn) {
  Span span{std::min(drawn.value, drawn.limit), std::max(drawn.value, drawn.limit)};
  const RatioInterval interval = drawn.interval.value_or(RatioInterval{drawn.value, drawn.value});
  for (const double end : {interval.low, interval.high, drawn.allowed.low, drawn.allowed.high}) {
    if (!std::isfinite(end)) continue;
    span.low = std::min(span.low, end);
    span.high = std::max(span.high, end);
  }
  double room = 0.12 * (span.high - span.low);
  if (room <= 0) room = std::max(std::abs(span.low) * 0.1, 1e-12);
  return {span.low - room, span.high + room};
}

// The letters are 11 pixels high. This is larger, since some fonts are wider than svg.h assumes.
constexpr double safe_size = 13;

bool fits(const std::string& words) {
  return width_of_text(words, safe_size) <= drawn_width;
}

// Draws words at a place within the picture; returns an empty string where they do not fit.
std::string words_at(double x, double y, const std::string& words) {
  if (!fits(words)) return "";
  const double half = width_of_text(words, safe_size) / 2;
  const double middle = std::clamp(x, half, drawn_width - half);
  return fmt::format(R"(<text x="{:.1f}" y="{:g}" text-anchor="middle">{}</text>)", middle, y,
                     html_text(words));
}

std::string drawn_bar(const ReportedNumber& drawn, Tone tone, const DrawnAxis& axis, double top) {
  if (!drawn.interval) return "";
  const double left = axis.at(drawn.interval->low);
  const double right = std::max(axis.at(drawn.interval->high), left + 1.5);
  std::string bar =
      fmt::format(R"(<rect class="range {}" x="{:.1f}" y="{:g}" width="{:.1f}" height="{:g}"/>)",
                  class_of(tone), left, top, right - left, bar_height);
  const double middle = top + bar_height / 2;
  if (axis.is_above(drawn.interval->high)) {
    append(bar, R"(<path class="value {}" d="M{:g} {:g}l-7 -5v10z"/>)", class_of(tone),
           drawn_width - 1, middle);
  }
  if (axis.is_below(drawn.interval->low)) {
    append(bar, R"(<path class="value {}" d="M1 {:g}l7 -5v10z"/>)", class_of(tone), middle);
  }
  return bar;
}

// Returns the alternative text of the picture.
std::string label_of(const ReportedNumber& drawn, const std::string& words) {
  const std::string value = words.empty() ? fmt::format("{:.4g}", drawn.value) : words;
  const std::string limit =
      drawn.limit_words.empty() ? fmt::format("limit {:.4g}", drawn.limit) : drawn.limit_words;
  return value + "; " + limit;
}

bool is_drawable(const ReportedNumber& drawn) {
  const bool ends =
      !drawn.interval || !(std::isnan(drawn.interval->low) || std::isnan(drawn.interval->high));
  return ends && std::isfinite(drawn.value) && std::isfinite(drawn.limit);
}

}  // namespace

std::string draw_interval(const ReportedNumber& drawn, Tone tone, const std::optional<Span>& shared,
                          DrawnWords drawn_words) {
  if (!is_drawable(drawn)) return "";
  const DrawnAxis axis(shared ? *shared : axis_around(drawn));
  const bool has_words = drawn_words == DrawnWords::inside;
  std::string words = drawn.value_words + drawn.interval_words;
  const std::string label = label_of(drawn, words);
  if (!fits(words)) words = drawn.value_words;
  if (!has_words) words.clear();
  const bool names_limit = has_words && !drawn.limit_words.empty();
  const double top = names_limit ? words_height + 2 : 4;
  const double height = top + bar_height + (words.empty() ? 4 : words_height + 4);
  const double middle = top + bar_height / 2;
  std::string svg = fmt::format(
      R"(<svg class="interval" viewBox="0 0 {:g} {:g}" width="{:g}" height="{:g}" role="img" aria-label="{}">)",
      drawn_width, height, drawn_width, height, html_text(label));
  const double from = std::isfinite(drawn.allowed.low) ? axis.at(drawn.allowed.low) : 0;
  const double to = std::isfinite(drawn.allowed.high) ? axis.at(drawn.allowed.high) : drawn_width;
  append(svg, R"(<rect class="allowed" x="{:.1f}" y="{:g}" width="{:.1f}" height="{:g}"/>)", from,
         top - 3, std::max(to - from, 2.0), bar_height + 6);
  append(svg, R"(<line class="axis" x1="0" y1="{0:g}" x2="{1:g}" y2="{0:g}"/>)", middle,
         drawn_width);
  svg += drawn_bar(drawn, tone, axis, top);
  append(svg, R"(<line class="limit" x1="{0:.1f}" y1="{1:g}" x2="{0:.1f}" y2="{2:g}"/>)",
         axis.at(drawn.limit), top - 4, top + bar_height + 4);
  append(svg, R"(<circle class="value {}" cx="{:.1f}" cy="{:g}" r="4"/>)", class_of(tone),
         axis.at(drawn.value), middle);
  if (names_limit) svg += words_at(axis.at(drawn.limit), 11, drawn.limit_words);
  if (!words.empty()) svg += words_at(axis.at(drawn.value), height - 3, words);
  return svg + "</svg>";
}

}  // namespace stepgate
