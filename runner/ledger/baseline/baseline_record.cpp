// SPDX-License-Identifier: MIT
#include "ledger/baseline/baseline_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text/diagnostic.h"
#include "base/toml/toml.h"
#include "base/toml/toml_text.h"

namespace stepgate {
namespace {

constexpr std::string_view restore_run_hint = "restore the file, or take the whole [[run]] out";
constexpr std::string_view take_subject_out_hint =
    "take out every [[run]] of this subject: what they found is then forgotten";
constexpr std::string_view move_baseline_away_hint =
    "restore the file, or move it away and begin anew";
constexpr double largest_kept_contrast = 1000;  // above the log of any quotient of doubles
constexpr SeriesForm kept_contrasts_form{.most = largest_kept_contrast};
constexpr SeriesForm kept_times_form{.most = 1e9};  // steps and seconds per round
constexpr SeriesForm step_time_form{
    .most = 1e12, .length = 1, .layout = SeriesForm::Layout::millionths};
// No step takes e^50 times as long as an anchor.
constexpr double largest_stored_contrast = 50;
// The contrasts of the mean are required, since every comparison of the variant needs them.
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

// Calls visit(key, form, series) for each table, in the order of the file.
void for_each_table(auto& found, const auto& visit) {
  auto& [runs, regime, expect, stored, stored_anchors] = found;
  auto& [regime_contrasts, regime_times] = regime;
  auto& [expect_contrasts, expect_times] = expect;
  visit("regime", kept_contrasts_form, regime_contrasts);
  visit("expect", kept_contrasts_form, expect_contrasts);
  visit("regime_times", kept_times_form, regime_times);
  visit("expect_times", kept_times_form, expect_times);
  visit("stored", kept_contrasts_form, stored);
  visit("stored_anchors", kept_contrasts_form, stored_anchors);
}

// The digests of the latest run of each pair, joined. They reveal a run that was removed from the
// end of a subject. Empty where no run names a subject.
std::string latest_digests(const Baseline& baseline) {
  std::set<std::string> digests;
  for (const StoredRun& run : baseline.runs) {
    if (!run.provenance.subject.empty()) digests.insert(digest_of_latest(baseline, run));
  }
  return fmt::format("{}", fmt::join(digests, " "));
}

// Checks the listed digests. A digest without any run of its pair is no error, since all runs of a
// pair may be removed.
void check_latest(RecordReader& file, const Baseline& baseline, const std::string& listed) {
  for (const StoredRun& run : baseline.runs) {
    if (run.provenance.subject.empty()) continue;
    if (listed.find(digest_of_latest(baseline, run)) != std::string::npos) continue;
    return file.fault("scenario",
                      fmt::format("the latest run of '{}' was taken out", run.provenance.subject),
                      std::string(take_subject_out_hint));
  }
}

// Reads the runs. Refuses duplicate runs, and runs of a subject whose previous run is missing: a
// removed run would leave selected evidence.
void read_runs(RecordReader& file, Baseline& baseline) {
  std::set<std::uint64_t> digests;
  file.each_of("run", restore_run_hint, [&](RecordReader& record) {
    StoredRun run;
    if (!record.digested(run)) return;
    if (!digests.insert(digest_of(run)).second) {
      record.fault("digest", "the same run is there twice");
    }
    const bool is_accepted = run.provenance.subject.empty();
    if (is_accepted && run.variants.empty()) {
      record.fault("digest", "'variant' is missing in a run that names no subject");
    } else if (!is_accepted && run.after != digest_of_latest(baseline, run)) {
      record.fault(
          "digest",
          fmt::format("the run of '{}' before it was taken out, or moved", run.provenance.subject),
          std::string(take_subject_out_hint));
    }
    baseline.runs.push_back(std::move(run));
  });
}

std::string_view header_of(const Baseline& baseline) {
  const auto& runs = baseline.runs;
  const bool is_ledger = runs.empty() || std::ranges::any_of(runs, [](const StoredRun& run) {
                           return !run.provenance.subject.empty();
                         });
  if (is_ledger) {
    return "# Runs that `stepgate run --ledger` goes on from, and that runs of other builds are "
           "compared with. All runs of a subject may be taken out, never one of them.\n"
           "# Digests find damage and slips of the hand, no intent, since anybody can compute one: "
           "keep this file where no pull request can write.\n";
  }
  return "# Runs that later ones are compared with, written by `stepgate accept`. A run may be "
         "taken out as a whole, never changed.\n"
         "# A list holds one number a round: log(time / time of the anchor, a frozen step measured "
         "beside it).\n";
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

void AsTables::write(RecordWriter& record, std::string_view, const EarlierEvidence& found) {
  for_each_table(found, [&](std::string_view key, const SeriesForm& form, const auto& series) {
    record.named_series(key, form, series);
  });
}

void AsTables::read(RecordReader& record, std::string_view, EarlierEvidence& found) {
  for_each_table(found, [&](std::string_view key, const SeriesForm& form, auto& series) {
    record.named_series(key, form, series);
  });
}

void AsTables::write(RecordWriter& record, std::string_view key, const StepTimes& times) {
  NamedSeries microseconds;
  for (const auto& [variant, seconds] : times) microseconds[variant] = {1e6 * seconds};
  record.named_series(key, step_time_form, microseconds);
}

void AsTables::read(RecordReader& record, std::string_view key, StepTimes& times) {
  NamedSeries microseconds;
  record.named_series(key, step_time_form, microseconds);
  for (const auto& [variant, time] : microseconds) {
    if (time.empty()) continue;  // already reported
    if (time.front() <= 0)
      return record.fault(key, fmt::format("the step time of '{}' is not above 0", variant));
    times[variant] = 1e-6 * time.front();
  }
}

std::uint64_t digest_of(const StoredRun& run) {
  return record_digest("run", run);
}

std::string digest_of_latest(const Baseline& baseline, const StoredRun& pair) {
  const auto latest = std::find_if(baseline.runs.rbegin(), baseline.runs.rend(),
                                   [&](const StoredRun& run) { return is_same_pair(run, pair); });
  return latest == baseline.runs.rend() ? "" : hexadecimal(digest_of(*latest));
}

std::string baseline_text(const Baseline& baseline) {
  RecordWriter record;
  record.count("format", baseline_format);
  if (const std::string latest = latest_digests(baseline); !latest.empty())
    record.text("latest", latest);
  record.fields(baseline);
  return std::string(header_of(baseline)) + record.text();
}

Baseline read_baseline(const std::filesystem::path& path, const std::string& scenario,
                       std::string_view kind) {
  Baseline baseline{.file = path.generic_string(), .scenario = {}, .runs = {}};
  RecordFile file(path, fmt::format("a {}", kind), move_baseline_away_hint);
  RecordReader& record = file.record();
  if (record.is_format(baseline_format, kind, "move the file away and begin anew")) {
    record.text("scenario", baseline.scenario);
    if (!file.has_faults() && baseline.scenario != scenario) {
      record.fault(
          "scenario",
          fmt::format("the {} of scenario '{}', not of '{}'", kind, baseline.scenario, scenario),
          "give the file back its name");
    } else {
      std::string latest;
      record.text_if_any("latest", latest);
      read_runs(record, baseline);
      if (!file.has_faults()) check_latest(record, baseline, latest);
      record.refuse_the_rest();
    }
  }
  file.throw_faults();
  return baseline;
}

}  // namespace stepgate
