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
         std::holds_alternative<RegisterHost>(operation.action) ||
         std::holds_alternative<UnregisterHost>(operation.action);
}

}  // namespace

IssueOrder::IssueOrder(const StepPlan& plan) : plan_(plan) {
  const std::size_t threads = 2 * plan.streams.size() + 1;
  clocks_.assign(threads, Clock(threads));
  for (const Event& event : plan.events)
    events_.emplace_back(static_cast<std::size_t>(event.slots), Clock(threads));
}

int IssueOrder::thread_of(const Operation& operation) const {
  const bool branches = operation.captured && operation.stream != compute_stream;
  return branches ? host_thread() + 1 + operation.stream : operation.stream;
}

Issued IssueOrder::issue(const Operation& operation, std::int64_t step) {
  std::int64_t& host_time = host()[static_cast<std::size_t>(host_thread())];
  ++host_time;
  if (runs_on_host(operation)) {
    wait_on_host(operation, step);
    return {host_thread(), host_time};
  }
  const int thread = thread_of(operation);
  enqueue(thread);
  if (const auto* record = std::get_if<RecordEvent>(&operation.action)) {
    event_at(record->event, step) = clock(thread);
  } else if (const auto* wait = std::get_if<StreamWaitsEvent>(&operation.action)) {
    join(clock(thread), event_at(wait->event, step));
  }
  if (const auto* copy = std::get_if<CopyBytes>(&operation.action)) {
    if (copy->host_waits || is_pageable(plan_, *copy)) join(host(), clock(thread));
  }
  if (const auto* release = std::get_if<Release>(&operation.action)) {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(release->buffer)];
    if (buffer.allocated_by == AllocatedBy::cuda) join_every_stream(host());
  }
  return {thread, clock(thread)[static_cast<std::size_t>(thread)]};
}

void IssueOrder::join(Clock& clock, const Clock& other) {
  for (std::size_t thread = 0; thread < clock.size(); ++thread)
    clock[thread] = std::max(clock[thread], other[thread]);
}

// Also joins every branch.
void IssueOrder::join_every_stream(Clock& clock) {
  for (int thread = 0; thread < threads(); ++thread) {
    if (thread != host_thread()) join(clock, this->clock(thread));
  }
}

// The operation starts after the host's call and after the streams that its stream is implicitly
// ordered with. A branch has only the edges of its graph.
void IssueOrder::enqueue(int thread) {
  Clock& own = clock(thread);
  join(own, host());
  for (int other = 0; thread < host_thread() && other < host_thread(); ++other) {
    if (wait_for_each_other(stream_at(plan_, thread), stream_at(plan_, other)))
      join(own, clock(other));
  }
  ++own[static_cast<std::size_t>(thread)];
}

void IssueOrder::wait_on_host(const Operation& operation, std::int64_t step) {
  const auto* waits = std::get_if<HostWaits>(&operation.action);
  if (!waits) return;
  switch (waits->what) {
    case WaitFor::device:
      return join_every_stream(host());
    case WaitFor::stream:
      return join(host(), clock(operation.stream));
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
