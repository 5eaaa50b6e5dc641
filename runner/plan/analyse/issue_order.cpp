// SPDX-License-Identifier: MIT
#include "plan/analyse/issue_order.h"

#include <algorithm>

#include "plan/analyse/access.h"

namespace stepgate {
namespace {

bool runs_on_host(const Operation& operation) {
  return std::holds_alternative<HostWaits>(operation.action) ||
         std::holds_alternative<TakeBatch>(operation.action) ||
         std::holds_alternative<HostWork>(operation.action) ||
         std::holds_alternative<HostCopies>(operation.action) ||
         std::holds_alternative<PageLock>(operation.action) ||
         std::holds_alternative<PageUnlock>(operation.action);
}

int thread_of(const Operation& operation) {
  const bool branches = operation.captured && operation.stream == StreamName::side;
  return branches ? branch_thread : static_cast<int>(operation.stream);
}

}  // namespace

IssueOrder::IssueOrder(const StepPlan& plan) : plan_(plan) {
  for (const Event& event : plan.events)
    events_.emplace_back(static_cast<std::size_t>(event.slots));
}

Issued IssueOrder::issue(const Operation& operation, std::int64_t step) {
  ++host()[host_thread];
  if (runs_on_host(operation)) {
    wait_on_host(operation, step);
    return {host_thread, host()[host_thread]};
  }
  const auto stream = static_cast<std::size_t>(thread_of(operation));
  enqueue(static_cast<int>(stream));
  if (const auto* record = std::get_if<RecordEvent>(&operation.action)) {
    event_at(record->event, step) = clocks_[stream];
  } else if (const auto* wait = std::get_if<StreamWaitsEvent>(&operation.action)) {
    join(clocks_[stream], event_at(wait->event, step));
  }
  if (const auto* copy = std::get_if<CopyBytes>(&operation.action)) {
    if (copy->host_waits || is_pageable(plan_, *copy)) join(host(), clocks_[stream]);
  }
  if (const auto* release = std::get_if<Release>(&operation.action)) {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(release->buffer)];
    if (buffer.allocated_by == AllocatedBy::cuda) join_every_stream(host());
  }
  return {static_cast<int>(stream), clocks_[stream][stream]};
}

void IssueOrder::join(Clock& clock, const Clock& other) {
  for (std::size_t thread = 0; thread < clock.size(); ++thread)
    clock[thread] = std::max(clock[thread], other[thread]);
}

void IssueOrder::join_every_stream(Clock& clock) {
  for (std::size_t stream = 0; stream < stream_count; ++stream) join(clock, clocks_[stream]);
  join(clock, clocks_[branch_thread]);
}

// The order that the legacy stream brings: it waits for the compute stream and the compute stream
// for it.
void IssueOrder::enqueue(int stream) {
  constexpr int compute = static_cast<int>(StreamName::compute);
  constexpr int legacy = static_cast<int>(StreamName::legacy);
  const auto index = static_cast<std::size_t>(stream);
  Clock& clock = clocks_[index];
  join(clock, host());
  if (stream == compute) join(clock, clocks_[legacy]);
  if (stream == legacy) join(clock, clocks_[compute]);
  ++clock[index];
}

void IssueOrder::wait_on_host(const Operation& operation, std::int64_t step) {
  const auto* waits = std::get_if<HostWaits>(&operation.action);
  if (!waits) return;
  switch (waits->what) {
    case WaitFor::device:
      return join_every_stream(host());
    case WaitFor::stream:
      return join(host(), clocks_[static_cast<std::size_t>(operation.stream)]);
    case WaitFor::event:
    case WaitFor::poll:
      return join(host(), event_at(waits->event, step));
  }
}

IssueOrder::Clock& IssueOrder::event_at(int event, std::int64_t step) {
  std::vector<Clock>& slots = events_[static_cast<std::size_t>(event)];
  return slots[static_cast<std::size_t>(step) % slots.size()];
}

std::int64_t steps_until_repeated(const StepPlan& plan) {
  constexpr std::int64_t most_slots = 8;
  constexpr std::int64_t most_steps = 200;
  std::int64_t longest = 2;
  for (const Buffer& buffer : plan.buffers)
    longest = std::max(longest, std::min(buffer.slots, most_slots));
  for (const Operation& operation : plan.operations) longest = std::max(longest, operation.every);
  return std::min(2 * longest + 1, most_steps);
}

}  // namespace stepgate
