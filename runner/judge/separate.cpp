// SPDX-License-Identifier: MIT
#include "judge/separate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "judge/words.h"
#include "plan/step_names.h"

namespace stepgate {
namespace {

// What is seldom told apart from the scatter of a step is no mechanism worth a sentence.
constexpr double smallest_part_to_name = 0.01;
// A phase is named when at least this share of a difference lies in it.
constexpr double share_of_a_phase = 0.5;

// What a difference in a count is called, in the order in which it is looked for, and the part of
// the time that it can move.
struct CountWords {
  Metric metric;
  TimePart moves;
  std::string_view says;  // with {} for the count
};

constexpr std::array count_words{
    CountWords{Metric::host_waits_per_step, TimePart::idle_after_wait,
               "waits for the device {}x a step"},
    CountWords{Metric::polls_per_step, TimePart::idle_after_wait, "polls the device {}x a step"},
    CountWords{Metric::pageable_copies_per_step, TimePart::copies,
               "copies from or to pageable memory {}x a step"},
    CountWords{Metric::copies_per_step, TimePart::copies, "makes {} copies a step"},
    CountWords{Metric::copy_bytes_per_step, TimePart::copies, "copies {} a step"},
    CountWords{Metric::memset_bytes_per_step, TimePart::memory, "fills {} a step with zeros"},
    CountWords{Metric::launches_per_step, TimePart::idle_for_host, "launches {}x a step"},
    CountWords{Metric::device_allocs_per_step, TimePart::idle_for_host,
               "allocates device memory {}x a step"},
    CountWords{Metric::device_frees_per_step, TimePart::idle_after_wait,
               "frees device memory {}x a step"},
    CountWords{Metric::pinned_allocs_per_step, TimePart::idle_for_host,
               "page-locks host memory {}x a step"},
    CountWords{Metric::device_syncs_per_step, TimePart::idle_after_wait,
               "waits for the whole device {}x a step"},
};

const CountWords& words_of(Metric metric) {
  return *std::find_if(count_words.begin(), count_words.end(),
                       [&](const CountWords& words) { return words.metric == metric; });
}

// The index in which at least half of all differences lie.
std::optional<Phase> main_phase(const std::array<double, phase_count>& differences) {
  double sum = 0;
  for (const double difference : differences) sum += std::abs(difference);
  for (std::size_t phase = 0; phase < phase_count && sum > 0; ++phase) {
    if (std::abs(differences[phase]) > share_of_a_phase * sum) return static_cast<Phase>(phase);
  }
  return std::nullopt;
}

// Compares two variants in the same traced rounds.
class Pair {
 public:
  Pair(std::span<const StepPlan> variants, std::size_t other, const Traced& traced,
       const Counted& counted)
      : first_(variants.front()),
        other_(variants[other]),
        index_(other),
        traced_(traced),
        counted_(counted) {}

  std::vector<CountDifference> counts() const {
    std::vector<CountDifference> found;
    for (const CountWords& words : count_words) {
      if (!differs_everywhere(words.metric)) continue;
      found.push_back({.metric = words.metric,
                       .first = traced_value(traced_.rounds.front(), 0, words.metric).value(),
                       .other = traced_value(traced_.rounds.front(), index_, words.metric).value(),
                       .phase = phase_of(words.metric)});
    }
    return found;
  }

  std::optional<TimePart> part() const {
    std::optional<TimePart> largest;
    double largest_difference = 0;
    for (int index = 0; index < time_part_count; ++index) {
      const auto part = static_cast<TimePart>(index);
      const double difference = std::abs(mean(0, part) - mean(index_, part));
      if (difference <= largest_difference || !is_shown(part)) continue;
      largest = part;
      largest_difference = difference;
    }
    return largest;
  }

  std::optional<Phase> phase_of(TimePart part) const {
    switch (part) {
      case TimePart::idle_for_data:
        return Phase::data_wait;
      case TimePart::idle_after_wait:
        return phase_by(&PhaseSplit::host_blocked);
      case TimePart::math:
      case TimePart::memory:
      case TimePart::copies:
        return phase_by(&PhaseSplit::device_busy);
      case TimePart::idle_for_host:
      case TimePart::idle_in_queue:
        break;  // no phase has the idle time of a device
    }
    return std::nullopt;
  }

  // Mean over the rounds, in seconds a step.
  double mean(std::size_t variant, TimePart part) const {
    double sum = 0;
    for (const TracedRound& round : traced_.rounds) {
      sum += part_of(round.variants[variant].time, part);
    }
    return sum / static_cast<double>(traced_.rounds.size());
  }

  double mean_step(std::size_t variant) const {
    double sum = 0;
    for (const TracedRound& round : traced_.rounds) sum += round.variants[variant].time.step;
    return sum / static_cast<double>(traced_.rounds.size());
  }

  std::size_t other() const { return index_; }

 private:
  bool differs_everywhere(Metric metric) const {
    return std::all_of(traced_.rounds.begin(), traced_.rounds.end(), [&](const TracedRound& round) {
      const auto first = traced_value(round, 0, metric);
      const auto other = traced_value(round, index_, metric);
      if (!first || !other) return false;
      const double most = std::max(std::abs(*first), std::abs(*other));
      return std::abs(*first - *other) > 1e-6 * most;
    });
  }

  // By the plans, whose counts are those of the trace. What a graph launches has no phase.
  std::optional<Phase> phase_of(Metric metric) const {
    std::array<double, phase_count> differences{};
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      const auto first = count_in(first_, static_cast<Phase>(phase), metric);
      const auto other = count_in(other_, static_cast<Phase>(phase), metric);
      if (!first || !other) return std::nullopt;
      differences[phase] = *first - *other;
    }
    return main_phase(differences);
  }

  std::optional<double> count_in(const StepPlan& plan, Phase phase, Metric metric) const {
    StepPlan part = plan;
    std::erase_if(part.operations,
                  [&](const Operation& operation) { return operation.phase != phase; });
    const bool graph = std::any_of(part.operations.begin(), part.operations.end(),
                                   [](const Operation& operation) { return operation.captured; });
    if (graph && metric == Metric::launches_per_step) return std::nullopt;
    return counted_(part, metric);
  }

  std::optional<Phase> phase_by(double PhaseSplit::*what) const {
    std::array<double, phase_count> differences{};
    for (const TracedRound& round : traced_.rounds) {
      for (std::size_t phase = 0; phase < phase_count; ++phase) {
        differences[phase] +=
            round.variants[0].phases[phase].*what - round.variants[index_].phases[phase].*what;
      }
    }
    return main_phase(differences);
  }

  // Every round of the one beyond every round of the other.
  bool is_shown(TimePart part) const {
    const auto [first_least, first_most] = range(0, part);
    const auto [other_least, other_most] = range(index_, part);
    const double gap = std::max(first_least - other_most, other_least - first_most);
    return gap >= smallest_part_to_name * std::max(mean_step(0), mean_step(index_));
  }

  std::pair<double, double> range(std::size_t variant, TimePart part) const {
    std::vector<double> values;
    for (const TracedRound& round : traced_.rounds) {
      values.push_back(part_of(round.variants[variant].time, part));
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return {*least, *most};
  }

  const StepPlan& first_;
  const StepPlan& other_;
  std::size_t index_;
  const Traced& traced_;
  const Counted& counted_;
};

std::string phase_in_words(std::optional<Phase> phase) {
  return phase ? fmt::format(" ({})", name_of(*phase)) : "";
}

std::string count_in_words(const CountDifference& count, double value) {
  return in_words(value, row_of(count.metric).unit);
}

// Idle time is told as a share of the step, which is what one sees in a timeline; work as time,
// since its share changes with all the rest.
bool is_idle(TimePart part) {
  return part >= TimePart::idle_after_wait;
}

std::string part_in_words(const Pair& pair, std::size_t variant, TimePart part) {
  const double seconds = pair.mean(variant, part);
  if (!is_idle(part)) return in_words(seconds, MetricUnit::seconds);
  const double step = pair.mean_step(variant);
  return share_in_words(step > 0 ? seconds / step : 0);
}

// "leaves it idle 23 % of the time after waits" of a variant that was just said to do something
// with "it".
std::string part_clause(TimePart part, std::string_view device, const std::string& amount) {
  switch (part) {
    case TimePart::math:
      return fmt::format("spends {} a step in kernels that arithmetic limits", amount);
    case TimePart::memory:
      return fmt::format("spends {} a step in kernels and fills that device memory limits", amount);
    case TimePart::copies:
      return fmt::format("spends {} a step in copies with no kernel beside them", amount);
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

// The count to tell first: one that can move the part, or the first of all.
std::optional<std::size_t> leading_count(const Separation& separation) {
  if (separation.counts.empty()) return std::nullopt;
  for (std::size_t index = 0; index < separation.counts.size() && separation.part; ++index) {
    if (words_of(separation.counts[index].metric).moves == *separation.part) return index;
  }
  return separation.part ? std::nullopt : std::optional<std::size_t>(0);
}

// ", besides launches_per_step 50 and 1": at most three, the report has all of them for programs.
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

std::string sentence_of(const Separation& separation, const Pair& pair) {
  const std::string& first = separation.first;
  const std::string& other = separation.other;
  if (separation.counts.empty() && !separation.part) {
    return fmt::format(
        "nothing separates {} and {}: the same counts, and no part of the time differs by more "
        "than the traced rounds scatter",
        first, other);
  }
  const auto lead = leading_count(separation);
  const CountDifference* count = lead ? &separation.counts[*lead] : nullptr;
  // Whoever does more is the subject: "item makes 1 copy a step; baseline 0".
  const bool swapped =
      count ? count->first < count->other
            : pair.mean(0, *separation.part) < pair.mean(pair.other(), *separation.part);
  const std::size_t subject = swapped ? pair.other() : 0;
  const std::size_t object = swapped ? 0 : pair.other();
  std::vector<std::string> of_subject;
  std::vector<std::string> of_object;
  bool says_device = false;
  if (count) {
    const auto amount_of = [&](std::size_t variant) {
      return count_in_words(*count, variant == 0 ? count->first : count->other);
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
  return words;
}

}  // namespace

Separation separation_of(std::span<const StepPlan> variants, std::size_t other,
                         const Traced& traced, const Counted& counted) {
  const Pair pair(variants, other, traced, counted);
  Separation separation{.first = variants.front().variant,
                        .other = variants[other].variant,
                        .counts = pair.counts(),
                        .part = pair.part(),
                        .phase = {},
                        .sentence = {}};
  if (separation.part) separation.phase = pair.phase_of(*separation.part);
  separation.sentence = sentence_of(separation, pair);
  return separation;
}

}  // namespace stepgate
