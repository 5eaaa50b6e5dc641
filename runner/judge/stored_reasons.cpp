// SPDX-License-Identifier: MIT
// Sentences about sentences about stored runs.
#include "judge/stored_reasons.h"

#include <fmt/format.h>

#include "judge/baseline.h"
#include "judge/reasons.h"
#include "judge/stored_sentence.h"
#include "judge/words.h"

namespace stepgate {
namespace {

std::string accept_command(const Scenario& scenario, std::string_view options = "") {
  return fmt::format("`stepgate accept {}{}`", scenario.file, options);
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

// How to get more units, after "and".
std::string way_to_more(StoredUnit unit, const Scenario& scenario) {
  switch (unit) {
    case StoredUnit::run:
      return accept_command(scenario, " --runs 4") + " adds runs";
    case StoredUnit::sitting:
      return accept_command(scenario) + " in another hour, better on another day, adds one";
    case StoredUnit::device:
      return accept_command(scenario) + " on another device adds one";
  }
  return "";
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

}  // namespace

std::string no_baseline_reason(const Scenario& scenario) {
  return fmt::format("no run is stored for this device; {} stores one", accept_command(scenario));
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

std::string not_comparable_reason(const std::string& mismatch, const Scenario& scenario) {
  return fmt::format("{}; {} stores a run of this one", mismatch, accept_command(scenario));
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

std::string stored_reason(const Expectation& sentence, const SentenceVerdict& verdict,
                          const Scenario& scenario) {
  const StoredEvidence& stored = *verdict.stored;
  const double limit = factor_of_single_metric(sentence.right).value_or(1) /
                       factor_of_single_metric(sentence.left).value_or(1);
  const auto factor = [&](double ratio) {
    return told_from(limit * ratio, limit, factor_in_words);
  };
  std::string words = factor(stored.ratio);
  if (stored.interval) {
    words += fmt::format(", {:.3g} % interval [{}, {}]", 100 * scenario.measure.confidence,
                         factor(stored.interval->low), factor(stored.interval->high));
  }
  if (stored.new_runs > 1)
    words += fmt::format(", in the mean of {} runs of this subject,", stored.new_runs);
  words += " against " + runs_in_words(stored);
  if (stored.deviation) {
    words += ", which differ by " + share_in_words(*stored.deviation);
  }
  words += fmt::format("; {}", limit_in_words(sentence, fmt::format("{:.6g}x", limit)));
  if (verdict.outcome == Outcome::undecided) words += missing_in_words(stored, scenario);
  return words;
}

}  // namespace stepgate
