// SPDX-License-Identifier: MIT
#include "judge/mechanism/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "judge/verdict/words.h"
#include "measure/schedule.h"

namespace stepgate {
namespace {

constexpr std::array parts_that_keep_kernels_waiting{
    TimePart::copies, TimePart::communication, TimePart::idle_after_wait, TimePart::idle_for_data,
    TimePart::idle_for_host};
constexpr std::array parts_of_work{TimePart::math, TimePart::memory, TimePart::latency,
                                   TimePart::idle_in_queue};

double share(const TimeBreakdown& time, TimePart part) {
  return time.step > 0 ? part_of(time, part) / time.step : 0;
}

std::string part_share_in_words(const TimeBreakdown& time, TimePart part) {
  return share_in_words(share(time, part));
}

struct LargestTwo {
  TimePart largest;
  TimePart second;
};

LargestTwo largest_two(std::span<const TimePart> parts, const TimeBreakdown& time) {
  std::vector<TimePart> sorted(parts.begin(), parts.end());
  std::sort(sorted.begin(), sorted.end(),
            [&](TimePart one, TimePart other) { return share(time, one) > share(time, other); });
  return {sorted[0], sorted[1]};
}

// Returns the two largest candidates of rule 1 or, where it does not apply, of rule 2.
LargestTwo candidates(const TimeBreakdown& time) {
  const LargestTwo waiting = largest_two(parts_that_keep_kernels_waiting, time);
  if (share(time, waiting.largest) >= share_that_binds) return waiting;
  return largest_two(parts_of_work, time);
}

// The value of a variant's metric, written as in an assertion; empty where it is unknown or 0.
class ReportedValue {
 public:
  explicit ReportedValue(const std::map<Metric, double>& values) : values_(values) {}

  std::string operator()(Metric metric, std::string_view before, std::string_view after) const {
    const auto found = values_.find(metric);
    if (found == values_.end() || found->second == 0) return "";
    return fmt::format("{}{}{}", before, in_words(found->second, row_of(metric).unit), after);
  }

 private:
  const std::map<Metric, double>& values_;
};

std::string cycles_in_words(const std::map<Metric, double>& values) {
  const auto cycles = values.find(Metric::cycles_per_load);
  if (cycles == values.end()) return "";
  return fmt::format("; a load takes {:.0f} cycles", cycles->second);
}

std::string bound_in_words(TimePart part, const TimeBreakdown& time,
                           const std::map<Metric, double>& values) {
  const ReportedValue reported(values);
  const std::string of_time = part_share_in_words(time, part) + " of the time";
  switch (part) {
    case TimePart::math:
      return fmt::format("compute-bound: kernels that arithmetic limits run {}", of_time);
    case TimePart::memory:
      return fmt::format("memory-bound: kernels and fills that device memory limits run {}",
                         of_time);
    case TimePart::latency:
      return fmt::format("latency-bound: kernels whose loads wait for each other run {}{}", of_time,
                         cycles_in_words(values));
    case TimePart::copies:
      return fmt::format("copy-bound: copies run with no kernel beside them {}{}{}", of_time,
                         reported(Metric::copy_bytes_per_step, "; it copies ", " a step"),
                         reported(Metric::pageable_copies_per_step, ", ",
                                  " of the copies from or to pageable memory"));
    case TimePart::communication:
      return fmt::format(
          "communication-bound: collectives run with no kernel beside them {}{}", of_time,
          reported(Metric::payload_bytes_per_step, "; they reduce or gather ", " a step"));
    case TimePart::idle_after_wait: {
      const std::string waits =
          reported(Metric::host_waits_per_step, "waits for the device ", "x a step");
      if (!waits.empty()) {
        return fmt::format("sync-bound: {} and leaves it idle {}", waits, of_time);
      }
      return fmt::format("sync-bound: the device is idle {} because the host waited for it{}",
                         of_time, reported(Metric::polls_per_step, ", polling ", "x a step"));
    }
    case TimePart::idle_for_data: {
      const std::string faults =
          reported(Metric::host_page_faults_per_step, "writes it, with ", " page faults a step");
      return fmt::format("data-bound: the device is idle {} while the host {}", of_time,
                         faults.empty() ? "waits for a batch" : "gets its batch and " + faults);
    }
    case TimePart::idle_for_host:
      return fmt::format("launch-bound: the device is idle {} while the host issues its work{}",
                         of_time, reported(Metric::launches_per_step, ", ", " launches a step"));
    case TimePart::idle_in_queue:
      return fmt::format("launch-bound: the device pauses between pieces of work {}{}", of_time,
                         reported(Metric::launches_per_step, ", ", " launches a step"));
  }
  return {};
}

std::string last_rank_in_words(double rank, const std::map<Metric, double>& values) {
  const ReportedValue reported(values);
  return fmt::format("; rank {} comes last to its collectives{}", rank,
                     reported(Metric::skew_us, ", up to ", " after the first"));
}

// Means over the traced rounds of one variant.
class Mean {
 public:
  Mean(const Traced& traced, std::size_t variant) : traced_(traced), variant_(variant) {}

  template <class Value>
  double operator()(Value&& value) const {
    double sum = 0;
    for (const TracedRound& round : traced_.rounds) sum += value(round.variants[variant_]);
    return sum / static_cast<double>(traced_.rounds.size());
  }

  TimeBreakdown time() const {
    const auto mean = [&](double TimeBreakdown::*part) {
      return (*this)([&](const TracedStep& step) { return step.time.*part; });
    };
    return {.step = mean(&TimeBreakdown::step),
            .math = mean(&TimeBreakdown::math),
            .memory = mean(&TimeBreakdown::memory),
            .latency = mean(&TimeBreakdown::latency),
            .copies = mean(&TimeBreakdown::copies),
            .communication = mean(&TimeBreakdown::communication),
            .idle_after_wait = mean(&TimeBreakdown::idle_after_wait),
            .idle_for_data = mean(&TimeBreakdown::idle_for_data),
            .idle_for_host = mean(&TimeBreakdown::idle_for_host),
            .idle_in_queue = mean(&TimeBreakdown::idle_in_queue)};
  }

  // The rank that arrives last in every round, if it is always the same.
  std::optional<double> last_rank() const {
    const auto of = [&](const TracedRound& round) {
      return traced_value(round, variant_, Metric::last_rank);
    };
    const std::optional<double> first = of(traced_.rounds.front());
    const bool same = std::ranges::all_of(
        traced_.rounds, [&](const TracedRound& round) { return of(round) == first; });
    return same ? first : std::nullopt;
  }

  PhaseSplit phase(std::size_t index) const {
    const auto mean = [&](double PhaseSplit::*part) {
      return (*this)([&](const TracedStep& step) { return step.phases[index].*part; });
    };
    return {.host_blocked = mean(&PhaseSplit::host_blocked),
            .device_busy = mean(&PhaseSplit::device_busy),
            .host_waits = mean(&PhaseSplit::host_waits),
            .copying = mean(&PhaseSplit::copying)};
  }

  WorkTimes work() const {
    WorkTimes means;
    const auto rounds = static_cast<double>(traced_.rounds.size());
    for (const TracedRound& round : traced_.rounds) {
      for (const auto& [name, time] : round.variants[variant_].work) {
        means[name].times += time.times / rounds;
        means[name].seconds += time.seconds / rounds;
      }
    }
    return means;
  }

  std::map<Metric, double> values() const {
    std::map<Metric, double> means;
    for (const MetricRow& row : metric_table()) {
      const bool known =
          std::all_of(traced_.rounds.begin(), traced_.rounds.end(), [&](const TracedRound& round) {
            return traced_value(round, variant_, row.metric).has_value();
          });
      if (!known) continue;
      means[row.metric] =
          (*this)([&](const TracedStep& step) { return step.values.at(row.metric); });
    }
    return means;
  }

 private:
  const Traced& traced_;
  std::size_t variant_;
};

VariantMechanism mechanism_of_variant(const Subject& subject, std::size_t variant,
                                      const Traced& traced,
                                      std::span<const VariantSummary> summaries) {
  const Mean mean(traced, variant);
  VariantMechanism mechanism;
  mechanism.variant = subject.name;
  mechanism.time = mean.time();
  mechanism.values = mean.values();
  if (subject.ranks > 1 && variant < traced.worst.size()) mechanism.ranks = traced.worst[variant];
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    mechanism.phases[phase] = mean.phase(phase);
  }
  mechanism.work = mean.work();
  mechanism.bound_by = bound_of(mechanism.time);
  mechanism.bound_class = class_of(mechanism.time);
  mechanism.diagnosis = diagnosis_of(mechanism.time, mechanism.values);
  if (const auto rank = mean.last_rank())
    mechanism.diagnosis += last_rank_in_words(*rank, mechanism.values);
  const bool timed = variant < summaries.size() && summaries[variant].step_seconds_mean;
  if (timed && *summaries[variant].step_seconds_mean > 0 && mechanism.time.step > 0) {
    mechanism.slowdown = mechanism.time.step / *summaries[variant].step_seconds_mean;
  }
  mechanism.planned = subject.planned_memory;
  mechanism.memory = traced.rounds.back().variants[variant].memory;
  return mechanism;
}

}  // namespace

std::optional<TimePart> bound_of(const TimeBreakdown& time) {
  const auto [largest, second] = candidates(time);
  const double lead = share(time, largest) - share(time, second);
  if (share(time, largest) <= 0 || lead < clear_lead) return std::nullopt;
  return largest;
}

std::string diagnosis_of(const TimeBreakdown& time, const std::map<Metric, double>& values) {
  if (time.step <= 0) return "nothing was traced";
  if (const auto bound = bound_of(time)) return bound_in_words(*bound, time, values);
  const auto [largest, second] = candidates(time);
  return fmt::format("no single bound: {} {}, {} {}", part_share_in_words(time, largest),
                     in_words(largest), part_share_in_words(time, second), in_words(second));
}

std::vector<std::string> shorter_trace_notes(std::span<const Subject> variants,
                                             const Mechanism& mechanism) {
  constexpr double shorter = 0.98;
  std::vector<std::string> notes;
  for (std::size_t index = 0; index < mechanism.variants.size(); ++index) {
    const VariantMechanism& variant = mechanism.variants[index];
    if (!variant.slowdown || *variant.slowdown >= shorter) continue;
    notes.push_back(fmt::format(
        "a traced step of '{}' takes {} the time of a timed one: its trace does not show all that "
        "timed steps do",
        variant.variant, factor_in_words(*variant.slowdown)));
    const UncoveredWork uncovered = uncovered_work(variants[index].periodic, mechanism.steps);
    if (uncovered.rarest)
      notes.back() += fmt::format("; '{}' happens every {} steps, and {} were traced",
                                  uncovered.rarest->name, uncovered.rarest->every, mechanism.steps);
  }
  return notes;
}

Mechanism mechanism_of(std::span<const Subject> variants, const Traced& traced,
                       std::span<const VariantSummary> summaries,
                       std::span<const PairToExplain> pairs) {
  Mechanism mechanism{.unavailable = traced.unavailable,
                      .rounds = std::ssize(traced.rounds),
                      .steps = traced.steps,
                      .wall_time = traced.wall_time,
                      .variants = {},
                      .separations = {}};
  std::size_t known = traced.rounds.empty() ? 0 : variants.size();
  for (const TracedRound& round : traced.rounds) known = std::min(known, round.variants.size());
  for (std::size_t variant = 0; variant < known; ++variant) {
    mechanism.variants.push_back(
        mechanism_of_variant(variants[variant], variant, traced, summaries));
  }
  for (const PairToExplain& pair : pairs) {
    if (std::max(pair.first, pair.other) < known)
      mechanism.separations.push_back(separation_of(variants, pair, traced));
  }
  return mechanism;
}

}  // namespace stepgate
