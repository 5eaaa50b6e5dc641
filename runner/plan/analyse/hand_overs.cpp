// SPDX-License-Identifier: MIT
#include "plan/analyse/hand_overs.h"

#include <optional>

namespace stepgate {
namespace {

// The last record of the event before this operation.
std::optional<std::size_t> last_record(const StepPlan& plan, int event, std::size_t before) {
  for (std::size_t index = before; index-- > 0;) {
    const auto* record = std::get_if<RecordEvent>(&plan.operations[index].action);
    if (record && record->event == event) return index;
  }
  return std::nullopt;
}

// The record that this operation waits for, if it is a wait of that stream for one of the other.
std::optional<std::size_t> waits_for(const StepPlan& plan, std::size_t operation, StreamName waiter,
                                     StreamName recorder) {
  const Operation& waiting = plan.operations[operation];
  const auto* wait = std::get_if<StreamWaitsEvent>(&waiting.action);
  if (!wait || waiting.stream != waiter) return std::nullopt;
  const auto record = last_record(plan, wait->event, operation);
  if (!record || plan.operations[*record].stream != recorder) return std::nullopt;
  return record;
}

}  // namespace

std::size_t handed_over_at(const StepPlan& plan, std::size_t operation) {
  const StreamName stream = plan.operations[operation].stream;
  if (stream != StreamName::side) return operation;
  for (std::size_t index = operation; index-- > 0;) {
    if (const auto record = waits_for(plan, index, stream, StreamName::compute)) return *record;
  }
  return operation;
}

std::size_t handed_back_at(const StepPlan& plan, std::size_t operation) {
  const StreamName stream = plan.operations[operation].stream;
  if (stream != StreamName::side) return operation;
  for (std::size_t index = operation + 1; index < plan.operations.size(); ++index) {
    const auto record = waits_for(plan, index, StreamName::compute, stream);
    if (record && *record > operation) return index;
  }
  return operation;
}

}  // namespace stepgate
