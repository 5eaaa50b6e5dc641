// SPDX-License-Identifier: MIT
#include "report/text/verdict_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "judge/verdict/words.h"
#include "support/seconds.h"
#include "support/text/number_words.h"

namespace stepgate {
namespace {

std::string or_dash(std::optional<double> value, MetricUnit unit) {
  return value ? in_words(*value, unit) : "-";
}

struct Column {
  std::string_view title;
  std::string (*cell)(const VariantSummary&);
};

using Summary = const VariantSummary&;
constexpr std::array all_columns{
    Column{"variant", [](Summary of) { return of.name; }},
    Column{"step mean",
           [](Summary of) { return or_dash(of.step_seconds_mean, MetricUnit::seconds); }},
    Column{"p50", [](Summary of) { return or_dash(of.step_seconds_p50, MetricUnit::seconds); }},
    Column{"p95", [](Summary of) { return or_dash(of.step_seconds_p95, MetricUnit::seconds); }},
    Column{"samples",
           [](Summary of) { return or_dash(of.samples_per_second, MetricUnit::per_second); }},
    Column{"host share", [](Summary of) { return or_dash(of.host_share, MetricUnit::ratio); }},
    Column{"peak memory", [](Summary of) {
             return in_words(static_cast<double>(of.peak_bytes), MetricUnit::bytes);
           }}};

// Shown where they are known: most devices that are no GPU have no clock.
constexpr std::array clock_columns{
    Column{"SM clock",
           [](Summary of) {
             return of.sm_clock_hertz ? fmt::format("{:.0f} MHz", *of.sm_clock_hertz / 1e6) : "-";
           }},
    Column{"cycles a step", [](Summary of) {
             return of.cycles_per_step ? fmt::format("{:.4g}k", *of.cycles_per_step / 1e3) : "-";
           }}};

// A count of a step that has an allocator of its own; "-" for other steps.
std::string of_simulation(const VariantSummary& of, std::int64_t AllocatorSimulation::*what) {
  return of.allocator_simulation ? std::to_string((*of.allocator_simulation).*what) : "-";
}
constexpr std::array allocator_columns{
    Column{"reserved",
           [](Summary of) {
             return of.allocator_simulation
                        ? in_words(
                              static_cast<double>(of.allocator_simulation->peak_reserved_bytes),
                              MetricUnit::bytes)
                        : "-";
           }},
    Column{"refused steps",
           [](Summary of) { return of_simulation(of, &AllocatorSimulation::refused_steps); }},
    Column{"cache flushes",
           [](Summary of) { return of_simulation(of, &AllocatorSimulation::retries); }},
    Column{"of steps", [](Summary of) { return of_simulation(of, &AllocatorSimulation::steps); }}};

}  // namespace

std::string counted_in_words(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::vector<std::vector<std::string>> variant_rows(const std::vector<VariantSummary>& variants) {
  if (variants.empty()) return {};
  std::vector<Column> columns(all_columns.begin(), all_columns.end());
  const bool is_timed = std::any_of(variants.begin(), variants.end(),
                                    [](Summary of) { return of.step_seconds_mean.has_value(); });
  if (!is_timed) columns = {all_columns.front(), all_columns.back()};
  const bool is_served = std::any_of(variants.begin(), variants.end(), [](Summary of) {
    return of.allocator_simulation.has_value();
  });
  if (is_served) columns.insert(columns.end(), allocator_columns.begin(), allocator_columns.end());
  const bool clock_is_known = std::any_of(variants.begin(), variants.end(),
                                          [](Summary of) { return of.sm_clock_hertz.has_value(); });
  if (clock_is_known) columns.insert(columns.end(), clock_columns.begin(), clock_columns.end());
  std::vector<std::vector<std::string>> rows(1);
  for (const Column& column : columns) rows[0].emplace_back(column.title);
  for (const VariantSummary& variant : variants) {
    rows.emplace_back();
    for (const Column& column : columns) rows.back().push_back(column.cell(variant));
  }
  return rows;
}

std::string cost_in_words(const Verdict& verdict) {
  const std::string earlier =
      fmt::format("{} of {}", counted_in_words(verdict.earlier_rounds, "round"),
                  counted_in_words(verdict.earlier_runs, "earlier run"));
  if (verdict.rounds == 0) {
    return verdict.earlier_runs == 0
               ? ""
               : fmt::format(" by {}, which stays; nothing was measured", earlier);
  }
  const bool simulated = verdict.device.kind == DeviceKind::simulated;
  std::string words =
      fmt::format(" after {} of {}, {} {}", counted_in_words(verdict.rounds, "round"),
                  counted_in_words(verdict.loads_per_round, "load"),
                  number_in_words(seconds(verdict.device_time), 3),
                  simulated ? "simulated GPU seconds" : "GPU seconds");
  if (verdict.earlier_rounds > 0) {
    words += ", continues " + earlier;
  } else if (verdict.earlier_runs > 0) {
    words += fmt::format(", after {} that left no round to continue",
                         counted_in_words(verdict.earlier_runs, "earlier run"));
  }
  return words;
}

std::string rates_in_words(const Verdict& verdict) {
  std::string words;
  if (verdict.rounds == 0) return words;
  const bool any_timed =
      std::any_of(verdict.sentences.begin(), verdict.sentences.end(),
                  [](const SentenceVerdict& sentence) { return sentence.timed.has_value(); });
  if (any_timed) {
    words += fmt::format(
        "; of this process: at most {:.3g} % of runs refute {}, {:.3g} % hold a false one; what "
        "slows down fewer than {} of rounds may not have shown",
        100 * verdict.suite_alpha,
        verdict.suite_lines == 1
            ? "a true comparison"
            : fmt::format("any true one of {} comparisons", verdict.suite_lines),
        100 * verdict.beta, share_in_words(share_that_may_not_show(verdict.rounds, verdict.beta)));
  }
  const bool any_stored =
      std::any_of(verdict.sentences.begin(), verdict.sentences.end(),
                  [](const SentenceVerdict& sentence) { return sentence.stored.has_value(); });
  if (any_stored) {
    words += fmt::format(
        "; against stored runs: at most {:.3g} % of runs refute {}, {:.3g} % hold a false one",
        100 * verdict.suite_alpha,
        verdict.stored_lines == 1
            ? "a true sentence"
            : fmt::format("any true one of {} sentences", verdict.stored_lines),
        100 * verdict.beta);
  }
  return words;
}

}  // namespace stepgate
