// SPDX-License-Identifier: MIT
// Makes the texts and tables for a verdict, its assertions and its traces.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "base/seconds.h"
#include "base/text/number_words.h"
#include "judge/assertions/estimate.h"
#include "judge/judge_clocks.h"
#include "judge/verdict/sides.h"
#include "plan/compose/step_names.h"
#include "report/append.h"
#include "report/report.h"
#include "report/reported_differences.h"

namespace stepgate {

std::string place_in_words(const Place& place) {
  return place.line > 0 && !place.file.empty() ? fmt::format("{}:{}", place.file, place.line)
                                               : place.file;
}

namespace {

std::string variants_in_words(const ComparedThing& thing, const AlikeVariants& alike) {
  constexpr std::size_t most_named = 6;
  if (!thing.differs()) return "all";
  const std::span<const std::string> variants = alike.variants;
  if (variants.size() <= most_named) return fmt::format("{}", fmt::join(variants, ", "));
  return fmt::format("{} and {} more", fmt::join(variants.first(most_named), ", "),
                     variants.size() - most_named);
}

}  // namespace

std::vector<ReportedThing> reported_steps(const std::vector<DescribedStep>& steps) {
  std::vector<ReportedThing> things;
  for (const ComparedThing& thing : compared_things(steps)) {
    ReportedThing& reported = things.emplace_back(ReportedThing{thing.thing, {}});
    for (const AlikeVariants& alike : thing.groups) {
      reported.groups.push_back(
          {variants_in_words(thing, alike), alike.words.empty() ? "nothing else" : alike.words});
    }
  }
  return things;
}

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

Span allowed_span(Relation relation, double limit, double within) {
  switch (relation) {
    case Relation::less:
    case Relation::at_most:
      return {-infinite, limit};
    case Relation::greater:
    case Relation::at_least:
      return {limit, infinite};
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

// For an assertion about stored runs: the normalised estimate, which decides, in the terms of the
// assertion's author.
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

namespace {

// A count: it has no interval, and is in the words of its reason (counted_reason).
std::optional<ReportedNumber> counted_number(const AssertionVerdict& assertion) {
  if (assertion.timed || assertion.not_randomised || assertion.stored) return std::nullopt;
  if (!assertion.left || !assertion.right || assertion.unit == MetricUnit::bound_class)
    return std::nullopt;
  return ReportedNumber{.value = *assertion.left,
                        .limit = *assertion.right,
                        .value_words = in_words(*assertion.left, assertion.unit),
                        .limit_words = in_words(*assertion.right, assertion.unit)};
}

std::optional<ReportedNumber> measured_number(const AssertionVerdict& assertion,
                                              const Expectation* expectation) {
  const std::optional<Estimate> estimate = drawn_estimate(assertion, expectation);
  if (!estimate) return std::nullopt;
  ReportedNumber number{.value = estimate->value,
                        .interval = estimate->interval,
                        .limit = estimate->limit,
                        .value_words = value_in_words(estimate->value, *estimate),
                        .limit_words = limit_in_words(*estimate)};
  if (const auto bounds = bounds_that_decided(assertion)) {
    number.interval = {bounds->low.value_or(-infinite), bounds->high.value_or(infinite)};
    number.interval_words = ", " + bounds_in_words(*bounds, *estimate);
  } else if (estimate->interval) {
    number.interval_words =
        fmt::format(" [{}, {}]", value_in_words(estimate->interval->low, *estimate),
                    value_in_words(estimate->interval->high, *estimate));
  }
  return number;
}

}  // namespace

std::optional<ReportedNumber> number_of(const AssertionVerdict& assertion,
                                        const Expectation* expectation) {
  std::optional<ReportedNumber> number = measured_number(assertion, expectation);
  if (!number) number = counted_number(assertion);
  if (!number) return std::nullopt;
  number->allowed = {number->limit, number->limit};
  if (expectation == nullptr) {
    number->limit_words = "limit " + number->limit_words;
    return number;
  }
  number->allowed =
      allowed_span(expectation->relation, number->limit, expectation->within.value_or(0));
  number->limit_words = fmt::format("{} {}", words_of(expectation->relation), number->limit_words);
  if (expectation->within)
    append(number->limit_words, " within {:.3g} %", 100 * *expectation->within);
  return number;
}

namespace {

// ", 1.2 s"; empty where it is negligible, as on a device that only computes times.
std::string trace_cost_in_words(std::chrono::nanoseconds wall_time) {
  constexpr double hardly_anything = 0.1;
  const double seconds = std::chrono::duration<double>(wall_time).count();
  return seconds < hardly_anything ? "" : fmt::format(", {:.1f} s", seconds);
}

// "; a traced step takes 1.02x to 1.12x the time of a timed one"; empty where either is unknown.
std::string slowdown_in_words(const Mechanism& mechanism) {
  std::vector<double> slowdowns;
  for (const VariantMechanism& variant : mechanism.variants) {
    if (variant.slowdown) slowdowns.push_back(*variant.slowdown);
  }
  if (slowdowns.empty()) return "";
  const auto [least, most] = std::minmax_element(slowdowns.begin(), slowdowns.end());
  const std::string from = fmt::format("{:.2f}x", *least);
  const std::string to = fmt::format("{:.2f}x", *most);
  constexpr double too_slow = 1.1;
  return fmt::format(
      "; a traced step takes {}{} the time of a timed one{}", from, from == to ? "" : " to " + to,
      *most > too_slow ? ", so its host issues work more slowly than in timed ones" : "");
}

// Ignores differences up to 4096 bytes, such as a flag that the host reads back.
bool same_memory(const MemoryUse& one, const MemoryUse& other) {
  constexpr std::int64_t hardly_anything = 4096;
  const auto about = [](std::int64_t a, std::int64_t b) {
    return std::abs(a - b) <= hardly_anything;
  };
  return about(one.peak_allocated_bytes, other.peak_allocated_bytes) &&
         about(one.peak_reserved_bytes, other.peak_reserved_bytes) &&
         about(one.pinned_bytes, other.pinned_bytes);
}

std::vector<std::string> memory_row(std::string name, const MemoryUse& use,
                                    const std::vector<std::size_t>& purposes) {
  const auto bytes = [](std::int64_t count) {
    return in_words(static_cast<double>(count), MetricUnit::bytes);
  };
  std::vector<std::string> row{std::move(name)};
  for (const std::size_t purpose : purposes) row.push_back(bytes(use.allocated_bytes[purpose]));
  for (const std::int64_t count :
       {use.peak_allocated_bytes, use.peak_reserved_bytes, use.pinned_bytes}) {
    row.push_back(bytes(count));
  }
  return row;
}

// Returns whether the device accounts for memory.
bool is_booked(const VariantMechanism& variant) {
  return variant.memory.peak_allocated_bytes > 0;
}

// Returns true also where there is no plan.
bool is_as_planned(const VariantMechanism& variant) {
  return !variant.planned || same_memory(variant.memory, *variant.planned);
}

// Returns no table where neither the variants nor the plan differ.
TextTable memory_table(const std::vector<VariantMechanism>& variants) {
  const bool worth_showing =
      std::any_of(variants.begin(), variants.end(), [&](const VariantMechanism& variant) {
        return is_booked(variant) &&
               (!same_memory(variant.memory, variants.front().memory) || !is_as_planned(variant));
      });
  if (!worth_showing) return {};
  std::vector<std::size_t> purposes;
  TextTable rows(1);
  rows[0].emplace_back("memory");
  for (std::size_t purpose = 0; purpose < purpose_count; ++purpose) {
    const bool used =
        std::any_of(variants.begin(), variants.end(), [&](const VariantMechanism& variant) {
          const auto& planned = variant.planned;
          return variant.memory.allocated_bytes[purpose] > 0 ||
                 (planned && planned->allocated_bytes[purpose] > 0);
        });
    if (!used) continue;
    purposes.push_back(purpose);
    rows[0].emplace_back(name_of(static_cast<Purpose>(purpose)));
  }
  for (const char* title : {"allocated", "reserved", "pinned host"}) rows[0].emplace_back(title);
  for (const VariantMechanism& variant : variants) {
    if (!is_booked(variant)) continue;
    rows.push_back(memory_row(variant.variant, variant.memory, purposes));
    if (is_as_planned(variant)) continue;
    rows.push_back(memory_row("  planned", *variant.planned, purposes));
  }
  return rows;
}

// Says which rank each number of a variant comes from; empty where its ranks do not differ.
std::string ranks_in_words(const std::string& variant, const WorstRanks& ranks) {
  if (ranks.metrics.empty() && ranks.kernels.empty()) return "";
  std::map<int, std::vector<std::string_view>> worst_at;
  for (const auto& [metric, rank] : ranks.metrics) worst_at[rank].push_back(row_of(metric).name);
  std::string words = fmt::format(
      "{}: the parts of its step are rank {}'s, and kernels each those of the rank where they take "
      "longest",
      variant, ranks.shown);
  std::string_view link = " is worst";
  for (const auto& [rank, metrics] : worst_at) {
    words += fmt::format("; rank {}{} at {}", rank, link, fmt::join(metrics, ", "));
    link = "";
  }
  return words;
}

// Returns the names of the work that takes the most seconds in any variant.
std::vector<std::string> slowest_first(const Mechanism& mechanism) {
  constexpr std::size_t most_rows = 8;
  std::map<std::string, double> seconds;
  for (const VariantMechanism& variant : mechanism.variants) {
    for (const auto& [name, time] : variant.work)
      seconds[name] = std::max(seconds[name], time.seconds);
  }
  std::vector<std::string> names;
  for (const auto& [name, most] : seconds) names.push_back(name);
  std::ranges::stable_sort(names, std::greater<>(),
                           [&](const std::string& name) { return seconds.at(name); });
  if (names.size() > most_rows) names.resize(most_rows);
  return names;
}

constexpr std::size_t most_whole_columns = 5;

// Leaves out communication for steps of one rank, and latency where no kernel has dependent loads.
std::vector<TimePart> parts_shown(const Mechanism& mechanism) {
  const auto any = [&](auto&& has) { return std::ranges::any_of(mechanism.variants, has); };
  const bool communicates = any([](const VariantMechanism& variant) {
    const auto time = variant.values.find(Metric::comm_us);
    return time != variant.values.end() && time->second > 0;
  });
  const bool waits_for_loads =
      any([](const VariantMechanism& variant) { return variant.time.latency > 0; });
  std::vector<TimePart> parts;
  for (int index = 0; index < time_part_count; ++index) {
    const auto part = static_cast<TimePart>(index);
    if (part == TimePart::communication && !communicates) continue;
    if (part == TimePart::latency && !waits_for_loads) continue;
    parts.push_back(part);
  }
  return parts;
}

// "24x 1.2 ms 34.1 %", or only the time where there are many variants. Concurrent work may add up
// to more than the step.
std::string cell_of(const WorkTime& work, const TimeBreakdown& time, bool whole) {
  if (!whole) return in_words(work.seconds, MetricUnit::seconds);
  const std::string share =
      time.step > 0 ? fmt::format(" {:.1f} %", 100 * work.seconds / time.step) : "";
  return fmt::format("{:.4g}x {}{}", work.times, in_words(work.seconds, MetricUnit::seconds),
                     share);
}

TextTable time_table(const Mechanism& mechanism) {
  TextTable rows(1);
  rows[0] = {"variant", "traced step"};
  const std::vector<TimePart> parts = parts_shown(mechanism);
  for (const TimePart part : parts) rows[0].emplace_back(in_words(part));
  for (const VariantMechanism& variant : mechanism.variants) {
    const TimeBreakdown& time = variant.time;
    rows.push_back({variant.variant, in_words(time.step, MetricUnit::seconds)});
    for (const TimePart part : parts) {
      const double seconds = part_of(time, part);
      rows.back().push_back(time.step > 0 ? fmt::format("{:.1f} %", 100 * seconds / time.step)
                                          : "-");
    }
  }
  return rows;
}

TextTable slowest_table(const Mechanism& mechanism) {
  const std::vector<std::string> names = slowest_first(mechanism);
  if (names.empty()) return {};
  TextTable rows(1);
  rows[0].emplace_back("slowest, a step");
  for (const VariantMechanism& variant : mechanism.variants) rows[0].push_back(variant.variant);
  const bool whole = mechanism.variants.size() <= most_whole_columns;
  for (const std::string& name : names) {
    rows.push_back({name});
    for (const VariantMechanism& variant : mechanism.variants) {
      const auto found = variant.work.find(name);
      rows.back().push_back(
          found == variant.work.end() ? "-" : cell_of(found->second, variant.time, whole));
    }
  }
  return rows;
}

}  // namespace

ReportedMechanism reported_mechanism(const Mechanism& mechanism) {
  ReportedMechanism reported;
  if (mechanism.variants.empty()) {
    reported.unavailable = mechanism.unavailable.empty()
                               ? "nothing was traced"
                               : "trace unavailable: " + mechanism.unavailable;
    return reported;
  }
  for (const VariantMechanism& variant : mechanism.variants) {
    reported.variants.push_back({variant.variant, variant.diagnosis});
    if (!variant.ranks) continue;
    if (std::string words = ranks_in_words(variant.variant, *variant.ranks); !words.empty())
      reported.ranks.push_back(std::move(words));
  }
  for (const Separation& separation : mechanism.separations)
    reported.separations.push_back(separation.summary);
  reported.time = time_table(mechanism);
  reported.slowest = slowest_table(mechanism);
  reported.memory = memory_table(mechanism.variants);
  reported.cost =
      fmt::format("{} of {}{}{}", counted_in_words(mechanism.rounds, "traced round"),
                  counted_in_words(mechanism.steps, "step"),
                  trace_cost_in_words(mechanism.wall_time), slowdown_in_words(mechanism));
  return reported;
}

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
             return of.peak_bytes == 0
                        ? std::string("-")
                        : in_words(static_cast<double>(of.peak_bytes), MetricUnit::bytes);
           }}};

// Shown only where known: most devices other than GPUs have no clock rate.
constexpr std::array clock_columns{
    Column{"SM clock",
           [](Summary of) {
             return of.sm_clock_hertz ? fmt::format("{:.0f} MHz", *of.sm_clock_hertz / 1e6) : "-";
           }},
    Column{"cycles a step", [](Summary of) {
             return of.cycles_per_step ? fmt::format("{:.4g}k", *of.cycles_per_step / 1e3) : "-";
           }}};

// A count of a step with its own allocator; "-" for other steps.
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

TextTable variant_table(const std::vector<VariantSummary>& variants) {
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
  TextTable rows(1);
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
               : fmt::format("by {}, which stays; nothing was measured", earlier);
  }
  std::string words = fmt::format(
      "after {} of {}, {} {}", counted_in_words(verdict.rounds, "round"),
      counted_in_words(verdict.loads_per_round, "load"),
      number_in_words(seconds(verdict.device_time), 3),
      verdict.device.kind == DeviceKind::simulated ? "simulated GPU seconds" : "GPU seconds");
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
      std::any_of(verdict.assertions.begin(), verdict.assertions.end(),
                  [](const AssertionVerdict& assertion) { return assertion.timed.has_value(); });
  if (any_timed) {
    words += fmt::format(
        "; of this process: at most {:.3g} % of runs refute {}, {:.3g} % pass a false one; what "
        "slows down fewer than {} of rounds{} may not have shown",
        100 * verdict.suite_alpha,
        verdict.suite_lines == 1
            ? "a true comparison"
            : fmt::format("any true one of {} comparisons", verdict.suite_lines),
        100 * verdict.beta, share_in_words(share_that_may_not_show(verdict.rounds, verdict.beta)),
        verdict.last_scored_step == 0
            ? ""
            : fmt::format(", or happens after step {} of a launch,", verdict.last_scored_step));
  }
  const bool any_stored =
      std::any_of(verdict.assertions.begin(), verdict.assertions.end(),
                  [](const AssertionVerdict& assertion) { return assertion.stored.has_value(); });
  if (any_stored) {
    words += fmt::format(
        "; against stored runs: at most {:.3g} % of runs refute {}, {:.3g} % pass a false one",
        100 * verdict.suite_alpha,
        verdict.stored_lines == 1
            ? "a true assertion"
            : fmt::format("any true one of {} assertions", verdict.stored_lines),
        100 * verdict.beta);
  }
  return words;
}

std::vector<ReportedAssertion> assertions_of(const std::vector<AssertionVerdict>& assertions,
                                             const std::vector<Expectation>* expected) {
  std::vector<ReportedAssertion> all;
  for (const AssertionVerdict& assertion : assertions) {
    const Expectation* expectation = nullptr;
    if (expected != nullptr) {
      const auto found = std::ranges::find(*expected, assertion.name, &Expectation::name);
      if (found != expected->end()) expectation = &*found;
    }
    all.push_back({.name = assertion.name,
                   .text = assertion.text,
                   .place = assertion.place,
                   .outcome = assertion.outcome,
                   .reason = assertion.reason,
                   .clocks = assertion.clocks ? in_words(*assertion.clocks) : "",
                   .number = number_of(assertion, expectation)});
  }
  return all;
}

}  // namespace

ReportedVerdict reported_verdict(Verdict verdict, const Scenario* scenario) {
  ReportedVerdict reported;
  reported.simulated = !verdict.planned_only && verdict.device.kind != DeviceKind::cuda;
  reported.device = verdict.planned_only ? "" : in_words(verdict.device);
  reported.where =
      verdict.planned_only ? "by its plans: no device takes part" : "on " + reported.device;
  if (verdict.program) {
    reported.program = reported_program(*verdict.program);
    reported.differences = reported_differences(verdict);
    reported.where =
        verdict.planned_only ? "by its counts" : "by its counts, and times on " + reported.device;
  }
  reported.ended = in_words(verdict.outcome);
  if (verdict.failed) {
    const std::string_view what = verdict.program ? "program" : "device";
    reported.ended = verdict.not_run ? std::string(not_run) : fmt::format("{} failed", what);
    reported.fault = verdict.not_run ? std::string(not_run) : fmt::format("the {} failed", what);
    reported.why = *verdict.failed;
  } else if (verdict.broken) {
    reported.ended = reported.fault = "broken";
    reported.why = *verdict.broken;
  }
  if (verdict.calibrated) {
    const Calibrated& found = *verdict.calibrated;
    reported.calibrated = fmt::format("{} = {}, where the metric is {} (\"{}\", {})", found.knob,
                                      found.value, in_words(found.metric, found.unit), found.aim,
                                      counted_in_words(found.trials, "trial"));
  }
  reported.figures = reported_figures(verdict, scenario);
  reported.steps = reported_steps(verdict.steps);
  reported.regime =
      assertions_of(verdict.regime, scenario == nullptr ? nullptr : &scenario->regime);
  reported.assertions =
      assertions_of(verdict.assertions, scenario == nullptr ? nullptr : &scenario->expect);
  reported.variants = variant_table(verdict.variants);
  if (verdict.mechanism) reported.mechanism = reported_mechanism(*verdict.mechanism);
  reported.cost = cost_in_words(verdict);
  reported.rates = rates_in_words(verdict);
  reported.verdict = std::move(verdict);
  return reported;
}

}  // namespace stepgate
