// SPDX-License-Identifier: MIT
// Groups runs into periods and series, and judges each series.
#include "ledger/series/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "base/stats/moments.h"
#include "base/text/diagnostic.h"
#include "judge/stored/stored_assertion.h"
#include "judge/verdict/sides.h"

namespace stepgate {
namespace {

constexpr std::size_t most_oldest = 5;

double mean_of(const std::vector<double>& values) {
  return moments_of(values).mean;
}

double mean_of_first(const std::vector<double>& values) {
  return moments_of(std::span(values).first(std::min(values.size(), most_oldest))).mean;
}

// Reads this number of digits as a number; nullopt if there is any other character.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return std::nullopt;
  int value = 0;
  for (const char letter : text.substr(at, count)) {
    if (letter < '0' || letter > '9') return std::nullopt;
    value = 10 * value + (letter - '0');
  }
  return value;
}

StoredSubject subject_of(const StoredVariant& variant) {
  return {.variant = variant.name,
          .knobs = variant.knobs,
          .anchor = variant.anchor,
          .libraries = variant.libraries};
}

// Assigns each run to the latest period whose runs it may be compared with.
class Periods {
 public:
  explicit Periods(const std::string& variant) : variant_(variant) {}

  std::size_t period_of(const StoredRun& run) {
    if (run.baseline_reset.empty()) {
      if (const auto known = find(run)) return *known;
    }
    latest_.push_back(&run);
    began_by_word_.push_back(!run.baseline_reset.empty());
    return latest_.size() - 1;
  }

  // Returns why the run begins a baseline reset, in words. Must be called before period_of.
  std::string why(const StoredRun& run) const {
    if (!run.baseline_reset.empty()) return run.baseline_reset;
    if (latest_.empty()) return "";
    if (const auto reason = against(*latest_.back(), run)) return *reason;
    return fmt::format("another GPU, {}", run.environment.uuid);
  }

  std::size_t size() const { return latest_.size(); }

 private:
  std::optional<std::string> against(const StoredRun& earlier, const StoredRun& run) const {
    return reason_against(earlier, run.environment, subject_of(*find_variant(run, variant_)));
  }

  std::optional<std::size_t> find(const StoredRun& run) {
    for (std::size_t left = latest_.size(); left > 0; --left) {
      const std::size_t period = left - 1;
      if (against(*latest_[period], run)) continue;
      if (latest_[period]->environment.uuid == run.environment.uuid) {
        latest_[period] = &run;
        return period;
      }
      if (began_by_word_[period]) return std::nullopt;  // the reset ended earlier periods
    }
    return std::nullopt;
  }

  const std::string& variant_;
  std::vector<const StoredRun*> latest_;
  std::vector<bool> began_by_word_;
};

// log of the allowed ratio to the stored time; nullopt where the assertion limits something else.
std::optional<double> limit_by(const Expectation& assertion, const std::string& variant) {
  if (!compares_with_itself(assertion)) return std::nullopt;
  const MetricOf metric = *only_metric(assertion.left);
  const bool of_rate = is_rate(metric.metric);
  if (metric.variant != variant || stored_time_of(metric.metric) != Metric::step_ms_mean)
    return std::nullopt;
  if (assertion.relation == Relation::about) return std::log1p(assertion.within.value_or(0));
  const bool asks_for_more =
      assertion.relation == Relation::at_least || assertion.relation == Relation::greater;
  const bool asks_for_less =
      assertion.relation == Relation::at_most || assertion.relation == Relation::less;
  // Selects upper limits of the time: assertions with <=, or with >= for a rate, with sides in
  // either order.
  if (!(of_rate != metric.stored ? asks_for_more : asks_for_less)) return std::nullopt;
  const double limit = std::log(limit_of(assertion));
  return of_rate != metric.stored ? -limit : limit;
}

std::optional<double> limit_of_variant(const Scenario& scenario, const std::string& variant) {
  std::optional<double> tightest;
  for (const Expectation& assertion : scenario.expect) {
    const auto limit = limit_by(assertion, variant);
    if (limit && (!tightest || *limit < *tightest)) tightest = limit;
  }
  return tightest;
}

// Builds the history of one variant from its runs.
class HistoryBuilder {
 public:
  HistoryBuilder(const Baseline& baseline, const std::string& variant)
      : baseline_(baseline), variant_(variant) {
    for (const StoredRun& run : baseline.runs) {
      if (find_variant(run, variant) != nullptr) stored_.push_back(&run);
    }
  }

  std::optional<VariantHistory> build() {
    if (stored_.empty()) return std::nullopt;
    history_.file = baseline_.file;
    history_.scenario = baseline_.scenario;
    history_.variant = variant_;
    add_runs();
    add_units();
    return std::move(history_);
  }

 private:
  double week_of(const StoredRun& run) const {
    if (const auto week = weeks_of_date(run.provenance.date)) return *week;
    Diagnostic wrong;
    wrong.place.file = baseline_.file;
    wrong.message = fmt::format("a run has the date '{}'", run.provenance.date);
    wrong.hint = "a date is as in 2026-11-21T10:15:00Z; take that [[run]] out and accept it anew";
    throw RequestError(std::move(wrong));
  }

  // Periods are ordered as in the file, by acceptance of their runs.
  void add_runs() {
    Periods periods(variant_);
    std::map<const StoredRun*, std::size_t> period_of;
    for (const StoredRun* run : stored_) {
      std::string why = periods.why(*run);
      period_of[run] = periods.period_of(*run);
      if (periods.size() > history_.periods.size())
        history_.periods.push_back({.why = std::move(why)});
    }
    const auto week = [&](const StoredRun* run) { return week_of(*run); };
    std::ranges::stable_sort(stored_, {}, week);
    std::vector<std::vector<double>> of_periods(history_.periods.size());
    for (const StoredRun* run : stored_) {
      const StoredVariant& variant = *find_variant(*run, variant_);
      const std::vector<double>& contrasts = find_time(variant, Metric::step_ms_mean)->contrasts;
      const double normalised = mean_of(contrasts);
      history_.runs.push_back({.date = run->provenance.date,
                               .commit = run->provenance.commit,
                               .device = run->environment.uuid,
                               .driver = run->environment.driver,
                               .week = week_of(*run) - week_of(*stored_.front()),
                               .raw = normalised + std::log(variant.anchor_seconds),
                               .normalised = normalised,
                               .half_interval = half_interval_of_mean(contrasts, 0.05),
                               .period = period_of[run],
                               .is_accepted = run->provenance.build.empty()});
      of_periods[period_of[run]].push_back(normalised);
    }
    for (std::size_t period = 0; period < of_periods.size(); ++period) {
      history_.periods[period].runs = of_periods[period].size();
      history_.periods[period].oldest = mean_of_first(of_periods[period]);
    }
  }

  void add_units() {
    const StoredRun& latest = *stored_.back();
    const StoredVariant& variant = *find_variant(latest, variant_);
    history_.anchor = variant.anchor;
    history_.device = latest.environment.kind == name_of(DeviceKind::simulated)
                          ? "a simulated " + latest.environment.gpu
                          : latest.environment.gpu;
    std::map<const StoredVariant*, std::size_t> index_of;
    for (std::size_t index = 0; index < stored_.size(); ++index)
      index_of[find_variant(*stored_[index], variant_)] = index;
    const MatchingRuns matching = matching_runs(baseline_, latest.environment, subject_of(variant));
    history_.unit = matching.unit;
    for (const std::vector<const StoredVariant*>& unit : matching.units) {
      HistoryUnit made;
      for (const StoredVariant* one : unit) made.runs.push_back(index_of.at(one));
      history_.units.push_back(with_means(std::move(made)));
    }
    std::ranges::stable_sort(history_.units, {}, &HistoryUnit::week);
    std::vector<double> normalised;
    for (const HistoryUnit& unit : history_.units) normalised.push_back(unit.normalised);
    if (!normalised.empty()) history_.oldest = mean_of_first(normalised);
  }

  HistoryUnit with_means(HistoryUnit unit) {
    std::ranges::sort(unit.runs);
    for (const std::size_t index : unit.runs) {
      HistoryRun& run = history_.runs[index];
      const double share = 1 / static_cast<double>(unit.runs.size());
      run.is_compared = true;
      unit.week += share * run.week;
      unit.raw += share * run.raw;
      unit.normalised += share * run.normalised;
    }
    return unit;
  }

  const Baseline& baseline_;
  const std::string& variant_;
  std::vector<const StoredRun*> stored_;  // runs with the variant; sorted by date once added
  VariantHistory history_;
};

// Adds step times of a ledger without comparable runs, as if they had an unnamed anchor that takes
// one second. If some runs of the ledger have anchors, only those count.
Baseline with_step_times(Baseline baseline) {
  if (std::ranges::any_of(baseline.runs,
                          [](const StoredRun& run) { return !run.variants.empty(); }))
    return baseline;
  for (StoredRun& run : baseline.runs) {
    for (const auto& [variant, seconds] : run.step_seconds) {
      run.variants.push_back({.name = variant,
                              .knobs = run.provenance.scenario,
                              .anchor = "",
                              .libraries = run.libraries,
                              .step_seconds = seconds,
                              .anchor_seconds = 1,
                              .times = {{Metric::step_ms_mean, {std::log(seconds)}}},
                              .counts = {}});
    }
  }
  return baseline;
}

struct Series {
  std::vector<double> weeks;  // since the first unit, in weeks
  std::vector<double> raw;
  std::vector<double> normalised;
};

Series series_of(const VariantHistory& history) {
  Series series;
  for (const HistoryUnit& unit : history.units) {
    series.weeks.push_back(unit.week - history.units.front().week);
    series.raw.push_back(unit.raw);
    series.normalised.push_back(unit.normalised);
  }
  return series;
}

// Returns whether the raw values of the first `units` units rise, whatever their anchors did.
bool rises(const Series& series, std::size_t units) {
  const auto line =
      weekly_slope(std::span(series.weeks).first(units), std::span(series.raw).first(units));
  return line && line->slope > 0;
}

std::vector<HistoryChange> changes_in(std::span<const double> values) {
  const std::vector<std::size_t> at = change_points(values);
  std::vector<HistoryChange> changes;
  for (std::size_t index = 0; index < at.size(); ++index) {
    const std::size_t from = index == 0 ? 0 : at[index - 1];
    const std::size_t to = index + 1 == at.size() ? values.size() : at[index + 1];
    const double before = moments_of(values.subspan(from, at[index] - from)).mean;
    const double after = moments_of(values.subspan(at[index], to - at[index])).mean;
    changes.push_back({.unit = at[index], .shift = after - before});
  }
  return changes;
}

}  // namespace

std::optional<double> weeks_of_date(std::string_view date) {
  using std::chrono::day;
  using std::chrono::month;
  using std::chrono::year;
  const auto y = digits_at(date, 0, 4);
  const auto m = digits_at(date, 5, 2);
  const auto d = digits_at(date, 8, 2);
  if (!y || !m || !d || date[4] != '-' || date[7] != '-') return std::nullopt;
  const std::chrono::year_month_day that(year(*y), month(static_cast<unsigned>(*m)),
                                         day(static_cast<unsigned>(*d)));
  if (!that.ok()) return std::nullopt;
  double days = static_cast<double>(std::chrono::sys_days(that).time_since_epoch().count());
  if (date.size() > 10) {
    const auto hours = digits_at(date, 11, 2);
    const auto minutes = digits_at(date, 14, 2);
    const auto seconds = digits_at(date, 17, 2);
    const bool is_time = date.size() == 20 && date[10] == 'T' && date[13] == ':' &&
                         date[16] == ':' && date[19] == 'Z';
    if (!is_time || !hours || !minutes || !seconds) return std::nullopt;
    days += (*hours + (*minutes + *seconds / 60.0) / 60.0) / 24.0;
  }
  return days / 7;
}

std::vector<VariantHistory> histories_of(const Baseline& kept, const Scenario& scenario) {
  const Baseline baseline = with_step_times(kept);
  std::vector<VariantHistory> all;
  for (const Variant& variant : scenario.variants) {
    auto history = HistoryBuilder(baseline, variant.name).build();
    if (!history) continue;
    history->point = scenario.point;
    history->limit = limit_of_variant(scenario, variant.name);
    all.push_back(std::move(*history));
  }
  return all;
}

double change_from_oldest(const VariantHistory& history, const HistoryRun& run) {
  return run.normalised - (run.is_compared ? history.oldest : history.periods[run.period].oldest);
}

bool is_watched(const VariantHistory& history) {
  return history.units.size() >= fewest_values_of_drift &&
         history.units.back().week - history.units.front().week >= fewest_weeks_of_drift;
}

void judge_drift(VariantHistory& history, double error) {
  const Series series = series_of(history);
  history.error = error;
  history.drift = drift_of(series.weeks, series.normalised, error);
  history.raw_drift = drift_of(series.weeks, series.raw, error);
  history.changes = changes_in(series.normalised);
  if (!history.drift || !history.raw_drift) return;
  for (auto* shown : {&history.drift->rise, &history.drift->alarm}) {
    if (*shown && !rises(series, **shown + 1) && !rises(series, series.raw.size())) shown->reset();
  }
  const bool is_beside_an_anchor = !history.anchor.empty();
  history.outcome = history.drift->alarm && is_beside_an_anchor ? HistoryOutcome::drifts
                    : history.raw_drift->alarm                  ? HistoryOutcome::machine_drifts
                    : history.drift->rise                       ? HistoryOutcome::wanders
                                                                : HistoryOutcome::steady;
}

void judge_drifts(std::vector<VariantHistory>& all) {
  const auto watched = std::ranges::count_if(all, is_watched);
  const double error =
      drift_error_a_year / static_cast<double>(std::max<std::ptrdiff_t>(watched, 1));
  for (VariantHistory& history : all) judge_drift(history, error);
}

CommitRange commits_around(const VariantHistory& history, std::size_t unit) {
  const std::size_t before = unit == 0 ? 0 : unit - 1;
  return {.before = history.runs[history.units[before].runs.back()].commit,
          .after = history.runs[history.units[unit].runs.front()].commit};
}

CommitRange commits_of_alarm(const VariantHistory& history) {
  const HistoryUnit& alarm = history.units[*history.drift->alarm];
  return {.before = history.runs[history.units.front().runs.front()].commit,
          .after = history.runs[alarm.runs.front()].commit};
}

std::string_view in_words(HistoryOutcome outcome) {
  switch (outcome) {
    case HistoryOutcome::steady:
      return "steady";
    case HistoryOutcome::drifts:
      return "drifts";
    case HistoryOutcome::machine_drifts:
      return "machine drifts";
    case HistoryOutcome::wanders:
      return "wanders";
    case HistoryOutcome::too_few:
      break;
  }
  return "too few runs";
}

}  // namespace stepgate
