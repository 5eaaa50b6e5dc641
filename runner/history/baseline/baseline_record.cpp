// SPDX-License-Identifier: MIT
#include "history/baseline/baseline_record.h"

#include <fmt/format.h>

#include <limits>
#include <set>

#include "history/record/record.h"
#include "support/text/diagnostic.h"
#include "support/toml/toml.h"

namespace stepgate {
namespace {

constexpr std::string_view restore_run_hint =
    "restore the file from version control, or take the whole [[run]] out";
constexpr std::string_view move_baseline_away_hint =
    "restore the file from version control, or move it away and accept anew";
// No step is e^50 times an anchor.
constexpr double largest_stored_contrast = 50;
constexpr NumberForm count_form{
    .low = 0, .high = std::numeric_limits<double>::infinity(), .significant_digits = 0};

// Without the mean nothing of the variant could be compared.
SeriesForm stored_contrasts_form(Metric metric) {
  return {.most = largest_stored_contrast,
          .length = rounds_of_stored_run,
          .layout = SeriesForm::Layout::millionths,
          .is_required = metric == Metric::step_ms_mean};
}

std::optional<std::vector<double>> contrasts_of(const StoredVariant& variant, Metric metric) {
  const StoredTime* time = find_time(variant, metric);
  return time == nullptr ? std::nullopt : std::optional(time->contrasts);
}

std::optional<double> count_of(const StoredVariant& variant, Metric metric) {
  const StoredCount* count = find_count(variant, metric);
  return count == nullptr ? std::nullopt : std::optional(count->value);
}

// Keeps what a reader found; a writer has nothing to keep.
void keep(StoredVariant& variant, Metric metric, std::optional<std::vector<double>> contrasts) {
  if (contrasts) variant.times.push_back({.metric = metric, .contrasts = std::move(*contrasts)});
}
void keep(StoredVariant& variant, Metric metric, std::optional<double> value) {
  if (value) variant.counts.push_back({.metric = metric, .value = *value});
}
template <class Found>
void keep(const StoredVariant&, Metric, const Found&) {}

constexpr auto stored_variant_fields = [](auto& record, auto& variant) {
  record.hexadecimal("knobs", variant.knobs);
  record.text("anchor", variant.anchor);
  record.text_if_any("libraries", variant.libraries);
  record.microseconds("step_us", variant.step_seconds);
  record.microseconds("anchor_us", variant.anchor_seconds);
  for (const MetricRow& row : metric_table()) {
    if (stored_as(row) != StoredAs::times) continue;
    auto contrasts = contrasts_of(variant, row.metric);
    record.series_if_any(row.name, stored_contrasts_form(row.metric), contrasts);
    keep(variant, row.metric, std::move(contrasts));
  }
  for (const MetricRow& row : metric_table()) {
    if (stored_as(row) != StoredAs::count) continue;
    auto value = count_of(variant, row.metric);
    record.number_if_any(row.name, count_form, value);
    keep(variant, row.metric, value);
  }
};

constexpr auto stored_run_fields = [](auto& record, auto& run) {
  record.text("date", run.provenance.date);
  record.text("commit", run.provenance.commit);
  record.text("stepgate", run.provenance.stepgate);
  record.hexadecimal("scenario_fingerprint", run.provenance.scenario);
  record.hexadecimal("seed", run.provenance.seed);
  record.text_if_any("boot", run.provenance.boot);
  record.text_if_any("new_era", run.new_era);
  record.table("environment", "an environment", run.environment, environment_fields);
  record.named_tables("variant", "variant", run.variants, &StoredVariant::name,
                      stored_variant_fields);
};
constexpr auto digested_run = [](auto& record, auto& run) {
  return record.digested(run, stored_run_fields);
};

// Every run once.
void read_runs(RecordReader& file, Baseline& baseline) {
  std::set<std::uint64_t> digests;
  file.each_of("run", "a run", restore_run_hint, [&](RecordReader& record) {
    StoredRun& run = baseline.runs.emplace_back();
    if (!digested_run(record, run)) return;
    if (!digests.insert(digest_of(run)).second) {
      record.fault("digest", "the same run is there twice");
    }
  });
}

}  // namespace

std::uint64_t digest_of(const StoredRun& run) {
  return record_digest("run", run, stored_run_fields);
}

std::string baseline_text(const Baseline& baseline) {
  RecordWriter record;
  record.count("format", baseline_format);
  record.text("scenario", baseline.scenario);
  record.tables("run", "a run", baseline.runs, digested_run);
  return "# Runs that later ones are compared with, written by `stepgate accept`. A run may be "
         "taken out as a whole, never changed.\n"
         "# A list holds one number a round: log(time / time of the anchor, a frozen step measured "
         "beside it).\n" +
         record.text();
}

Baseline read_baseline(const std::filesystem::path& path, const std::string& scenario) {
  Baseline baseline{.file = path.generic_string(), .scenario = {}, .runs = {}};
  RecordFile file(path, "a baseline", move_baseline_away_hint);
  RecordReader& record = file.record();
  if (record.is_format(baseline_format, "baseline", "move the file away and accept anew")) {
    record.text("scenario", baseline.scenario);
    if (!file.has_faults() && baseline.scenario != scenario) {
      record.fault(
          "scenario",
          fmt::format("the baseline of scenario '{}', not of '{}'", baseline.scenario, scenario),
          "give the file back its name");
    } else {
      read_runs(record, baseline);
      record.refuse_the_rest();
    }
  }
  file.throw_faults();
  return baseline;
}

}  // namespace stepgate
