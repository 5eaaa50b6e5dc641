// SPDX-License-Identifier: MIT
#include "plan/allocate/step_allocator.h"

#include <algorithm>

#include "base/require.h"
#include "base/text/units.h"
#include "plan/allocators/caching/caching_allocator.h"
#include "plan/allocators/first_fit_allocator.h"
#include "plan/analyse/access.h"
#include "plan/analyse/stream_handoff.h"

namespace stepgate {
namespace {

constexpr int pool_of_graphs = 1;

std::unique_ptr<MemoryAllocator> make_allocator(const AllocatorPlan& plan, DeviceMemory& memory) {
  switch (plan.kind) {
    case AllocatorKind::caching:
      return std::make_unique<CachingAllocator>(memory, plan.rules, plan.cap_bytes);
    case AllocatorKind::first_fit:
      return std::make_unique<FirstFitAllocator>(memory, plan.cap_bytes);
  }
  require(false, "every allocator can be made");
  return nullptr;
}

template <class Action>
bool is_for(const Operation& operation, int buffer) {
  const auto* action = std::get_if<Action>(&operation.action);
  return action && action->buffer == buffer;
}

// The stream that allocates each buffer; the compute stream for those that stay.
std::vector<int> allocating_streams(const StepPlan& plan) {
  std::vector<int> streams(plan.buffers.size(), compute_stream);
  for (const Operation& operation : plan.operations) {
    if (const auto* allocate = std::get_if<Allocate>(&operation.action))
      streams[static_cast<std::size_t>(allocate->buffer)] = operation.stream;
  }
  return streams;
}

// Whether the stream that allocates the buffer releases it too, and waits for this use on another
// stream before the release.
bool is_handed_back(const StepPlan& plan, std::size_t use, int buffer, int stream) {
  for (const Operation& operation : plan.operations) {
    if (operation.stream != stream && is_for<Release>(operation, buffer)) return false;
  }
  const std::size_t back = next_awaiting_wait(plan, use, stream);
  if (back == use) return false;
  const auto release = std::find_if(
      plan.operations.begin() + static_cast<std::ptrdiff_t>(use), plan.operations.end(),
      [&](const Operation& operation) { return is_for<Release>(operation, buffer); });
  return release != plan.operations.end() &&
         release - plan.operations.begin() > static_cast<std::ptrdiff_t>(back);
}

// For each buffer, the stream that allocates it and the streams that may still use it when it is
// released.
std::vector<std::vector<int>> streams_of_buffers(const StepPlan& plan) {
  std::vector<std::vector<int>> streams(plan.buffers.size());
  const std::vector<int> allocating = allocating_streams(plan);
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    for (const BufferAccess& access : accesses_of(plan, operation)) {
      const int buffer = access.use.buffer;
      const bool served = plan.buffers[static_cast<std::size_t>(buffer)].allocated_by ==
                          AllocatedBy::step_allocator;
      const int stream = allocating[static_cast<std::size_t>(buffer)];
      if (!served || (operation.stream != stream && is_handed_back(plan, index, buffer, stream)))
        continue;
      auto& of_buffer = streams[static_cast<std::size_t>(buffer)];
      if (std::find(of_buffer.begin(), of_buffer.end(), operation.stream) == of_buffer.end())
        of_buffer.push_back(operation.stream);
    }
  }
  return streams;
}

}  // namespace

StepAllocator::StepAllocator(const StepPlan& plan, DeviceMemory& memory)
    : plan_(plan),
      allocator_(make_allocator(plan.allocator.value(), memory)),
      streams_(streams_of_buffers(plan)) {
  for (const Buffer& buffer : plan.buffers)
    slots_.emplace_back(static_cast<std::size_t>(buffer.slots));
}

StepAllocator::~StepAllocator() = default;

std::optional<StepAllocator::Held>& StepAllocator::slot(int buffer, std::int64_t step) {
  auto& slots = slots_[static_cast<std::size_t>(buffer)];
  return slots[static_cast<std::size_t>(step) % slots.size()];
}

const std::optional<StepAllocator::Held>& StepAllocator::slot(int buffer, std::int64_t step) const {
  const auto& slots = slots_[static_cast<std::size_t>(buffer)];
  return slots[static_cast<std::size_t>(step) % slots.size()];
}

std::optional<Refusal> StepAllocator::take(int buffer, std::optional<Held>& held, int stream) {
  const std::int64_t bytes = plan_.buffers[static_cast<std::size_t>(buffer)].bytes;
  const BlockOrRefusal answer = allocator_->allocate(std::max<std::int64_t>(bytes, 1), stream);
  if (const auto* refusal = std::get_if<Refusal>(&answer)) return *refusal;
  held = Held{std::get<HeldBlock>(answer), stream};
  return std::nullopt;
}

std::optional<Refusal> StepAllocator::take_kept() {
  for (int buffer = 0; buffer < std::ssize(plan_.buffers); ++buffer) {
    const Buffer& kept = plan_.buffers[static_cast<std::size_t>(buffer)];
    if (kept.memory != MemoryKind::device || kept.allocated_by != AllocatedBy::the_plan) continue;
    for (std::int64_t step = 0; step < kept.slots; ++step) {
      if (auto refusal = take(buffer, slot(buffer, step), compute_stream)) return refusal;
    }
  }
  return std::nullopt;
}

std::optional<Refusal> StepAllocator::allocate(int buffer, std::int64_t step, int stream) {
  return take(buffer, slot(buffer, step), stream);
}

void StepAllocator::release(int buffer, std::int64_t step) {
  std::optional<Held>& held = slot(buffer, step);
  if (!held) return;
  for (const int stream : streams_[static_cast<std::size_t>(buffer)]) {
    if (stream != held->stream) allocator_->record_stream(held->block.id, stream);
  }
  allocator_->free(held->block.id);
  held.reset();
}

std::optional<Refusal> StepAllocator::serve(const Operation& operation, std::int64_t step) {
  if (const auto* asks = std::get_if<Allocate>(&operation.action))
    return allocate(asks->buffer, step, operation.stream);
  if (const auto* gives = std::get_if<Release>(&operation.action)) release(gives->buffer, step);
  if (std::holds_alternative<EmptyCache>(operation.action)) empty_cache();
  return std::nullopt;
}

void StepAllocator::begin_capture() {
  allocator_->begin_capture(pool_of_graphs, {compute_stream});
}

void StepAllocator::end_capture() {
  allocator_->end_capture(pool_of_graphs);
}

Address StepAllocator::address(int buffer, std::int64_t step) const {
  const std::optional<Held>& held = slot(buffer, step);
  return held ? held->block.address : 0;
}

std::vector<const Operation*> served_by_capture(const StepPlan& plan) {
  std::vector<const Operation*> served;
  if (!plan.allocator) return served;
  for (const Operation& operation : plan.operations) {
    const bool acts = std::holds_alternative<Allocate>(operation.action) ||
                      std::holds_alternative<Release>(operation.action);
    if (operation.captured && acts) served.push_back(&operation);
  }
  return served;
}

bool frees_depend_on_streams(const StepPlan& plan) {
  const auto streams = streams_of_buffers(plan);
  for (std::size_t buffer = 0; buffer < plan.buffers.size(); ++buffer) {
    const bool comes_and_goes = plan.buffers[buffer].allocated_by == AllocatedBy::step_allocator;
    if (comes_and_goes && streams[buffer].size() > 1) return true;
  }
  return false;
}

std::string in_words(const Refusal& refusal, const std::string& buffer) {
  std::string words = "cannot allocate " + size_text(refusal.requested_bytes) + " for '" + buffer +
                      "': " + size_text(refusal.live_bytes) + " are live of " +
                      size_text(refusal.reserved_bytes) + " reserved";
  if (refusal.cap_bytes) words += " under a cap of " + size_text(*refusal.cap_bytes);
  words += ", " + size_text(refusal.free_inside_bytes) + " of them are free, the largest piece " +
           size_text(refusal.largest_usable_bytes);
  if (refusal.by == RefusedBy::device)
    words += ", and the device has " + size_text(refusal.device_free_bytes);
  return words;
}

std::string way_out(const Refusal& refusal) {
  const bool splintered = refusal.free_inside_bytes >= refusal.rounded_bytes;
  if (splintered) {
    return "so much is free, but in pieces: batches that begin with the largest "
           "('batch.largest_first') or expandable segments ('alloc.with = \"expandable\"') do not "
           "splinter it";
  }
  if (refusal.by == RefusedBy::cap) return "raise 'alloc.cap', or lower 'batch.size'";
  return "lower 'batch.size', or trade time for memory";
}

}  // namespace stepgate
