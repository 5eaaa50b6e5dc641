// SPDX-License-Identifier: MIT
#include "plan/count/count_collectives.h"

#include <algorithm>
#include <set>

#include "support/text/units.h"

namespace stepgate {
namespace {

// More than scalars, such as a norm, and less than is worth a collective of its own; the limits are
// fixed since a scenario's own may be none.
constexpr std::int64_t most_of_a_scalar = 64;
constexpr auto least_of_a_bucket = static_cast<std::int64_t>(mebibyte);

bool is_small(const Collective& reduction) {
  const std::int64_t bytes = payload_bytes(reduction);
  return bytes > most_of_a_scalar && bytes < least_of_a_bucket;
}

// How often it acts a step.
double share_of_steps(const Operation& operation) {
  return 1 / static_cast<double>(operation.every);
}

// Index of the last kernel of the backward pass on the compute stream; -1 where there is none.
std::ptrdiff_t last_backward_kernel(const StepPlan& plan) {
  std::ptrdiff_t last = -1;
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    if (operation.phase == Phase::backward && operation.stream == compute_stream &&
        std::holds_alternative<LaunchKernel>(operation.action))
      last = static_cast<std::ptrdiff_t>(index);
  }
  return last;
}

struct Counted {
  double collectives = 0;
  double wire_bytes = 0;
  double small_reductions = 0;
  double late = 0;
  double early_waits = 0;
};

Counted counted(const StepPlan& plan) {
  Counted sum;
  const std::ptrdiff_t last_kernel = last_backward_kernel(plan);
  std::set<int> recorded;  // events, behind reductions of gradients
  std::set<int> reduces;   // streams that have some
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    const double share = share_of_steps(operation);
    const bool is_late = static_cast<std::ptrdiff_t>(index) > last_kernel;
    if (const auto* collective = std::get_if<Collective>(&operation.action)) {
      sum.collectives += share;
      sum.wire_bytes +=
          share * ring_wire_bytes(collective->kind, payload_bytes(*collective), plan.ranks.count);
      if (collective->kind == CollectiveKind::all_gather) continue;
      if (is_small(*collective)) sum.small_reductions += share;
      if (operation.phase != Phase::backward) continue;
      reduces.insert(operation.stream);
      if (is_late) sum.late += share;
    } else if (const auto* record = std::get_if<RecordEvent>(&operation.action)) {
      if (reduces.contains(operation.stream)) recorded.insert(record->event);
    } else if (const auto* wait = std::get_if<StreamWaitsEvent>(&operation.action)) {
      const bool for_others = operation.stream == compute_stream && recorded.contains(wait->event);
      if (for_others && operation.phase == Phase::backward && !is_late) sum.early_waits += share;
    }
  }
  return sum;
}

double state_bytes(const StepPlan& plan) {
  double bytes = 0;
  for (const Buffer& buffer : plan.buffers) {
    const bool is_state = buffer.purpose == Purpose::weights ||
                          buffer.purpose == Purpose::gradients ||
                          buffer.purpose == Purpose::optimizer_state;
    if (is_state && takes_device_memory(buffer.memory))
      bytes += static_cast<double>(buffer.bytes * buffer.slots);
  }
  return bytes;
}

}  // namespace

void count_collectives(const StepPlan& plan, PlanFacts& facts) {
  const Counted sum = counted(plan);
  facts.counts[Metric::collectives_per_step] = sum.collectives;
  facts.counts[Metric::wire_bytes_per_step] = sum.wire_bytes;
  facts.counts[Metric::unbucketed_per_step] = std::max(sum.small_reductions - 1, 0.0);
  facts.counts[Metric::late_collectives_per_step] = sum.late;
  facts.counts[Metric::early_comm_waits_per_step] = sum.early_waits;
  facts.counts[Metric::state_bytes] = state_bytes(plan);
}

}  // namespace stepgate
