// SPDX-License-Identifier: MIT
#include "report/html/draw_interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "judge/assertions/estimate.h"
#include "judge/verdict/sides.h"
#include "report/append.h"
#include "report/picture/svg.h"

namespace stepgate {
namespace {

// In pixels.
constexpr double drawn_width = 320;
constexpr double drawn_margin = 8;
constexpr double bar_height = 12;
constexpr double words_height = 15;

constexpr double unbounded = std::numeric_limits<double>::infinity();

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

Span axis_around(const DrawnInterval& drawn) {
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

std::string drawn_bar(const DrawnInterval& drawn, const DrawnAxis& axis, double top) {
  if (!drawn.interval) return "";
  const double left = axis.at(drawn.interval->low);
  const double right = std::max(axis.at(drawn.interval->high), left + 1.5);
  std::string bar =
      fmt::format(R"(<rect class="range {}" x="{:.1f}" y="{:g}" width="{:.1f}" height="{:g}"/>)",
                  class_of(drawn.tone), left, top, right - left, bar_height);
  const double middle = top + bar_height / 2;
  if (axis.is_above(drawn.interval->high)) {
    append(bar, R"(<path class="value {}" d="M{:g} {:g}l-7 -5v10z"/>)", class_of(drawn.tone),
           drawn_width - 1, middle);
  }
  if (axis.is_below(drawn.interval->low)) {
    append(bar, R"(<path class="value {}" d="M1 {:g}l7 -5v10z"/>)", class_of(drawn.tone), middle);
  }
  return bar;
}

// The words for who does not see the picture.
std::string label_of(const DrawnInterval& drawn) {
  const std::string value =
      drawn.value_words.empty() ? fmt::format("{:.4g}", drawn.value) : drawn.value_words;
  const std::string limit =
      drawn.limit_words.empty() ? fmt::format("limit {:.4g}", drawn.limit) : drawn.limit_words;
  return value + "; " + limit;
}

bool is_drawable(const DrawnInterval& drawn) {
  const bool ends = !drawn.interval ||
                    (std::isfinite(drawn.interval->low) && std::isfinite(drawn.interval->high));
  return ends && std::isfinite(drawn.value) && std::isfinite(drawn.limit);
}

Span allowed_span(Relation relation, double limit, double within) {
  switch (relation) {
    case Relation::less:
    case Relation::at_most:
      return {-unbounded, limit};
    case Relation::greater:
    case Relation::at_least:
      return {limit, unbounded};
    case Relation::equal:
    case Relation::about:
      return {limit - std::abs(limit) * within, limit + std::abs(limit) * within};
  }
  return {limit, limit};
}

std::string_view words_of(Relation relation) {
  switch (relation) {
    case Relation::less:
      return "below";
    case Relation::at_most:
      return "at most";
    case Relation::greater:
      return "above";
    case Relation::at_least:
      return "at least";
    case Relation::equal:
      return "exactly";
    case Relation::about:
      return "about";
  }
  return "";
}

// For an assertion about stored runs: the estimate beside its anchor, which decides, in the terms
// of the assertion's author.
std::optional<Estimate> stored_estimate(const StoredEvidence& stored,
                                        const Expectation* assertion) {
  if (!stored.normalised.interval) return std::nullopt;
  Estimate estimate;
  estimate.limit = 1;
  if (assertion != nullptr) {
    const auto left = factor_of_single_metric(assertion->left);
    const auto right = factor_of_single_metric(assertion->right);
    if (left && right) estimate.limit = *right / *left;
  }
  estimate.value = estimate.limit * stored.normalised.ratio;
  estimate.interval = {.low = estimate.limit * stored.normalised.interval->low,
                       .high = estimate.limit * stored.normalised.interval->high};
  return estimate;
}

std::optional<Estimate> drawn_estimate(const AssertionVerdict& assertion,
                                       const Expectation* expectation) {
  if (assertion.stored) return stored_estimate(*assertion.stored, expectation);
  if (assertion.timed || assertion.not_randomised) return assertion.estimate;
  return std::nullopt;
}

}  // namespace

std::string draw_interval(const DrawnInterval& drawn) {
  if (!is_drawable(drawn)) return "";
  const DrawnAxis axis(drawn.axis ? *drawn.axis : axis_around(drawn));
  const double top = drawn.limit_words.empty() ? 4 : words_height + 2;
  const double height = top + bar_height + (drawn.value_words.empty() ? 4 : words_height + 4);
  const double middle = top + bar_height / 2;
  std::string svg = fmt::format(
      R"(<svg class="interval" viewBox="0 0 {:g} {:g}" width="{:g}" height="{:g}" role="img" aria-label="{}">)",
      drawn_width, height, drawn_width, height, html_text(label_of(drawn)));
  const double from = std::isfinite(drawn.allowed.low) ? axis.at(drawn.allowed.low) : 0;
  const double to = std::isfinite(drawn.allowed.high) ? axis.at(drawn.allowed.high) : drawn_width;
  append(svg, R"(<rect class="allowed" x="{:.1f}" y="{:g}" width="{:.1f}" height="{:g}"/>)", from,
         top - 3, std::max(to - from, 2.0), bar_height + 6);
  append(svg, R"(<line class="axis" x1="0" y1="{0:g}" x2="{1:g}" y2="{0:g}"/>)", middle,
         drawn_width);
  svg += drawn_bar(drawn, axis, top);
  append(svg, R"(<line class="limit" x1="{0:.1f}" y1="{1:g}" x2="{0:.1f}" y2="{2:g}"/>)",
         axis.at(drawn.limit), top - 4, top + bar_height + 4);
  append(svg, R"(<circle class="value {}" cx="{:.1f}" cy="{:g}" r="4"/>)", class_of(drawn.tone),
         axis.at(drawn.value), middle);
  if (!drawn.limit_words.empty()) svg += words_at(axis.at(drawn.limit), 11, drawn.limit_words);
  if (!drawn.value_words.empty())
    svg += words_at(axis.at(drawn.value), height - 3, drawn.value_words);
  return svg + "</svg>";
}

std::string draw_interval(const AssertionVerdict& assertion, const Expectation* expectation,
                          Tone tone) {
  const std::optional<Estimate> found = drawn_estimate(assertion, expectation);
  if (!found) return "";
  const Estimate& estimate = *found;
  DrawnInterval drawn{.value = estimate.value,
                      .interval = estimate.interval,
                      .limit = estimate.limit,
                      .allowed = {estimate.limit, estimate.limit},
                      .value_words = value_in_words(estimate.value, estimate),
                      .limit_words = "limit " + limit_in_words(estimate),
                      .tone = tone,
                      .axis = {}};
  if (estimate.interval) {
    const std::string all =
        drawn.value_words + fmt::format(" [{}, {}]",
                                        value_in_words(estimate.interval->low, estimate),
                                        value_in_words(estimate.interval->high, estimate));
    if (fits(all)) drawn.value_words = all;
  }
  if (expectation != nullptr) {
    drawn.allowed =
        allowed_span(expectation->relation, estimate.limit, expectation->within.value_or(0));
    drawn.limit_words =
        fmt::format("{} {}", words_of(expectation->relation), limit_in_words(estimate));
    if (expectation->within)
      drawn.limit_words += fmt::format(" within {:.3g} %", 100 * *expectation->within);
  }
  return draw_interval(drawn);
}

}  // namespace stepgate
