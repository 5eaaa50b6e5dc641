// SPDX-License-Identifier: MIT
#include "report/text/print_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "base/text/visible_text.h"
#include "judge/verdict/words.h"
#include "report/report.h"

namespace stepgate {
namespace {

constexpr double interval_error = 0.05;

std::string day_of(const std::string& date) {
  return date.substr(0, 10);
}

// Shortens a commit that is a hash; it may be a date or a tag too.
std::string short_commit(const std::string& commit) {
  constexpr std::size_t hash = 40;
  constexpr std::size_t shown = 10;
  return commit.size() >= hash ? commit.substr(0, shown) + commit.substr(hash) : commit;
}

const HistoryRun& first_run_of(const VariantHistory& history, std::size_t unit) {
  return history.runs[history.units[unit].runs.front()];
}

std::size_t compared_runs(const VariantHistory& history) {
  std::size_t runs = 0;
  for (const HistoryUnit& unit : history.units) runs += unit.runs.size();
  return runs;
}

// The counted thing: "run", or the unit that has several runs.
std::string_view noun_of_units(const VariantHistory& history) {
  return compared_runs(history) == history.units.size() ? "run" : in_words(history.unit);
}

std::string runs_in_words(const VariantHistory& history) {
  std::string words = counted_in_words(static_cast<std::int64_t>(compared_runs(history)), "run");
  if (compared_runs(history) != history.units.size())
    words += " in " + counted_in_words(static_cast<std::int64_t>(history.units.size()),
                                       in_words(history.unit));
  return words + " since " + day_of(first_run_of(history, 0).date);
}

std::string at_unit(const VariantHistory& history, std::size_t unit, const CommitRange& commits) {
  return fmt::format("{} {}, {} (commit {} -> {})", noun_of_units(history), unit + 1,
                     day_of(first_run_of(history, unit).date), short_commit(commits.before),
                     short_commit(commits.after));
}

std::string answer_in_words(const VariantHistory& history) {
  switch (history.outcome) {
    case HistoryOutcome::drifts:
      return "; ALARM at " + at_unit(history, *history.drift->alarm, commits_of_alarm(history));
    case HistoryOutcome::machine_drifts:
      if (history.anchor.empty()) {
        return fmt::format(
            "; drifts, {} a week, by itself or with its machine, which runs without "
            "an anchor do not tell: not gated",
            change_in_words(history.raw_drift->now.slope));
      }
      return fmt::format("; the machine drifts, {} a week, and its anchor {} with it: not gated",
                         change_in_words(history.raw_drift->now.slope), history.anchor);
    case HistoryOutcome::wanders:
      return "; it wanders, no further than a season or runs that are like their neighbours do: "
             "not "
             "gated; a drift shows with more runs";
    case HistoryOutcome::steady:
      return "; no drift is shown";
    case HistoryOutcome::too_few:
      break;
  }
  return fmt::format(
      "; not gated: a drift takes {} over at least {} to show",
      counted_in_words(static_cast<std::int64_t>(fewest_values_of_drift), in_words(history.unit)),
      counted_in_words(static_cast<std::int64_t>(fewest_weeks_of_drift), "week"));
}

}  // namespace

std::string change_in_words(double log) {
  const double percent = 100 * std::expm1(log);
  const double size = std::abs(percent);
  return size < 1 ? fmt::format("{:+.2f} %", percent) : fmt::format("{:+.1f} %", percent);
}

void print_history(std::ostream& out, const VariantHistory& history) {
  std::string line = fmt::format("{}/{} on {}: {}", history.scenario, history.variant,
                                 history.device, runs_in_words(history));
  if (history.drift) {
    const WeeklySlope& now = history.drift->now;
    const SlopeInterval interval = interval_of(now, interval_error);
    line += fmt::format(", {} a week [{:+.2f}, {:+.2f}]", change_in_words(now.slope),
                        100 * std::expm1(interval.low), 100 * std::expm1(interval.high));
  }
  out << line << answer_in_words(history) << '\n';
  for (const HistoryChange& change : history.changes) {
    out << fmt::format("  {} at {}\n", change_in_words(change.shift),
                       at_unit(history, change.unit, commits_around(history, change.unit)));
  }
  const auto other =
      std::ranges::count_if(history.runs, [](const HistoryRun& run) { return !run.is_compared; });
  if (other > 0)
    out << fmt::format("  not compared: {}\n",
                       counted_in_words(static_cast<std::int64_t>(other), "run"));
  for (const HistoryPeriod& period : history.periods) {
    if (!period.why.empty())
      out << fmt::format("  a period of {}: {}\n",
                         counted_in_words(static_cast<std::int64_t>(period.runs), "run"),
                         one_line(period.why));
  }
}

ExitCode exit_code(HistoryOutcome outcome) {
  switch (outcome) {
    case HistoryOutcome::steady:
      return ExitCode::passes;
    case HistoryOutcome::drifts:
      return ExitCode::fails;
    case HistoryOutcome::machine_drifts:
    case HistoryOutcome::wanders:
    case HistoryOutcome::too_few:
      break;
  }
  return ExitCode::not_gated;
}

void print_history_end(std::ostream& out, std::span<const VariantHistory> all, std::size_t missing,
                       ExitCode code) {
  const auto count = [&](HistoryOutcome outcome) {
    return static_cast<std::size_t>(std::ranges::count(all, outcome, &VariantHistory::outcome));
  };
  const std::size_t drifting = count(HistoryOutcome::drifts);
  const std::size_t watched = all.size() - count(HistoryOutcome::too_few);
  std::string_view answer = "NOT GATED: not every step has runs that would show a drift";
  if (code == ExitCode::fails)
    answer = "DRIFT: `stepgate gate` of the two commits tells whether the code did it";
  if (code == ExitCode::passes) answer = "STEADY: no drift is shown";
  out << fmt::format("{} watched of {}, {}; {}\n", watched,
                     counted_in_words(static_cast<std::int64_t>(all.size() + missing), "variant"),
                     drifting == 1 ? "1 drifts" : fmt::format("{} drift", drifting), answer);
}

}  // namespace stepgate
