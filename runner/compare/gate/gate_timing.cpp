// SPDX-License-Identifier: MIT
#include "compare/gate/gate_timing.h"

#include <algorithm>
#include <optional>

#include "compare/worker/kernel_workload.h"
#include "scenario/assertions/metric.h"
#include "scenario/assertions/step_counts.h"

namespace stepgate {
namespace {

// A gate uses a quarter of a comparison's segment and less warm-up, one step and its wash-out,
// since earlier workloads have warmed both processes up. It runs one superblock per pair until a
// workload turns out to need more.
constexpr std::chrono::nanoseconds segment_of_a_gate = std::chrono::milliseconds(5);
constexpr std::int64_t first_superblocks_of_a_gate = 1;
constexpr std::size_t workloads_ahead = 16;
// A traced step makes hundreds of records.
constexpr std::int64_t most_traced_steps = 20;

// Returns how many pairs to launch at once: first the fewest that can decide, later more, the
// longer the gate has taken. A few unneeded pairs cost less than launching pairs one by one.
std::int64_t pairs_at_once(std::int64_t done, std::int64_t ahead, std::int64_t fewest) {
  if (done < ahead) return ahead - done;
  return done < fewest ? fewest - done : (done - fewest) / 2 + 1;
}

// The driver's own memory pools may reserve more, which plans do not know.
std::optional<double> planned_memory_of(const StepCounts& counts) {
  for (const Metric metric : {Metric::peak_reserved, Metric::peak_live}) {
    const auto peak = counts.planned.find(std::string(row_of(metric).name));
    if (peak != counts.planned.end()) return peak->second;
  }
  return std::nullopt;
}

// Several ranks keep memory for their communicators, which plans do not know, and their collectives
// must not wait for each other beside those of another pair.
bool has_several_ranks(const StepCounts& counts) {
  return std::ranges::any_of(tally_table, [&](const TallyRow& row) {
    return row.of_ranks && counts.planned.contains(std::string(row_of(row.metric).name));
  });
}

// Returns 1 if the memory of the device or of a workload is unknown, or where ranks communicate.
std::int64_t pairs_that_fit(const ComparisonRequest& request,
                            std::span<const CountedPair> counted) {
  double largest = 0;
  for (const std::string& workload : request.workloads) {
    const auto found = std::ranges::find(counted, workload_in(workload), &CountedPair::workload);
    if (found == counted.end()) return 1;
    const auto base = planned_memory_of(found->base);
    const auto head = planned_memory_of(found->head);
    if (!base || !head || has_several_ranks(found->base) || has_several_ranks(found->head))
      return 1;
    largest = std::max(largest, *base + *head);
  }
  const Introduction& both = request.introduction;
  const auto memory = static_cast<double>(std::max(both.base.memory_bytes, both.head.memory_bytes));
  return pairs_in_memory(largest, memory);
}

}  // namespace

std::vector<std::string> in_order_of_suspicion(std::vector<std::string> workloads,
                                               const std::set<std::string>& differing) {
  const auto others = std::stable_partition(
      workloads.begin(), workloads.end(),
      [&](const std::string& workload) { return differing.contains(workload); });
  const auto stride = std::max<std::ptrdiff_t>(
      1, std::distance(others, workloads.end()) / static_cast<std::ptrdiff_t>(workloads_ahead));
  std::ptrdiff_t place = 0;
  std::stable_partition(others, workloads.end(),
                        [&](const std::string&) { return place++ % stride == 0; });
  return workloads;
}

std::size_t workloads_ahead_of_a_gate(std::size_t workloads) {
  return workloads > 2 * workloads_ahead ? workloads_ahead : 0;
}

void time_kernels(ComparisonRequest& request) {
  request.of_kernels = true;
  request.most_steps = most_traced_steps;
  request.watch_time = std::chrono::nanoseconds(0);
}

void time_as_a_gate(ComparisonRequest& request, const ComparisonSettings& settings,
                    std::chrono::nanoseconds most_timing, std::span<const CountedPair> counted) {
  request.segment = segment_of_a_gate;
  request.warm_up = std::chrono::nanoseconds(0);
  request.first_superblocks = first_superblocks_of_a_gate;
  const std::int64_t ahead = settings.workloads_ahead > 0 ? pairs_ahead : 0;
  request.fewest_pairs = ahead + fewest_pairs_to_decide(settings);
  request.pairs_at_once = [ahead, fewest = request.fewest_pairs,
                           planned = pairs_that_fit(request, counted)](
                              std::int64_t done, std::optional<std::int64_t> fitting) {
    return std::min(pairs_at_once(done, ahead, fewest), fitting.value_or(planned));
  };
  request.patience = most_timing;
  request.watch_time = time_to_watch(most_timing, request.workloads.size());
}

}  // namespace stepgate
