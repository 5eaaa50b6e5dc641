// SPDX-License-Identifier: MIT
#include "plan/analyse/stream_handoff.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace stepgate {

std::size_t last_awaited_record(const StepPlan& plan, std::size_t operation) {
  const int stream = plan.operations[operation].stream;
  if (is_ordered_with_compute(plan, stream)) return operation;
  // For each stream and event, the last record on the compute stream that it is ordered after.
  std::vector<std::optional<std::size_t>> known(plan.streams.size());
  std::vector<std::optional<std::size_t>> told(plan.events.size());
  for (std::size_t index = 0; index < operation; ++index) {
    const Operation& earlier = plan.operations[index];
    std::optional<std::size_t>& knows = known[static_cast<std::size_t>(earlier.stream)];
    if (const auto* record = std::get_if<RecordEvent>(&earlier.action)) {
      const bool by_compute = is_ordered_with_compute(plan, earlier.stream);
      told[static_cast<std::size_t>(record->event)] = by_compute ? index : knows;
    } else if (const auto* wait = std::get_if<StreamWaitsEvent>(&earlier.action)) {
      knows = std::max(knows, told[static_cast<std::size_t>(wait->event)]);
    }
  }
  return known[static_cast<std::size_t>(stream)].value_or(operation);
}

std::size_t next_awaiting_wait(const StepPlan& plan, std::size_t operation, int waiting_stream) {
  const int stream = plan.operations[operation].stream;
  if (are_ordered(plan, stream, waiting_stream)) return operation;
  // The streams and events that are ordered after the operation.
  std::vector<bool> known(plan.streams.size());
  std::vector<bool> told(plan.events.size());
  known[static_cast<std::size_t>(stream)] = true;
  for (std::size_t index = operation + 1; index < plan.operations.size(); ++index) {
    const Operation& later = plan.operations[index];
    const auto on = static_cast<std::size_t>(later.stream);
    if (const auto* record = std::get_if<RecordEvent>(&later.action)) {
      told[static_cast<std::size_t>(record->event)] = known[on];
    } else if (const auto* wait = std::get_if<StreamWaitsEvent>(&later.action)) {
      if (!told[static_cast<std::size_t>(wait->event)]) continue;
      if (are_ordered(plan, later.stream, waiting_stream)) return index;
      known[on] = true;
    }
  }
  return operation;
}

}  // namespace stepgate
