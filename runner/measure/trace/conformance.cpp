// SPDX-License-Identifier: MIT
#include "measure/trace/conformance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "measure/trace/trace_metrics.h"
#include "measure/trace/worst_ranks.h"
#include "scenario/assertions/metric_words.h"

namespace stepgate {
namespace {

// Compares with a tolerance, since plan and trace round their averages over steps differently.
bool agrees(double planned, double traced) {
  return std::abs(planned - traced) <= 1e-6 * std::max(std::abs(planned), std::abs(traced));
}

// The contribution of one operation of the plan to a metric in the timeline.
struct OfOperation {
  double amount = 0;
  std::set<std::string> calls;
};

std::map<int, OfOperation> by_operation(const StepPlan& plan, const Trace& trace, Metric metric) {
  std::map<std::uint32_t, std::string> name_of_call;
  std::map<int, OfOperation> found;
  for (const HostCall& call : trace.calls) {
    if (call.correlation != 0) name_of_call[call.correlation] = call.name;
    const double amount = amount_of(trace, call, plan, metric);
    if (amount == 0 || call.span < 0 || call.span >= std::ssize(trace.spans)) continue;
    OfOperation& of = found[trace.spans[static_cast<std::size_t>(call.span)].operation];
    of.amount += amount;
    of.calls.insert(call.name);
  }
  for (const DeviceWork& work : trace.work) {
    const double amount = amount_of(work, plan, metric);
    if (amount == 0) continue;
    OfOperation& of = found[work.operation];
    of.amount += amount;
    const auto call = name_of_call.find(work.correlation);
    if (call != name_of_call.end()) of.calls.insert(call->second);
  }
  return found;
}

// Names the first operation in which plan and timeline differ: "; in 'upload batch' the timeline
// has 2 (cudaMemcpyAsync), the plan 1". Empty where the timeline does not show it.
std::string where_they_part(const PlannedStep& step, const Trace& trace, Metric metric) {
  if (trace.steps <= 0) return "";
  const StepPlan& plan = step;
  std::map<int, OfOperation> traced = by_operation(plan, trace, metric);
  for (int index = 0; index < std::ssize(plan.operations); ++index) {
    const Operation& operation = plan.operations[static_cast<std::size_t>(index)];
    if (operation.captured) continue;  // the operations of a graph are one launch
    const Tally& tally = step.facts().operations[static_cast<std::size_t>(index)].tally;
    const double planned = tally[metric] / static_cast<double>(operation.every);
    const OfOperation& of = traced[index];
    const double found = of.amount / static_cast<double>(trace.steps);
    if (agrees(planned, found)) continue;
    const MetricUnit unit = row_of(metric).unit;
    return fmt::format("; in '{}' the timeline has {} a step{}, the plan {}", operation.name,
                       in_words(found, unit),
                       of.calls.empty() ? "" : fmt::format(" ({})", fmt::join(of.calls, ", ")),
                       in_words(planned, unit));
  }
  return "";
}

struct Disagreement {
  std::size_t variant = 0;
  Metric metric = Metric::launches_per_step;
  double planned = 0;
  double traced = 0;
  std::size_t round = 0;
  int rank = 0;
};

std::optional<double> counted_by(const TracedStep& step, Metric metric) {
  const auto found = step.values.find(metric);
  return found == step.values.end() ? std::nullopt : std::optional(found->second);
}

// Returns the first rank of a round whose count differs from the plan.
std::optional<Disagreement> disagreement_in(const TracedRound& round, std::size_t variant,
                                            Metric metric, double planned) {
  for (const TracedStep& rank : ranks_of(round, variant)) {
    const auto value = counted_by(rank, metric);
    if (!value || agrees(planned, *value)) continue;
    return Disagreement{.variant = variant,
                        .metric = metric,
                        .planned = planned,
                        .traced = *value,
                        .rank = rank.rank};
  }
  return std::nullopt;
}

// Returns at most one disagreement for each metric of a variant, from the first round that has one.
std::vector<Disagreement> disagreements(std::span<const PlannedStep> plans, const Traced& traced) {
  std::vector<Disagreement> all;
  for (std::size_t variant = 0; variant < plans.size(); ++variant) {
    const PlanFacts& facts = plans[variant].facts();
    for (const TallyRow& row : traced_tally) {
      const auto planned = facts.count(row.metric);
      if (!planned || facts.may_differ.contains(row.metric)) continue;
      for (std::size_t round = 0; round < traced.rounds.size(); ++round) {
        auto found = disagreement_in(traced.rounds[round], variant, row.metric, *planned);
        if (!found) continue;
        found->round = round;
        all.push_back(*found);
        break;
      }
    }
  }
  return all;
}

// " on rank 2" where there are several ranks.
std::string on_rank(const Traced& traced, const Disagreement& found) {
  const bool several = ranks_of(traced.rounds[found.round], found.variant).size() > 1;
  return several ? fmt::format(" on rank {}", found.rank) : "";
}

std::string in_words(const Disagreement& found, std::span<const PlannedStep> plans,
                     const Traced& traced) {
  const PlannedStep& plan = plans[found.variant];
  const MetricRow& row = row_of(found.metric);
  std::string words = fmt::format(
      "the trace of '{}' is not its plan: {} is {}{} in traced round {} and {} by the "
      "plan",
      plan->variant, row.name, in_words(found.traced, row.unit), on_rank(traced, found),
      found.round + 1, in_words(found.planned, row.unit));
  if (found.variant < traced.timelines.size()) {
    const std::vector<Trace>& ranks = traced.timelines[found.variant];
    const auto own = std::ranges::find(ranks, found.rank, &Trace::rank);
    if (own != ranks.end()) words += where_they_part(plan, *own, found.metric);
  }
  return words;
}

// Returns the first count in which ranks differ, among counts that the plan does not know exactly.
std::optional<std::string> reason_against_ranks(std::span<const PlannedStep> plans,
                                                const Traced& traced) {
  for (std::size_t round = 0; round < traced.rounds.size(); ++round) {
    for (std::size_t variant = 0; variant < plans.size(); ++variant) {
      const std::span<const TracedStep> ranks = ranks_of(traced.rounds[round], variant);
      for (const TallyRow& row : traced_tally) {
        for (const TracedStep& rank : ranks) {
          const auto count = counted_by(rank, row.metric);
          const auto first = counted_by(ranks.front(), row.metric);
          if (!count || !first || agrees(*first, *count)) continue;
          const MetricUnit unit = row_of(row.metric).unit;
          return fmt::format(
              "the ranks of '{}' do not agree: {} is {} on rank {} in traced round "
              "{} and {} on rank {}",
              plans[variant]->variant, row_of(row.metric).name, in_words(*count, unit), rank.rank,
              round + 1, in_words(*first, unit), ranks.front().rank);
        }
      }
    }
  }
  return std::nullopt;
}

std::int64_t most_held(std::span<const TracedStep> ranks) {
  std::int64_t most = 0;
  for (const TracedStep& rank : ranks) most = std::max(most, rank.memory.peak_allocated_bytes);
  return most;
}

// Returns why the device memory of buffers contradicts the plans, in words; nullopt when no variant
// holds more than planned.
std::optional<std::string> reason_against_memory(std::span<const PlannedStep> plans,
                                                 const Traced& traced) {
  for (const TracedRound& round : traced.rounds) {
    for (std::size_t variant = 0; variant < std::min(plans.size(), round.variants.size());
         ++variant) {
      const auto held = static_cast<double>(most_held(ranks_of(round, variant)));
      const auto planned = plans[variant].facts().count(Metric::peak_live);
      // Memory that grows from step to step has no maximum.
      const bool grows = plans[variant].facts().count(Metric::live_slope).value_or(0) > 0;
      if (!planned || grows || held <= *planned) continue;
      return fmt::format(
          "the trace of '{}' is not its plan: its buffers held {} of device memory at once ({:.0f} "
          "bytes), and {} by the plan ({:.0f})",
          plans[variant]->variant, in_words(held, MetricUnit::bytes), held,
          in_words(*planned, MetricUnit::bytes), *planned);
    }
  }
  return std::nullopt;
}

// Returns why the streams of the work contradict the plans, in words.
std::optional<std::string> reason_against_streams(std::span<const PlannedStep> plans,
                                                  const Traced& traced) {
  for (std::size_t round = 0; round < traced.rounds.size(); ++round) {
    for (std::size_t variant = 0; variant < plans.size(); ++variant) {
      const std::span<const TracedStep> ranks = ranks_of(traced.rounds[round], variant);
      for (const TracedStep& rank : ranks) {
        if (rank.on_another_stream.empty()) continue;
        return fmt::format("the trace of '{}' is not its plan: {}{}, in traced round {}",
                           plans[variant]->variant, rank.on_another_stream,
                           ranks.size() > 1 ? fmt::format(" on rank {}", rank.rank) : "",
                           round + 1);
      }
    }
  }
  return std::nullopt;
}

// Returns why the collectives contradict the plans, as the communication library recorded them.
std::optional<std::string> reason_against_library(std::span<const PlannedStep> plans,
                                                  const Traced& traced) {
  for (std::size_t round = 0; round < traced.rounds.size(); ++round) {
    for (std::size_t variant = 0; variant < plans.size(); ++variant) {
      for (const TracedStep& rank : ranks_of(traced.rounds[round], variant)) {
        const auto& library = rank.library;
        if (!library || library->difference.empty()) continue;
        return fmt::format(
            "what {} enqueued of '{}' at rank {} is not its plan, in traced round {}: {}",
            library->library, plans[variant]->variant, rank.rank, round + 1, library->difference);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> reason_against_conformance(std::span<const PlannedStep> plans,
                                                      const Traced& traced) {
  const std::vector<Disagreement> found = disagreements(plans, traced);
  if (found.empty()) {
    auto reason = reason_against_streams(plans, traced);
    if (!reason) reason = reason_against_library(plans, traced);
    if (!reason) reason = reason_against_ranks(plans, traced);
    return reason ? reason : reason_against_memory(plans, traced);
  }
  std::string words = in_words(found.front(), plans, traced);
  if (found.size() > 1) {
    words +=
        fmt::format("; {} more such difference{}", found.size() - 1, found.size() == 2 ? "" : "s");
  }
  return words;
}

}  // namespace stepgate
