// SPDX-License-Identifier: MIT
#include "report/reported_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/number_words.h"
#include "scenario/assertions/metric_words.h"

namespace stepgate {
namespace {

constexpr double least_difference = 0.02;

struct Point {
  const Scenario* scenario;
  const ReportedScenario* decided;
};

std::optional<double> throughput_of(const Verdict& verdict, const std::string& variant) {
  const auto of = std::ranges::find(verdict.variants, variant, &VariantSummary::name);
  return of == verdict.variants.end() ? std::nullopt : of->samples_per_second;
}

// "1.68x passes", "1.01x [0.99x, 1.03x] fails", or the outcome alone; "-" where the point is not
// asked.
std::string cell_of(const ReportedScenario& decided, std::string_view name) {
  const auto& assertions = decided.decided->assertions;
  const auto of = std::ranges::find(assertions, name, &ReportedAssertion::name);
  if (of == assertions.end()) return "-";
  std::string number;
  if (of->number) {
    const bool passes = of->outcome == Outcome::passes;
    number = of->number->value_words + (passes ? "" : of->number->interval_words) + ' ';
  }
  return number + std::string(in_words(of->outcome));
}

// The assertions of all points, in the order of the file.
std::vector<const Expectation*> assertions_of(const std::vector<Point>& points) {
  std::vector<const Expectation*> all;
  for (const Point& point : points) {
    for (const Expectation& assertion : point.scenario->expect) {
      const auto same = [&](const Expectation* one) { return one->name == assertion.name; };
      if (std::ranges::none_of(all, same)) all.push_back(&assertion);
    }
  }
  std::ranges::stable_sort(all, {}, [](const Expectation* one) { return one->place.line; });
  return all;
}

ReportedSweep sweep_of(const std::vector<Point>& points) {
  const Scenario& first = *points.front().scenario;
  ReportedSweep sweep{.name = name_of_file(first), .knob = first.point->knob};
  const std::vector<const Expectation*> assertions = assertions_of(points);
  std::vector<std::string> titles{sweep.knob};
  for (const Variant& variant : first.variants) {
    sweep.curves.push_back({variant.name, {}});
    titles.push_back(variant.name);
  }
  for (const Expectation* assertion : assertions) titles.push_back(assertion->name);
  sweep.table.push_back(titles);
  for (const Point& point : points) {
    const Verdict& verdict = point.decided->decided->verdict;
    sweep.values.push_back(point.scenario->point->value);
    sweep.numbers.push_back(point.scenario->point->number);
    std::vector<std::string> row{point.scenario->point->value};
    for (SweepCurve& curve : sweep.curves) {
      curve.samples_per_s.push_back(throughput_of(verdict, curve.variant));
      const auto& last = curve.samples_per_s.back();
      row.push_back(last ? in_words(*last, MetricUnit::per_second) : "-");
    }
    for (const Expectation* assertion : assertions)
      row.push_back(cell_of(*point.decided, assertion->name));
    sweep.table.push_back(std::move(row));
  }
  sweep.crossings = crossings_of(sweep);
  return sweep;
}

// Where the logarithm of a ratio is 0, between two values of a knob at which it has these.
double zero_between(double first, double second, double log_ratio_first, double log_ratio_second) {
  const double share = log_ratio_first / (log_ratio_first - log_ratio_second);
  if (first <= 0) return first + share * (second - first);
  return first * std::pow(second / first, share);
}

}  // namespace

std::vector<std::string> crossings_of(const ReportedSweep& sweep) {
  std::vector<std::string> words;
  for (std::size_t one = 0; one < sweep.curves.size(); ++one) {
    for (std::size_t other = one + 1; other < sweep.curves.size(); ++other) {
      std::optional<std::size_t> last;  // the last point at which they differ
      double last_log = 0;
      for (std::size_t point = 0; point < sweep.values.size(); ++point) {
        const auto& a = sweep.curves[one].samples_per_s[point];
        const auto& b = sweep.curves[other].samples_per_s[point];
        if (!a || !b || !(*a > 0) || !(*b > 0)) continue;
        const double log = std::log(*a / *b);
        if (std::abs(log) < std::log1p(least_difference)) continue;
        if (last && std::signbit(log) != std::signbit(last_log)) {
          const double at = zero_between(sweep.numbers[*last], sweep.numbers[point], last_log, log);
          words.push_back(fmt::format("{} and {} cross between {} {} and {}, at about {}",
                                      sweep.curves[one].variant, sweep.curves[other].variant,
                                      sweep.knob, sweep.values[*last], sweep.values[point],
                                      number_in_words(at, 2)));
        }
        last = point;
        last_log = log;
      }
    }
  }
  return words;
}

std::vector<ReportedSweep> reported_sweeps(std::span<const Scenario* const> scenarios,
                                           std::span<const ReportedScenario> decided) {
  std::vector<ReportedSweep> sweeps;
  const std::size_t known = std::min(scenarios.size(), decided.size());
  for (std::size_t index = 0; index < known;) {
    std::vector<Point> points;
    const std::string& file = scenarios[index]->file;
    for (; index < known && scenarios[index]->file == file; ++index) {
      if (scenarios[index]->point && decided[index].decided != nullptr)
        points.push_back({scenarios[index], &decided[index]});
      else if (!scenarios[index]->point)
        points.clear();
    }
    if (points.size() > 1) sweeps.push_back(sweep_of(points));
  }
  return sweeps;
}

}  // namespace stepgate
