// SPDX-License-Identifier: MIT
#include "history/baseline/baseline_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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
// Without the mean nothing of the variant could be compared.
SeriesForm stored_contrasts_form(Metric metric) {
  return {.most = largest_stored_contrast,
          .length = rounds_of_stored_run,
          .layout = SeriesForm::Layout::millionths,
          .is_required = metric == Metric::step_ms_mean};
}

template <class Stored, class Visit>
void for_each_row(StoredAs as, const std::vector<Stored>& all, const Visit& visit) {
  for (const MetricRow& row : metric_table()) {
    if (stored_as(row) != as) continue;
    const auto found = std::ranges::find(all, row.metric, &Stored::metric);
    visit(row, found == all.end() ? nullptr : &*found);
  }
}

// Every run once.
void read_runs(RecordReader& file, Baseline& baseline) {
  std::set<std::uint64_t> digests;
  file.each_of("run", restore_run_hint, [&](RecordReader& record) {
    StoredRun& run = baseline.runs.emplace_back();
    if (!record.digested(run)) return;
    if (!digests.insert(digest_of(run)).second) {
      record.fault("digest", "the same run is there twice");
    }
  });
}

}  // namespace

void ByMetric::write(RecordWriter& record, std::string_view, const std::vector<StoredTime>& times) {
  for_each_row(StoredAs::times, times, [&](const MetricRow& row, const StoredTime* time) {
    if (time != nullptr)
      record.series(row.name, stored_contrasts_form(row.metric), time->contrasts);
  });
}

void ByMetric::write(RecordWriter& record, std::string_view,
                     const std::vector<StoredCount>& counts) {
  for_each_row(StoredAs::count, counts, [&](const MetricRow& row, const StoredCount* count) {
    if (count != nullptr) record.number(row.name, count->value);
  });
}

void ByMetric::read(RecordReader& record, std::string_view, std::vector<StoredTime>& times) {
  for_each_row(StoredAs::times, times, [&](const MetricRow& row, const StoredTime*) {
    StoredTime time{.metric = row.metric, .contrasts = {}};
    if (record.series(row.name, stored_contrasts_form(row.metric), time.contrasts))
      times.push_back(std::move(time));
  });
}

void ByMetric::read(RecordReader& record, std::string_view, std::vector<StoredCount>& counts) {
  for_each_row(StoredAs::count, counts, [&](const MetricRow& row, const StoredCount*) {
    std::optional<double> value;
    record.number_if_any(row.name, value);
    if (value) counts.push_back({.metric = row.metric, .value = *value});
  });
}

std::uint64_t digest_of(const StoredRun& run) {
  return record_digest("run", run);
}

std::string baseline_text(const Baseline& baseline) {
  RecordWriter record;
  record.count("format", baseline_format);
  record.fields(baseline);
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
