// SPDX-License-Identifier: MIT
#include "report/text/print_list.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "base/seconds.h"
#include "base/text/number_words.h"
#include "base/text/visible_text.h"
#include "judge/verdict/words.h"
#include "report/text/table.h"
#include "report/writers.h"

namespace stepgate {
void print_listed(std::ostream& out, const Scenario& scenario) {
  fmt::print(out, "{}  [{}]\n  {}\n", name_of_file(scenario), fmt::join(scenario.tags, ", "),
             one_line(scenario.claim));
  print_steps(out, reported_steps(described_steps(scenario.variants)));
  std::vector<std::string_view> variants;
  for (const Variant& variant : scenario.variants) variants.push_back(variant.name);
  std::vector<std::string_view> assertions;
  for (const Expectation& expectation : scenario.expect) assertions.push_back(expectation.name);
  fmt::print(out, "  variants: {}\n  expects:  {}\n", fmt::join(variants, ", "),
             fmt::join(assertions, ", "));
  if (scenario.point)
    fmt::print(out, "  sweep:    {} over {}\n", scenario.point->knob,
               fmt::join(scenario.point->values, ", "));
}

void print_checked(std::ostream& out, const Scenario& scenario,
                   std::span<const Diagnostic> warnings) {
  fmt::print(out, "{}: {}, {}\n", one_line(scenario.file),
             counted_in_words(std::ssize(scenario.variants), "variant"),
             counted_in_words(std::ssize(scenario.expect), "assertion"));
  print_warnings(out, warnings);
}

void print_warnings(std::ostream& out, std::span<const Diagnostic> warnings) {
  for (const Diagnostic& warning : warnings) fmt::print(out, "warning: {}\n", to_string(warning));
}

void print_devices(std::ostream& out, std::span<const DeviceRow> rows) {
  std::size_t width = 0;
  for (const DeviceRow& row : rows) width = std::max(width, one_line(row.spec).size());
  for (const DeviceRow& row : rows) {
    fmt::print(out, "{:<{}}  {}{}\n", one_line(row.spec), width,
               row.available ? "" : "not available: ", one_line(row.description));
  }
}

void print_accepted(std::ostream& out, const Baseline& baseline, const DeviceIdentity& device) {
  out << fmt::format("{} on {}: run {} stored in {}\n", baseline.scenario, in_words(device),
                     baseline.runs.size(), baseline.file);
  const StoredRun& stored = baseline.runs.back();
  if (!stored.baseline_reset.empty())
    out << fmt::format("  a baseline reset, no more compared with earlier runs: {}\n",
                       one_line(stored.baseline_reset));
  std::vector<std::vector<std::string>> rows;
  for (const StoredVariant& variant : stored.variants) {
    rows.push_back(
        {variant.name, in_words(variant.step_seconds, MetricUnit::seconds),
         fmt::format("{:.4g} times {} of {}", variant.step_seconds / variant.anchor_seconds,
                     in_words(variant.anchor_seconds, MetricUnit::seconds), variant.anchor)});
  }
  print_table(out, {Align::left, Align::right, Align::left}, rows);
}

void print_accepted_runs(std::ostream& out, const AcceptedRuns& runs) {
  out << fmt::format("{} asked for: {} stored, {} not accepted",
                     counted_in_words(runs.asked, "run"), runs.stored, runs.refused);
  if (runs.failed > 0) out << fmt::format(", {} failed", runs.failed);
  if (const std::int64_t rest = runs.asked - runs.stored - runs.refused - runs.failed; rest > 0)
    out << fmt::format(", {} not run to the end", rest);
  out << '\n';
}

void print_not_accepted(std::ostream& out, const std::string& scenario, const std::string& reason) {
  out << fmt::format("{}: not accepted: {}\n", scenario, one_line(reason));
}

void print_early(std::ostream& out, const std::string& scenario, const AssertionVerdict& count,
                 Traces traces, Style style) {
  out << fmt::format("{}{}.{} {} by its trace: {}\n",
                     traces == Traces::simulated ? "SIMULATED " : "", scenario, count.name,
                     coloured(count.outcome, style), one_line(count.reason));
}

void print_wall_times(std::ostream& out, const WallTimes& times, std::chrono::nanoseconds whole) {
  out << fmt::format("{:.2f} s on the clock:", seconds(whole));
  for (const WallPart part : all_wall_parts()) {
    if (times[part].count() != 0)
      out << fmt::format(" {} {:.2f},", name_of(part), seconds(times[part]));
  }
  out << fmt::format(" other {:.2f}\n", seconds(whole - times.sum()));
}

void print_forecast(std::ostream& out, const std::string& scenario, const Forecast& forecast) {
  const auto cost = [&](double rounds) {
    return fmt::format("{} rounds ({})", number_in_words(std::round(rounds), 3),
                       seconds_in_words(rounds * seconds(forecast.round)));
  };
  out << fmt::format("{}: can pass after {}, fail after {}", scenario,
                     cost(static_cast<double>(forecast.rounds_to_hold)),
                     cost(static_cast<double>(forecast.rounds_to_refute)));
  if (forecast.rounds_for_one_percent) {
    out << fmt::format("; a line 1 % from its limit takes about {}",
                       cost(*forecast.rounds_for_one_percent));
  }
  out << fmt::format("; there is room for {}\n", forecast.rounds_that_fit);
}

}  // namespace stepgate
