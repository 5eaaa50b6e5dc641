// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/append.h"
#include "report/html/html.h"
#include "report/picture/svg.h"

namespace stepgate {
namespace {

// In pixels.
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
  if (drawn.interval) {
    span.low = std::min(span.low, drawn.interval->low);
    span.high = std::max(span.high, drawn.interval->high);
  }
  for (const double end : {drawn.allowed.low, drawn.allowed.high}) {
    if (!std::isfinite(end)) continue;
    span.low = std::min(span.low, end);
    span.high = std::max(span.high, end);
  }
  double room = 0.12 * (span.high - span.low);
  if (room <= 0) room = std::max(std::abs(span.low) * 0.1, 1e-12);
  return {span.low - room, span.high + room};
}

// Letters of 11 pixels, of which some fonts have wider ones than svg.h thinks.
constexpr double safe_size = 13;

bool fits(const std::string& words) {
  return width_of_text(words, safe_size) <= drawn_width;
}

// Words at a place, which stay within the picture; nothing where they do not fit.
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

// The words for who does not see the picture.
std::string label_of(const ReportedNumber& drawn, const std::string& words) {
  const std::string value = words.empty() ? fmt::format("{:.4g}", drawn.value) : words;
  const std::string limit =
      drawn.limit_words.empty() ? fmt::format("limit {:.4g}", drawn.limit) : drawn.limit_words;
  return value + "; " + limit;
}

bool is_drawable(const ReportedNumber& drawn) {
  const bool ends = !drawn.interval ||
                    (std::isfinite(drawn.interval->low) && std::isfinite(drawn.interval->high));
  return ends && std::isfinite(drawn.value) && std::isfinite(drawn.limit);
}

}  // namespace

std::string draw_interval(const ReportedNumber& drawn, Tone tone,
                          const std::optional<Span>& shared) {
  if (!is_drawable(drawn)) return "";
  const DrawnAxis axis(shared ? *shared : axis_around(drawn));
  std::string words = drawn.value_words + drawn.interval_words;
  if (!fits(words)) words = drawn.value_words;
  const double top = drawn.limit_words.empty() ? 4 : words_height + 2;
  const double height = top + bar_height + (words.empty() ? 4 : words_height + 4);
  const double middle = top + bar_height / 2;
  std::string svg = fmt::format(
      R"(<svg class="interval" viewBox="0 0 {:g} {:g}" width="{:g}" height="{:g}" role="img" aria-label="{}">)",
      drawn_width, height, drawn_width, height, html_text(label_of(drawn, words)));
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
  if (!drawn.limit_words.empty()) svg += words_at(axis.at(drawn.limit), 11, drawn.limit_words);
  if (!words.empty()) svg += words_at(axis.at(drawn.value), height - 3, words);
  return svg + "</svg>";
}

}  // namespace stepgate
