// SPDX-License-Identifier: MIT
// The host side of each kind of operation: the work that it issues, and the conditions that it
// waits for.
#include "device/reference/host_thread.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/require.h"
#include "kernels/catalogue.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

// The memory of an operand without elements may be null, which memcpy refuses.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

HostThread::HostThread(const StepPlan& plan, SlotMemory& memory, StreamQueues& queues,
                       RankMeetings& meetings, std::int64_t first_step)
    : plan_(&plan),
      memory_(&memory),
      queues_(&queues),
      meetings_(&meetings),
      first_step_(first_step),
      step_(first_step - prefetch_depth(plan)) {
  for (const Event& event : plan.events) {
    records_.emplace_back(static_cast<std::size_t>(event.slots));
  }
}

void HostThread::go_on() {
  require(may_go_on() && !finished(), "only a host that may go on does");
  waits_until_ = nullptr;
  if (after_wait_) std::exchange(after_wait_, nullptr)();
  if (next_operation_ < plan_->operations.size()) {
    const Operation& operation = plan_->operations[next_operation_++];
    const std::int64_t acted_for = step_ + operation.ahead;
    if (acts_for(operation, acted_for, first_step_)) carry_out(operation, acted_for);
    return;
  }
  next_operation_ = 0;
  begin_step();
}

// The host may be steps_in_flight ahead: it enters step i when step i - steps_in_flight is done.
void HostThread::begin_step() {
  ++step_;
  compute_issued_.push_back(queues_->issued()[compute_stream]);
  if (static_cast<int>(compute_issued_.size()) < std::max(1, plan_->steps_in_flight)) return;
  const std::int64_t needed = compute_issued_.front();
  compute_issued_.pop_front();
  waits_until_ = [this, needed] { return queues_->reached(compute_stream, needed); };
}

void HostThread::carry_out(const Operation& operation, std::int64_t step_acted_for) {
  stream_ = operation.stream;
  acts_for_ = step_acted_for;
  if (operation.reads_gradients && sketches_ && acts_for_ == sketched_step_) sketch(operation);
  std::visit([this](const auto& action) { act(action); }, operation.action);
}

void HostThread::sketch(const Operation& operation) {
  issue([this, &operation, from = region_of(gradients_of(operation))] {
    for (const GradientPart& part : gradient_parts(*plan_, *operation.reads_gradients))
      add_part(part, from.begin(), plan_->dtype, sketches_->at(part.parameter));
  });
}

SharedMark HostThread::issue(std::function<void()> work, SharedMark after) {
  return queues_->issue(stream_, std::move(work), std::move(after));
}

HostThread::Region HostThread::region_of(const BufferUse& use) const {
  const SharedBlock block = memory_->block(use.buffer, acts_for_);
  require(use.offset_bytes >= 0 && use.bytes >= 0 &&
              use.offset_bytes + use.bytes <= static_cast<std::int64_t>(block->size()),
          "an operation stays within its buffer");
  return {block, use.offset_bytes, use.bytes};
}

void HostThread::act(const LaunchKernel& launch) {
  std::vector<Region> regions;
  for (const BufferUse& use : launch.operands) regions.push_back(region_of(use));
  const Kernel& row = kernel(launch.kernel);
  require(regions.size() == row.operands.size(), "a launch has its kernel's operands");
  const bool audited = is_audited();
  issue([this, audited, &operation = plan_->operations[next_operation_ - 1], step = acts_for_,
         &launch, &row, regions = std::move(regions)] {
    std::vector<void*> buffers;
    for (const Region& region : regions) buffers.push_back(region.begin());
    const auto run = [&](const Kernel& which) {
      which.reference({launch.shape, launch.dtype, launch.attributes, buffers});
    };
    if (!audited) return run(row);
    AuditedLaunch own{.launch = launch,
                      .operands = {},
                      .copy = copy_bytes,
                      .run_own = [&] { run(row); },
                      .run_catalogue = [&] { run(kernel(row.name)); }};
    for (const Region& region : regions) own.operands.push_back(region.begin());
    audits_->push_back({.step = step,
                        .operation = operation.name,
                        .kernel = std::string(row.name),
                        .difference = difference_by_audit(own)});
  });
}

bool HostThread::is_audited() const {
  return audits_ && acts_for_ == audited_step_ &&
         std::ranges::binary_search(audited_, static_cast<int>(next_operation_) - 1);
}

void HostThread::act(const CopyBytes& copy) {
  const Region to = region_of(copy.to);
  const Region from = region_of(copy.from);
  require(to.bytes == from.bytes, "a copy has one size");
  const SharedMark mark = issue([to, from] {
    if (to.bytes > 0) std::memmove(to.begin(), from.begin(), static_cast<std::size_t>(to.bytes));
  });
  const bool pageable = memory_->is_pageable(copy.to.buffer, acts_for_) ||
                        memory_->is_pageable(copy.from.buffer, acts_for_);
  if (copy.host_waits || pageable) wait_for(mark);
}

void HostThread::act(const FillZero& fill) {
  issue([what = region_of(fill.what)] { std::fill_n(what.begin(), what.bytes, std::byte{0}); });
}

// The host copies at once, whatever the streams have reached: if a wait is missing, this changes
// what they read.
void HostThread::act(const HostCopies& copy) {
  const Region to = region_of(copy.to);
  const Region from = region_of(copy.from);
  require(to.bytes == from.bytes, "a copy has one size");
  std::copy_n(from.begin(), from.bytes, to.begin());
}

// The placement of pages changes no number, so a prefetch does nothing here.
void HostThread::act(const Prefetch&) {
  issue([] {});
}

// The collective runs in stream order: the stream arrives at the meeting, and goes on when all
// ranks have arrived.
void HostThread::act(const Collective& collective) {
  const Region to = region_of(collective.to);
  const Region from = region_of(collective.from);
  const auto meeting = meetings_->next(plan_->ranks.rank, collective.communicator);
  issue([meeting, rank = plan_->ranks.rank, &collective, to, from] {
    meeting->come(rank, collective, from.begin(), to.begin());
  });
  issue([] {}, meeting->over());
}

void HostThread::act(const RecordEvent& record) {
  last_record(record.event) = issue([] {});
}

void HostThread::act(const StreamWaitsEvent& wait) {
  issue([] {}, last_record(wait.event));
}

void HostThread::act(const Allocate& allocation) {
  const SharedBlock fresh = memory_->allocate(allocation.buffer, acts_for_);
  if (plan_->buffers[allocation.buffer].allocated_by == AllocatedBy::cuda) return;
  // The garbage is written in stream order, so data that other streams write before the
  // allocation's turn is lost.
  issue([this, fresh] { memory_->fill_with_garbage(*fresh); });
}

void HostThread::act(const Release& release) {
  const SharedBlock old = memory_->block(release.buffer, acts_for_);
  if (plan_->buffers[release.buffer].allocated_by != AllocatedBy::cuda) {
    issue([this, old] { memory_->fill_with_garbage(*old); });
    return;
  }
  // cudaFree waits for the device, so no operation that was issued before it may see the garbage.
  wait_for_device();
  after_wait_ = [this, old] { memory_->fill_with_garbage(*old); };
}

void HostThread::act(const RegisterHost& lock) {
  memory_->register_host(lock.buffer, acts_for_);
}

void HostThread::act(const UnregisterHost& unlock) {
  memory_->unregister_host(unlock.buffer, acts_for_);
  wait_for_device();
}

SharedMark& HostThread::last_record(int event) {
  auto& slots = records_.at(static_cast<std::size_t>(event));
  return slots[static_cast<std::size_t>(acts_for_) % slots.size()];
}

void HostThread::wait_for(const SharedMark& mark) {
  if (mark) waits_until_ = [mark] { return mark->done; };
}

void HostThread::wait_for_device() {
  waits_until_ = [this] { return queues_->idle(); };
}

void HostThread::act(const HostWaits& wait) {
  switch (wait.what) {
    case WaitFor::device:
      return wait_for_device();
    case WaitFor::stream: {
      const std::int64_t issued = queues_->issued()[static_cast<std::size_t>(stream_)];
      waits_until_ = [this, stream = stream_, issued] { return queues_->reached(stream, issued); };
      return;
    }
    case WaitFor::event:
    case WaitFor::poll:
      return wait_for(last_record(wait.event));
  }
}

}  // namespace stepgate
