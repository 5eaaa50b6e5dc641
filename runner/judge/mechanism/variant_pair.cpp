// SPDX-License-Identifier: MIT
#include "judge/mechanism/variant_pair.h"

#include <algorithm>
#include <cmath>

namespace stepgate {
namespace {

// A part that is seldom told apart from the scatter of a step is no mechanism worth a sentence.
constexpr double smallest_part_to_name = 0.01;
// A phase is named when at least this share of a difference lies in it.
constexpr double share_of_a_phase = 0.5;

constexpr std::array all_count_words{
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
    CountWords{Metric::payload_bytes_per_step, TimePart::communication,
               "reduces or gathers {} a step"},
};

// The index in which at least half of all differences lie.
std::optional<Phase> main_phase(const std::array<double, phase_count>& differences) {
  double sum = 0;
  for (const double difference : differences) sum += std::abs(difference);
  for (std::size_t phase = 0; phase < phase_count && sum > 0; ++phase) {
    if (std::abs(differences[phase]) > share_of_a_phase * sum) return static_cast<Phase>(phase);
  }
  return std::nullopt;
}

bool captures_in(const StepPlan& plan, std::size_t phase) {
  return std::ranges::any_of(plan.operations, [&](const Operation& operation) {
    return operation.captured && operation.phase == static_cast<Phase>(phase);
  });
}

}  // namespace

std::span<const CountWords> count_words() {
  return all_count_words;
}

std::vector<CountDifference> VariantPair::counts() const {
  std::vector<CountDifference> found;
  for (const CountWords& words : all_count_words) {
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
    // Copies beside kernels cost nothing by themselves, and may take longer where kernels are.
    case TimePart::math:
    case TimePart::memory:
    case TimePart::latency:
      return phase_by([](const PhaseSplit& phase) { return phase.device_busy - phase.copying; });
    case TimePart::copies:
      return phase_by([](const PhaseSplit& phase) { return phase.copying; });
    case TimePart::communication:  // phases do not tell it from kernels
    case TimePart::idle_for_host:
    case TimePart::idle_in_queue:
      break;  // no phase has the idle time of a device
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
  const PlanFacts& facts = variants_[variant].facts();
  const bool is_traced =
      std::ranges::find(traced_tally, metric, &TallyRow::metric) != traced_tally.end();
  const bool is_too_rare = std::ranges::any_of(facts.periodic, [&](const PeriodicWork& work) {
    return traced_.steps % work.every != 0 && work.counts.contains(metric);
  });
  return traced || (is_traced && !is_too_rare) ? traced : facts.count(metric);
}

std::vector<RareWork> VariantPair::rare_work() const {
  std::vector<RareWork> rare;
  for (const std::size_t variant : {first_, other_}) {
    for (const PeriodicWork& work : variants_[variant].facts().periodic) {
      if (traced_.steps % work.every != 0) rare.push_back({work, variants_[variant]->variant});
    }
  }
  return rare;
}

// Counts are the same in every round; what the driver decides as it goes scatters.
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
    const bool graph =
        captures_in(variants_[first_], phase) || captures_in(variants_[other_], phase);
    if (graph && metric == Metric::launches_per_step) return std::nullopt;
    differences[phase] = variants_[first_].facts().phases[phase][metric] -
                         variants_[other_].facts().phases[phase][metric];
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

}  // namespace stepgate
