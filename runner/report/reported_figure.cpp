// SPDX-License-Identifier: MIT
#include "report/reported_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text/number_words.h"
#include "judge/verdict/sides.h"
#include "judge/verdict/words.h"
#include "scenario/assertions/metric_words.h"

namespace stepgate {
namespace {

const MetricOf& metric_of(const Side& side) {
  return std::get<MetricOf>(*std::ranges::find_if(
      side.front(), [](const Factor& factor) { return std::holds_alternative<MetricOf>(factor); }));
}

std::string side_in_words(const Side& side, std::optional<double> value) {
  const auto factor = factor_of_single_metric(side);
  if (!value || !factor) return "";
  const MetricOf& of = metric_of(side);
  return of.variant + " " + in_words(*value / *factor, row_of(of.metric).unit);
}

bool is_below_one(const ArticleFigure& figure) {
  return figure.low + figure.high < 2;
}

// Whether the left side is the better one by the figure.
bool left_is_good(const ArticleFigure& figure, const Expectation& assertion) {
  const bool less_is_better = row_of(metric_of(assertion.left).metric).better == Better::less;
  return is_below_one(figure) == less_is_better;
}

// The interval of the ratio of the metrics. The fewest rounds that decide an assertion close no
// confidence sequence; theirs is their range.
std::optional<RatioInterval> interval_of(const Expectation& assertion,
                                         const AssertionVerdict& decided) {
  if (!decided.estimate || decided.estimate->interval || !decided.timed ||
      decided.timed->contrasts.empty() || compares_high_percentiles(assertion))
    return decided.estimate ? decided.estimate->interval : std::nullopt;
  const auto [low, high] = std::ranges::minmax_element(decided.timed->contrasts);
  return RatioInterval{limit_of(assertion) * std::exp(*low), limit_of(assertion) * std::exp(*high)};
}

bool is_counted(const AssertionVerdict& decided) {
  return decided.evidence < Evidence::timed;
}

ReportedFigure reported(const ArticleFigure& figure, const Expectation& assertion,
                        const AssertionVerdict& decided) {
  ReportedFigure reported{.figure = figure};
  if (decided.outcome == Outcome::skipped || !decided.left || !decided.right) return reported;
  reported.bad = side_in_words(assertion.right, decided.right);
  reported.good = side_in_words(assertion.left, decided.left);
  if (!left_is_good(figure, assertion)) std::swap(reported.bad, reported.good);
  if (decided.estimate) {
    reported.ratio = decided.estimate->value;
    reported.interval = interval_of(assertion, decided);
  } else if (is_counted(decided) && *decided.right > 0) {
    reported.ratio = *decided.left / *decided.right * limit_of(assertion);
  }
  if (reported.ratio)
    reported.answer = answer_to(
        figure, reported.interval.value_or(RatioInterval{*reported.ratio, *reported.ratio}));
  return reported;
}

std::string ratio_in_words(const ReportedFigure& figure) {
  if (!figure.ratio) return "";
  std::string words = factor_in_words(*figure.ratio);
  if (!figure.interval) return words + ", counted";
  return fmt::format("{} [{}, {}]", words, factor_in_words(figure.interval->low),
                     factor_in_words(figure.interval->high));
}

std::string figure_in_words(const ArticleFigure& figure) {
  const std::string low = number_in_words(figure.low, 3) + "x";
  if (figure.low == figure.high) return low;
  return fmt::format("{} to {}x", low, number_in_words(figure.high, 3));
}

}  // namespace

std::string_view in_words(FigureAnswer answer) {
  switch (answer) {
    case FigureAnswer::holds:
      return "holds";
    case FigureAnswer::exceeded:
      return "exceeded";
    case FigureAnswer::refuted:
      return "refuted";
    case FigureAnswer::open:
      return "open";
  }
  return "";
}

FigureAnswer answer_to(const ArticleFigure& figure, RatioInterval measured) {
  if (measured.low <= figure.high && figure.low <= measured.high) return FigureAnswer::holds;
  const bool is_below = measured.high < figure.low;
  return is_below == is_below_one(figure) ? FigureAnswer::exceeded : FigureAnswer::refuted;
}

std::vector<ReportedFigure> reported_figures(const Verdict& verdict, const Scenario* scenario) {
  std::vector<ReportedFigure> figures;
  if (scenario == nullptr) return figures;
  for (const ArticleFigure& figure : scenario->article) {
    const auto assertion =
        std::ranges::find(scenario->expect, figure.assertion, &Expectation::name);
    const auto decided =
        std::ranges::find(verdict.assertions, figure.assertion, &AssertionVerdict::name);
    if (assertion == scenario->expect.end() || decided == verdict.assertions.end()) continue;
    figures.push_back(reported(figure, *assertion, *decided));
    figures.back().scenario = verdict.scenario;
  }
  return figures;
}

std::vector<std::vector<std::string>> figure_table(std::span<const ReportedFigure> figures) {
  std::vector<std::vector<std::string>> rows;
  for (const ReportedFigure& figure : figures) {
    if (rows.empty())
      rows.push_back({"experiment", "bad", "good", "ratio", "article", "here", "assertion"});
    rows.push_back({figure.figure.experiment, figure.bad, figure.good, ratio_in_words(figure),
                    figure_in_words(figure.figure), std::string(in_words(figure.answer)),
                    figure.scenario + "." + figure.figure.assertion});
  }
  return rows;
}

}  // namespace stepgate
