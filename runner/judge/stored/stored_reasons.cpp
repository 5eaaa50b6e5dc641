// SPDX-License-Identifier: MIT
#include "judge/stored/stored_reasons.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/process/command.h"
#include "judge/assertions/reasons.h"
#include "judge/stored/baseline.h"
#include "judge/stored/stored_assertion.h"
#include "judge/verdict/sides.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

std::string accept_command(const Scenario& scenario, std::string_view options = "") {
  return fmt::format("`{}{}`", to_text({"stepgate", "accept", file_word(scenario.file)}), options);
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "5 stored runs of 3 devices"
std::string runs_in_words(const StoredEvidence& stored) {
  std::string words = plural(static_cast<std::size_t>(stored.runs), "stored run");
  if (stored.unit != StoredUnit::run)
    words += " of " + plural(stored.runs_of_units.size(), in_words(stored.unit));
  return words;
}

// Says how to get more units; it follows "and".
std::string way_to_more(StoredUnit unit, const Scenario& scenario) {
  switch (unit) {
    case StoredUnit::run:
      return accept_command(scenario, " --runs 4") + " adds runs";
    case StoredUnit::session:
      return accept_command(scenario) + " in another hour, better on another day, adds one";
    case StoredUnit::device:
      return accept_command(scenario) + " on another device adds one";
  }
  return "";
}

// The command for a gate, which compares two builds on one machine and needs no history.
std::string gate_command(const Scenario& scenario) {
  return fmt::format("`{}`", to_text({"stepgate", "gate", "--base", "BASE", "--head", "HEAD",
                                      file_word(scenario.file)}));
}

std::string baseline_reset(const Scenario& scenario) {
  return accept_command(scenario, " --reset TEXT");
}

std::string missing_in_words(const StoredEvidence& stored, const Scenario& scenario) {
  const std::string way_out = way_to_more(stored.unit, scenario);
  if (!stored.smallest_shown) {
    return fmt::format("; fewer than {} do not say how far {}s differ, and {}", fewest_stored_units,
                       in_words(stored.unit), way_out);
  }
  return fmt::format("; only a change of {} beyond the limit would show, and {}",
                     share_in_words(*stored.smallest_shown), way_out);
}

// Explains the two values and the anchor together, and suggests the next step.
std::string note_in_words(const AssertionVerdict& verdict, const Scenario& scenario) {
  const StoredEvidence& stored = *verdict.stored;
  const auto start_anew = [&](std::string_view speed) {
    return fmt::format(
        "; this machine is {} than when they were stored, and the step beside its anchor is not "
        "beyond the limit: {} compares two builds on it, {} starts anew on it{}",
        speed, gate_command(scenario), baseline_reset(scenario),
        upgraded_in_words(stored.upgrades));
  };
  if (verdict.outcome == Outcome::machine_slower) return start_anew("slower");
  switch (stored.note) {
    case StoredNote::none:
      break;
    case StoredNote::machine_is_slower:
      return "; this machine is slower too, but the step is so even beside its anchor";
    case StoredNote::machine_is_faster:
      return start_anew("faster");
    case StoredNote::anchor_moved:
      return fmt::format(
          "; the anchor moved: beside it the step is beyond the limit, by itself it is not; {} "
          "does without an anchor",
          gate_command(scenario));
    case StoredNote::raw_is_not_shown:
      return "; the raw value is not shown to be within the limit" +
             missing_in_words(stored, scenario);
    case StoredNote::refresh_the_baseline:
      return fmt::format(
          "; better by more than the assertion tolerates: refresh the baseline, {} forgets the "
          "slower runs",
          baseline_reset(scenario));
  }
  return verdict.outcome == Outcome::undecided ? missing_in_words(stored, scenario) : "";
}

// "of 0123abc and 89abcde, newest 2026-11-21": the origin of the stored runs.
std::string origin_in_words(const StoredEvidence& stored) {
  constexpr std::size_t most_commits = 3;
  constexpr std::size_t letters = 10;  // shown of a commit
  constexpr std::size_t day = 10;      // "2026-11-21"
  constexpr std::string_view changed = "-dirty";
  std::string words = ", of ";
  const std::size_t shown = std::min(most_commits, stored.commits.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const std::string& commit = stored.commits[index];
    const bool is_last = index + 1 == stored.commits.size();
    words += index == 0 ? "" : is_last ? " and " : ", ";
    words +=
        commit.empty() || commit == "unknown" ? "an unknown commit" : commit.substr(0, letters);
    if (commit.size() > letters && commit.ends_with(changed)) words += changed;
  }
  if (shown < stored.commits.size())
    words += fmt::format(" and {} more", stored.commits.size() - shown);
  return words + ", newest " + stored.newest.substr(0, day);
}

std::string interval_in_words(const StoredValue& value, double scale) {
  if (!value.interval) return "";
  return fmt::format(" [{}, {}]", factor_in_words(scale * value.interval->low),
                     factor_in_words(scale * value.interval->high));
}

// "raw 0.50x (5.1M/s -> 2.6M/s) [..], anchor hbm.1 1.98x [..], normalised 0.998x [..]"
std::string three_values(const StoredEvidence& stored, MetricUnit unit, double limit) {
  return fmt::format("raw {} ({} -> {}){}, anchor {} {}{}{}, normalised {}{}",
                     factor_in_words(limit * stored.raw.ratio), in_words(stored.raw_then, unit),
                     in_words(stored.raw_now, unit), interval_in_words(stored.raw, limit),
                     stored.anchor_name, factor_in_words(stored.anchor.ratio),
                     interval_in_words(stored.anchor, 1),
                     stored.anchor.deviation
                         ? fmt::format(" (scatter {})", share_in_words(*stored.anchor.deviation))
                         : "",
                     factor_in_words(limit * stored.normalised.ratio),
                     interval_in_words(stored.normalised, limit));
}

}  // namespace

std::string no_baseline_reason(const Scenario& scenario) {
  return fmt::format("no run is stored for this device; {} stores one", accept_command(scenario));
}

std::string upgraded_in_words(const std::string& upgrades) {
  if (upgrades.empty()) return "";
  return fmt::format(
      "; upgraded since: {}, and docs/ci.md, \"I upgraded\", says how to compare both", upgrades);
}

std::string mismatch_reason(std::string_view key, const std::string& stored,
                            const std::string& now) {
  return fmt::format("the {} is '{}', the stored runs have '{}'", key, now, stored);
}

std::string changed_knobs_reason(const std::string& variant) {
  return fmt::format("the knobs of '{}' are not those of the stored runs", variant);
}

std::string other_device_reason(const std::string& stored, const std::string& now,
                                std::size_t fewest_devices) {
  return fmt::format("{}, and runs of other devices count only when they come from at least {}",
                     mismatch_reason("GPU's UUID", stored, now), fewest_devices);
}

std::string raw_in_words(double then_seconds, double now_seconds) {
  return fmt::format("; a step takes {} the time of the latest of them ({} -> {})",
                     factor_in_words(now_seconds / then_seconds),
                     in_words(then_seconds, MetricUnit::seconds),
                     in_words(now_seconds, MetricUnit::seconds));
}

std::string way_to_compare(const Scenario& scenario, bool asks_for_runs) {
  if (asks_for_runs) return fmt::format("; {} stores a run of this one", accept_command(scenario));
  return fmt::format(
      "; {} compares two builds without them, {} stores runs to compare with from "
      "now on",
      gate_command(scenario), baseline_reset(scenario));
}

std::string too_few_rounds_reason(std::int64_t rounds) {
  return fmt::format(
      "{} round{} measured, but a run is compared by its first {}; raise "
      "'measure.rounds' or the budget",
      rounds, rounds == 1 ? " was" : "s were", rounds_of_stored_run);
}

std::string unknown_time_reason(Metric metric) {
  return fmt::format("{} is not known, of this run or of the stored ones", row_of(metric).name);
}

std::string stored_reason(const Expectation& assertion, const AssertionVerdict& verdict,
                          const Scenario& scenario) {
  const StoredEvidence& stored = *verdict.stored;
  const double limit = limit_of(assertion);
  std::string words = three_values(stored, verdict.unit, limit);
  if (stored.normalised.interval)
    words += fmt::format(", {:.3g} % intervals", 100 * scenario.measure.confidence);
  if (stored.new_runs > 1)
    words += fmt::format(", in the mean of {} runs of this subject,", stored.new_runs);
  words += " against " + runs_in_words(stored);
  if (stored.normalised.deviation)
    words += ", which differ by " + share_in_words(*stored.normalised.deviation);
  words += origin_in_words(stored);
  if (!stored.other_builds.empty()) words += "; " + stored.other_builds;
  words += fmt::format("; {}", limit_in_words(assertion, fmt::format("{:.6g}x", limit)));
  return words + note_in_words(verdict, scenario);
}

}  // namespace stepgate
