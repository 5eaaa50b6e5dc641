// SPDX-License-Identifier: MIT
// Makes a stored run from a measurement.
#include "judge/stored/baseline.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/require.h"
#include "base/toml/toml_text.h"
#include "scenario/knobs/fingerprint.h"

namespace stepgate {
namespace {

template <class Items, class Is>
const typename Items::value_type* find_in(const Items& items, Is is) {
  const auto found = std::find_if(items.begin(), items.end(), is);
  return found == items.end() ? nullptr : &*found;
}

std::span<const Round> stored_rounds(const Measurement& measurement) {
  require(std::ssize(measurement.rounds) >= rounds_of_stored_run,
          "a stored run has all its rounds");
  return std::span(measurement.rounds).first(rounds_of_stored_run);
}

// Geometric mean over the stored rounds.
double mean_step_seconds(std::span<const Round> rounds, int variant) {
  double sum = 0;
  for (const Round& round : rounds) {
    sum += std::log(round_value(round, variant, 1, Metric::step_ms_mean).value());
  }
  return std::exp(sum / static_cast<double>(rounds.size()));
}

// Returns nullopt when the time of a round is unknown.
std::optional<StoredTime> stored_time(std::span<const Round> rounds, int variant, int anchor,
                                      Metric metric) {
  StoredTime stored{.metric = metric, .contrasts = {}};
  for (const Round& round : rounds) {
    const auto contrast = contrast_to_anchor(round, variant, anchor, metric);
    if (!contrast || !std::isfinite(*contrast)) return std::nullopt;
    stored.contrasts.push_back(*contrast);
  }
  return stored;
}

StoredVariant stored_variant(const Variant& variant, std::span<const Subject> subjects,
                             const Measurement& measurement) {
  const std::span<const Round> rounds = stored_rounds(measurement);
  const std::size_t index = subject_named(subjects, variant.name);
  const std::string& anchor = subjects[index].anchor;
  const std::size_t anchor_index = subject_named(subjects, anchor_variant(anchor));
  StoredVariant stored;
  stored.name = variant.name;
  stored.knobs = fingerprint_of(variant.knobs);
  stored.anchor = anchor;
  stored.libraries = libraries_in_words(measurement.variants[index].libraries);
  stored.step_seconds = mean_step_seconds(rounds, static_cast<int>(index));
  stored.anchor_seconds = mean_step_seconds(rounds, static_cast<int>(anchor_index));
  for (const MetricRow& row : metric_table()) {
    const StoredAs as = stored_as(row);
    if (as == StoredAs::nothing) continue;
    if (as == StoredAs::count) {
      const auto value = subjects[index].count(row.metric);
      if (value) stored.counts.push_back({.metric = row.metric, .value = *value});
    } else if (auto time = stored_time(rounds, static_cast<int>(index),
                                       static_cast<int>(anchor_index), row.metric)) {
      stored.times.push_back(std::move(*time));
    }
  }
  return stored;
}

}  // namespace

StoredAs stored_as(const MetricRow& row) {
  if (!can_be_stored(row.metric) || stored_time_of(row.metric) != row.metric) {
    return StoredAs::nothing;
  }
  return row.evidence <= Evidence::exact ? StoredAs::count : StoredAs::times;
}

Metric stored_time_of(Metric metric) {
  return is_rate(metric) ? Metric::step_ms_mean : metric;
}

std::optional<double> contrast_to_anchor(const Round& round, int variant, int anchor,
                                         Metric metric) {
  const auto value = round_value(round, variant, 1, stored_time_of(metric));
  const auto reference = round_value(round, anchor, 1, Metric::step_ms_mean);
  if (!value || !reference) return std::nullopt;
  return std::log(*value) - std::log(*reference);
}

StoredRun stored_run(const Scenario& scenario, std::span<const Subject> subjects,
                     const Measurement& measurement, Provenance provenance,
                     std::string baseline_reset) {
  StoredRun run;
  run.provenance = std::move(provenance);
  run.baseline_reset = std::move(baseline_reset);
  run.environment = environment_of(measurement.device);
  for (const Variant& variant : scenario.variants) {
    run.variants.push_back(stored_variant(variant, subjects, measurement));
  }
  return run;
}

StepTimes step_times(const Scenario& scenario, std::span<const Subject> subjects,
                     const Measurement& measurement) {
  StepTimes times;
  for (const Variant& variant : scenario.variants) {
    const auto index = static_cast<int>(subject_named(subjects, variant.name));
    const bool is_known = std::ranges::all_of(measurement.rounds, [&](const Round& round) {
      return round_value(round, index, 1, Metric::step_ms_mean).value_or(0) > 0;
    });
    if (is_known && !measurement.rounds.empty())
      times[variant.name] = mean_step_seconds(measurement.rounds, index);
  }
  return times;
}

bool is_same_pair(const StoredRun& one, const StoredRun& other) {
  const auto key = [](const StoredRun& run) {
    const Environment& on = run.environment;
    return std::tie(run.provenance.subject, run.provenance.scenario, on.kind, on.gpu, on.uuid,
                    on.driver, on.cuda_runtime, on.cublas, run.libraries);
  };
  return key(one) == key(other);
}

std::string session_of(const StoredRun& run) {
  constexpr std::size_t day = 10;   // "2026-11-21"
  constexpr std::size_t hour = 13;  // "2026-11-21T10"
  const Provenance& from = run.provenance;
  if (run.environment.kind == name_of(DeviceKind::simulated)) return hexadecimal(from.seed);
  if (from.boot.empty()) return from.date.substr(0, day);
  return from.boot + ' ' + from.date.substr(0, hour);
}

const StoredVariant* find_variant(const StoredRun& run, const std::string& name) {
  return find_in(run.variants, [&](const StoredVariant& one) { return one.name == name; });
}

const StoredTime* find_time(const StoredVariant& variant, Metric metric) {
  return find_in(variant.times, [&](const StoredTime& one) { return one.metric == metric; });
}

const StoredCount* find_count(const StoredVariant& variant, Metric metric) {
  return find_in(variant.counts, [&](const StoredCount& one) { return one.metric == metric; });
}

}  // namespace stepgate
