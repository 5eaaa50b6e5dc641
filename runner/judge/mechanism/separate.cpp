// SPDX-License-Identifier: MIT
#include "judge/mechanism/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/stats/moments.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

// The words for a difference in a count, and the part of the time that this count affects.
struct CountWords {
  Metric metric;
  TimePart moves;
  std::string_view says;  // has {} for the count
};

struct RareWork {
  const PeriodicWork& work;
  const std::string& variant;
};

// Compares two variants in the same traced rounds: which counts differ, and which part of the time.
// Its arguments must outlive it.
class VariantPair {
 public:
  VariantPair(std::span<const Subject> variants, std::size_t first, std::size_t other,
              const Traced& traced)
      : variants_(variants), first_(first), other_(other), traced_(traced) {}

  std::vector<CountDifference> counts() const;
  std::optional<TimePart> part() const;
  std::optional<Phase> phase_of(TimePart part) const;
  // Mean over the rounds, in seconds per step.
  double mean(std::size_t variant, TimePart part) const;
  double mean_step(std::size_t variant) const;
  std::size_t first() const { return first_; }
  std::size_t other() const { return other_; }
  // Lists the work of either variant that is too rare for the traced steps to hold whole periods of
  // it.
  std::vector<RareWork> rare_work() const;

 private:
  // The count of a trace, or the subject's where no trace counts it or it is too rare for this
  // trace.
  std::optional<double> count(const TracedRound&, std::size_t variant, Metric metric) const;
  bool differs_everywhere(Metric metric) const;
  // The phase with most of the difference, by the subjects' counts, which equal those of the trace.
  // Launches of a graph have no phase.
  std::optional<Phase> phase_of(Metric metric) const;
  std::optional<Phase> phase_by(const std::function<double(const PhaseSplit&)>& what) const;
  // Returns whether the ranges of the two variants over the rounds do not overlap.
  bool is_shown(TimePart part) const;
  std::pair<double, double> range(std::size_t variant, TimePart part) const;

  std::span<const Subject> variants_;
  std::size_t first_;
  std::size_t other_;
  const Traced& traced_;
};

// Smaller parts are seldom distinguishable from the scatter of a step and are not named.
constexpr double smallest_part_to_name = 0.01;
// A phase is named when at least this share of a difference lies in it.
constexpr double share_of_a_phase = 0.5;

// Words for every compared count, in the order in which differences are looked for.
constexpr std::array count_words{
    CountWords{Metric::host_waits_per_step, TimePart::idle_after_wait,
               "waits for the device {}x a step"},
    CountWords{Metric::polls_per_step, TimePart::idle_after_wait, "polls the device {}x a step"},
    CountWords{Metric::pageable_copies_per_step, TimePart::copies,
               "copies from or to pageable memory {}x a step"},
    CountWords{Metric::copies_per_step, TimePart::copies, "copies {}x a step"},
    CountWords{Metric::copy_bytes_per_step, TimePart::copies, "copies {} a step"},
    CountWords{Metric::memset_bytes_per_step, TimePart::memory, "fills {} a step with zeros"},
    CountWords{Metric::launches_per_step, TimePart::idle_for_host, "launches {}x a step"},
    CountWords{Metric::device_allocs_per_step, TimePart::idle_for_host,
               "allocates device memory {}x a step"},
    CountWords{Metric::device_frees_per_step, TimePart::idle_after_wait,
               "frees device memory {}x a step"},
    CountWords{Metric::pinned_allocs_per_step, TimePart::idle_for_host,
               "pins host memory {}x a step"},
    CountWords{Metric::device_syncs_per_step, TimePart::idle_after_wait,
               "waits for the whole device {}x a step"},
    CountWords{Metric::loader_starts_per_step, TimePart::idle_for_data,
               "starts threads of its loader {}x a step"},
    CountWords{Metric::page_faults_per_step, TimePart::memory,
               "stops kernels for pages {}x a step"},
    CountWords{Metric::host_page_faults_per_step, TimePart::idle_for_data,
               "stops the host for pages {}x a step"},
    CountWords{Metric::migrated_bytes_per_step, TimePart::copies,
               "moves {} of managed memory a step"},
    CountWords{Metric::all_reduces_per_step, TimePart::communication,
               "takes part in all-reduces {}x a step"},
    CountWords{Metric::reduce_scatters_per_step, TimePart::communication,
               "takes part in reduce-scatters {}x a step"},
    CountWords{Metric::all_gathers_per_step, TimePart::communication,
               "takes part in all-gathers {}x a step"},
    CountWords{Metric::broadcasts_per_step, TimePart::communication,
               "takes part in broadcasts {}x a step"},
    CountWords{Metric::payload_bytes_per_step, TimePart::communication,
               "reduces, gathers or broadcasts {} a step"},
};

// Returns the phase that has at least half of all differences.
std::optional<Phase> main_phase(const std::array<double, phase_count>& differences) {
  double sum = 0;
  for (const double difference : differences) sum += std::abs(difference);
  for (std::size_t phase = 0; phase < phase_count && sum > 0; ++phase) {
    if (std::abs(differences[phase]) > share_of_a_phase * sum) return static_cast<Phase>(phase);
  }
  return std::nullopt;
}

std::vector<CountDifference> VariantPair::counts() const {
  std::vector<CountDifference> found;
  for (const CountWords& words : count_words) {
    if (!differs_everywhere(words.metric)) continue;
    found.push_back({.metric = words.metric,
                     .first = count(traced_.rounds.front(), first_, words.metric).value(),
                     .other = count(traced_.rounds.front(), other_, words.metric).value(),
                     .phase = phase_of(words.metric)});
  }
  return found;
}

std::optional<TimePart> VariantPair::part() const {
  std::optional<TimePart> largest;
  double largest_difference = 0;
  for (int index = 0; index < time_part_count; ++index) {
    const auto part = static_cast<TimePart>(index);
    const double difference = std::abs(mean(first_, part) - mean(other_, part));
    if (difference <= largest_difference || !is_shown(part)) continue;
    largest = part;
    largest_difference = difference;
  }
  return largest;
}

std::optional<Phase> VariantPair::phase_of(TimePart part) const {
  switch (part) {
    case TimePart::idle_for_data:
      return Phase::data_wait;
    case TimePart::idle_after_wait:
      return phase_by([](const PhaseSplit& phase) { return phase.host_blocked; });
    // Copies beside kernels cost nothing by themselves, but may take longer while kernels run.
    case TimePart::math:
    case TimePart::memory:
    case TimePart::latency:
      return phase_by([](const PhaseSplit& phase) { return phase.device_busy - phase.copying; });
    case TimePart::copies:
      return phase_by([](const PhaseSplit& phase) { return phase.copying; });
    case TimePart::communication:  // indistinguishable from kernels in a phase
    case TimePart::idle_for_host:
    case TimePart::idle_in_queue:
      break;  // idle time belongs to no phase
  }
  return std::nullopt;
}

double VariantPair::mean(std::size_t variant, TimePart part) const {
  double sum = 0;
  for (const TracedRound& round : traced_.rounds) {
    sum += part_of(round.variants[variant].time, part);
  }
  return sum / static_cast<double>(traced_.rounds.size());
}

double VariantPair::mean_step(std::size_t variant) const {
  double sum = 0;
  for (const TracedRound& round : traced_.rounds) sum += round.variants[variant].time.step;
  return sum / static_cast<double>(traced_.rounds.size());
}

std::optional<double> VariantPair::count(const TracedRound& round, std::size_t variant,
                                         Metric metric) const {
  const auto traced = traced_value(round, variant, metric);
  const Subject& subject = variants_[variant];
  const bool is_traced =
      std::ranges::find(traced_tally, metric, &TallyRow::metric) != traced_tally.end();
  const bool is_too_rare = std::ranges::any_of(subject.periodic, [&](const PeriodicWork& work) {
    return traced_.steps % work.every != 0 && work.counts.contains(metric);
  });
  return traced || (is_traced && !is_too_rare) ? traced : subject.count(metric);
}

std::vector<RareWork> VariantPair::rare_work() const {
  std::vector<RareWork> rare;
  for (const std::size_t variant : {first_, other_}) {
    for (const PeriodicWork& work : variants_[variant].periodic) {
      if (traced_.steps % work.every != 0) rare.push_back({work, variants_[variant].name});
    }
  }
  return rare;
}

// Counts are equal in every round, but traced events that depend on the driver scatter.
bool VariantPair::differs_everywhere(Metric metric) const {
  const double scatter = row_of(metric).evidence == Evidence::traced ? 0.1 : 1e-6;
  return std::all_of(traced_.rounds.begin(), traced_.rounds.end(), [&](const TracedRound& round) {
    const auto first = count(round, first_, metric);
    const auto other = count(round, other_, metric);
    if (!first || !other) return false;
    const double most = std::max(std::abs(*first), std::abs(*other));
    return std::abs(*first - *other) > scatter * most;
  });
}

std::optional<Phase> VariantPair::phase_of(Metric metric) const {
  std::array<double, phase_count> differences{};
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    const bool graph = variants_[first_].in_graph[phase] || variants_[other_].in_graph[phase];
    if (graph && metric == Metric::launches_per_step) return std::nullopt;
    differences[phase] =
        variants_[first_].phases[phase][metric] - variants_[other_].phases[phase][metric];
  }
  return main_phase(differences);
}

std::optional<Phase> VariantPair::phase_by(
    const std::function<double(const PhaseSplit&)>& what) const {
  std::array<double, phase_count> differences{};
  for (const TracedRound& round : traced_.rounds) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      differences[phase] +=
          what(round.variants[first_].phases[phase]) - what(round.variants[other_].phases[phase]);
    }
  }
  return main_phase(differences);
}

bool VariantPair::is_shown(TimePart part) const {
  const auto [first_least, first_most] = range(first_, part);
  const auto [other_least, other_most] = range(other_, part);
  const double gap = std::max(first_least - other_most, other_least - first_most);
  return gap >= smallest_part_to_name * std::max(mean_step(first_), mean_step(other_));
}

std::pair<double, double> VariantPair::range(std::size_t variant, TimePart part) const {
  std::vector<double> values;
  for (const TracedRound& round : traced_.rounds) {
    values.push_back(part_of(round.variants[variant].time, part));
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {*least, *most};
}

const CountWords& words_of(Metric metric) {
  return *std::find_if(count_words.begin(), count_words.end(),
                       [&](const CountWords& words) { return words.metric == metric; });
}

std::string phase_in_words(std::optional<Phase> phase) {
  return phase ? fmt::format(" ({})", name_of(*phase)) : "";
}

// Returns one of two differing counts, with enough digits to show the difference.
std::string count_in_words(const CountDifference& count, double value) {
  const double other = value == count.first ? count.other : count.first;
  return told_from(value, other, [&](double number, int more_digits) {
    return in_words(number, row_of(count.metric).unit, more_digits);
  });
}

// Idle time is reported as a share of the step, as it appears in a timeline. Work is reported as a
// time, since its share changes with all other parts.
bool is_idle(TimePart part) {
  return part >= TimePart::idle_after_wait;
}

std::string part_in_words(const VariantPair& pair, std::size_t variant, TimePart part) {
  const double seconds = pair.mean(variant, part);
  if (!is_idle(part)) return in_words(seconds, MetricUnit::seconds);
  const double step = pair.mean_step(variant);
  return share_in_words(step > 0 ? seconds / step : 0);
}

// "leaves it idle 23 % of the time after waits", for a sentence in which "it" already means the
// device.
std::string part_clause(TimePart part, std::string_view device, const std::string& amount) {
  switch (part) {
    case TimePart::math:
      return fmt::format("spends {} a step in kernels that arithmetic limits", amount);
    case TimePart::memory:
      return fmt::format("spends {} a step in kernels and fills that device memory limits", amount);
    case TimePart::latency:
      return fmt::format("spends {} a step in kernels whose loads wait for each other", amount);
    case TimePart::copies:
      return fmt::format("spends {} a step in copies with no kernel beside them", amount);
    case TimePart::communication:
      return fmt::format("spends {} a step in collectives with no kernel beside them", amount);
    case TimePart::idle_after_wait:
      return fmt::format("leaves {} idle {} of the time after waits", device, amount);
    case TimePart::idle_for_data:
      return fmt::format("leaves {} idle {} of the time for lack of data", device, amount);
    case TimePart::idle_for_host:
      return fmt::format("leaves {} idle {} of the time for lack of issued work", device, amount);
    case TimePart::idle_in_queue:
      return fmt::format("has {} pause between pieces of work {} of the time", device, amount);
  }
  return {};
}

// Returns the count to report first: one that can affect the part, or else the first one.
std::optional<std::size_t> leading_count(const Separation& separation) {
  if (separation.counts.empty()) return std::nullopt;
  for (std::size_t index = 0; index < separation.counts.size() && separation.part; ++index) {
    if (words_of(separation.counts[index].metric).moves == *separation.part) return index;
  }
  return separation.part ? std::nullopt : std::optional<std::size_t>(0);
}

// ", besides launches_per_step 50 and 1": at most three; the JSON report has all of them.
std::string other_counts(const Separation& separation, std::optional<std::size_t> told,
                         bool swapped) {
  constexpr std::size_t most = 3;
  std::string words;
  std::size_t listed = 0;
  for (std::size_t index = 0; index < separation.counts.size(); ++index) {
    if (told == index) continue;
    if (++listed > most) continue;
    const CountDifference& count = separation.counts[index];
    words += fmt::format("{} {} {} and {}", listed == 1 ? "; also" : ",", row_of(count.metric).name,
                         count_in_words(count, swapped ? count.other : count.first),
                         count_in_words(count, swapped ? count.first : count.other));
  }
  if (listed > most) words += fmt::format(" and {} more", listed - most);
  return words;
}

// "; by the clock baseline takes 1.43x the time of fix: what differs is rarer than the 20 traced
// steps, as 'evaluate' of baseline, every 500 steps".
std::string by_the_clock(const PairToExplain& pair, const VariantPair& traced,
                         const Separation& separation, std::int64_t steps) {
  if (!pair.timed_ratio) return "";
  const bool first_is_slower = *pair.timed_ratio > 1;
  const double ratio = first_is_slower ? *pair.timed_ratio : 1 / *pair.timed_ratio;
  std::string words = fmt::format("by the clock {} takes {} the time of {}: what differs is ",
                                  first_is_slower ? separation.first : separation.other,
                                  told_from(ratio, 1,
                                            [](double factor, int more_digits) {
                                              return factor_in_words(factor, more_digits);
                                            }),
                                  first_is_slower ? separation.other : separation.first);
  const std::vector<RareWork> rare = traced.rare_work();
  if (rare.empty())
    return words +
           fmt::format("rarer than the {} traced steps, or less than scatters there", steps);
  std::vector<std::string> works;
  for (const RareWork& one : rare)
    works.push_back(
        fmt::format("'{}' of {}, every {} steps", one.work.name, one.variant, one.work.every));
  return words +
         fmt::format("rarer than the {} traced steps, as {}", steps, fmt::join(works, " or "));
}

std::string summary_of(const Separation& separation, const VariantPair& pair,
                       const std::string& clock) {
  const std::string& first = separation.first;
  const std::string& other = separation.other;
  if (separation.counts.empty() && !separation.part && !clock.empty())
    return fmt::format("no traced step separates {} and {}; {}", first, other, clock);
  if (separation.counts.empty() && !separation.part) {
    return fmt::format(
        "nothing separates {} and {}: the same counts, and no part of the time differs by more "
        "than the traced rounds scatter",
        first, other);
  }
  const auto lead = leading_count(separation);
  const CountDifference* count = lead ? &separation.counts[*lead] : nullptr;
  // The variant that does more is the grammatical subject: "item copies 1x a step; baseline 0x".
  const bool swapped =
      count ? count->first < count->other
            : pair.mean(pair.first(), *separation.part) < pair.mean(pair.other(), *separation.part);
  const std::size_t subject = swapped ? pair.other() : pair.first();
  const std::size_t object = swapped ? pair.first() : pair.other();
  std::vector<std::string> of_subject;
  std::vector<std::string> of_object;
  bool says_device = false;
  if (count) {
    const auto amount_of = [&](std::size_t variant) {
      return count_in_words(*count, variant == pair.first() ? count->first : count->other);
    };
    const std::string says =
        fmt::format(fmt::runtime(words_of(count->metric).says), amount_of(subject));
    says_device = says.find("the device") != std::string::npos;
    of_subject.push_back(says + phase_in_words(count->phase));
    const bool times = words_of(count->metric).says.find("{}x") != std::string_view::npos;
    of_object.push_back(amount_of(object) + (times ? "x" : ""));
  }
  if (separation.part) {
    const std::optional<Phase> told = count ? count->phase : std::nullopt;
    const std::string phase = separation.phase == told ? "" : phase_in_words(separation.phase);
    of_subject.push_back(part_clause(*separation.part, says_device ? "it" : "the device",
                                     part_in_words(pair, subject, *separation.part)) +
                         phase);
    of_object.push_back(part_in_words(pair, object, *separation.part));
  }
  std::string words =
      fmt::format("{} {}; {} {}", swapped ? other : first, fmt::join(of_subject, " and "),
                  swapped ? first : other, fmt::join(of_object, " and "));
  words += other_counts(separation, lead, swapped);
  if (separation.counts.empty()) words += "; no count differs";
  if (!separation.part) words += "; where the time goes does not differ by more than its scatter";
  if (!separation.part && !clock.empty()) words += "; " + clock;
  return words;
}

}  // namespace

std::optional<double> timed_ratio(const Measurement& measurement, std::size_t first,
                                  std::size_t other) {
  constexpr std::ptrdiff_t fewest_rounds = 4;
  constexpr double standard_errors = 3;
  std::vector<double> ratios;  // logarithms of the ratios
  for (const Round& round : measurement.rounds) {
    const auto log_time = [&](std::size_t variant) {
      return std::log(
          round_value(round, static_cast<int>(variant), 1, Metric::step_ms_mean).value_or(1));
    };
    ratios.push_back(log_time(first) - log_time(other));
  }
  if (std::ssize(ratios) < fewest_rounds) return std::nullopt;
  const auto [count, mean, variance] = moments_of(ratios);
  const double error = std::sqrt(variance / static_cast<double>(count - 1));
  if (std::abs(mean) <= standard_errors * error) return std::nullopt;
  return std::exp(mean);
}

Separation separation_of(std::span<const Subject> variants, const PairToExplain& explained,
                         const Traced& traced) {
  const VariantPair pair(variants, explained.first, explained.other, traced);
  Separation separation{.first = variants[explained.first].name,
                        .other = variants[explained.other].name,
                        .counts = pair.counts(),
                        .part = pair.part(),
                        .phase = {},
                        .summary = {}};
  if (separation.part) separation.phase = pair.phase_of(*separation.part);
  separation.summary =
      summary_of(separation, pair, by_the_clock(explained, pair, separation, traced.steps));
  return separation;
}

}  // namespace stepgate
