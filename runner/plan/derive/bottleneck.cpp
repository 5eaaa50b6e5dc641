// SPDX-License-Identifier: MIT
// Simulates some steps at rough speeds, with a clock for the host and one for each stream, and
// follows the critical path back from the end. Work that overlaps with longer work is not on that
// path.
#include <algorithm>
#include <array>
#include <vector>

#include "base/text/units.h"
#include "plan/analyse/access.h"
#include "plan/count/rough_speed.h"
#include "plan/derive/anchors.h"

namespace stepgate {
namespace {

// Seconds spent on each bottleneck.
using Times = std::array<double, 7>;

double& at(Times& times, Bottleneck bottleneck) {
  return times[static_cast<std::size_t>(bottleneck)];
}

constexpr std::int64_t played_steps = 64;  // many, so that the first steps hardly matter
constexpr double nanosecond = 1e-9;
constexpr double microsecond = 1e-6;
constexpr double pinned_bytes_per_second = 50e9;
constexpr double pageable_bytes_per_second = 12e9;
constexpr double host_bytes_per_second = 10e9;  // one thread, memory to memory
constexpr double call_seconds = 2e-6;           // a launch, copy, event or wait
constexpr double kernel_floor_seconds = 2e-6;   // the duration of a kernel with almost no work
constexpr double graph_node_seconds = 1e-6;
constexpr double allocation_seconds = 50e-6;
constexpr double register_seconds_per_byte = 30e-6 / mebibyte;

Bottleneck gemms_in(DType dtype) {
  return dtype == DType::fp32   ? Bottleneck::fp32
         : dtype == DType::tf32 ? Bottleneck::tf32
                                : Bottleneck::bf16;
}

// A time on the rough clock, and how the time before it was spent. If several things were waited
// for, only the last one to end counts.
struct Moment {
  double seconds = 0;
  Times spent{};

  void add(double more, Bottleneck on) {
    seconds += more;
    at(spent, on) += more;
  }
  void wait_for(const Moment& other) {
    if (other.seconds > seconds) *this = other;
  }
};

class Played {
 public:
  explicit Played(const StepPlan& plan) : plan_(plan), streams_(plan.streams.size()) {
    for (const Event& event : plan.events)
      events_.emplace_back(static_cast<std::size_t>(event.slots));
  }

  void step(std::int64_t number) {
    for (const Operation& operation : plan_.operations) {
      operation_ = &operation;
      step_ = number + operation.ahead;
      if (step_ < 0) continue;
      // A rare operation is not simulated: its share is added to every step, without a wait.
      const bool is_rare = operation.every > played_steps;
      if (!is_rare && (step_ + 1) % operation.every != operation.turn) continue;
      share_ = is_rare ? 1.0 / static_cast<double>(operation.every) : 1;
      visit_action(*this, operation.action);
    }
  }

  Bottleneck bottleneck() {
    wait_for_device();
    const Times& spent = host_.spent;
    return static_cast<Bottleneck>(std::max_element(spent.begin(), spent.end()) - spent.begin());
  }

  void operator()(const LaunchKernel& launch) {
    call(operation_->captured
             ? graph_node_seconds
             : call_seconds + nanosecond * static_cast<double>(plan_.launch_host_nanoseconds));
    const auto [math, memory, latency] = rough_time_of(launch);
    const double longest = std::max({math, memory, latency});
    if (longest < kernel_floor_seconds) {
      work(kernel_floor_seconds, Bottleneck::launch);
    } else {
      work(longest, math == longest ? gemms_in(launch.dtype) : Bottleneck::hbm);
    }
  }
  void operator()(const CopyBytes& made) {
    call(call_seconds);
    const auto bytes = static_cast<double>(made.to.bytes);
    const bool within = buffer(made.to.buffer).memory == MemoryKind::device &&
                        buffer(made.from.buffer).memory == MemoryKind::device;
    const bool pageable = is_pageable(plan_, made);
    if (within) {
      work(2 * bytes / rough_bytes_per_second, Bottleneck::hbm);
    } else if (pageable) {
      work(bytes / pageable_bytes_per_second, Bottleneck::h2d_pageable);
    } else {
      work(bytes / pinned_bytes_per_second, Bottleneck::h2d_pinned);
    }
    if ((made.host_waits || pageable) && share_ == 1) host_.wait_for(stream());
  }
  void operator()(const FillZero& fill) {
    call(call_seconds);
    work(static_cast<double>(fill.what.bytes) / rough_bytes_per_second, Bottleneck::hbm);
  }
  void operator()(const HostCopies& made) {
    call(static_cast<double>(made.to.bytes) / host_bytes_per_second);
  }
  void operator()(const Prefetch& prefetch) {
    call(call_seconds);
    work(static_cast<double>(prefetch.what.bytes) / pinned_bytes_per_second,
         Bottleneck::h2d_pinned);
  }
  void operator()(const Allocate& allocate) { allocation(allocate.buffer); }
  void operator()(const Release& release) {
    if (buffer(release.buffer).allocated_by == AllocatedBy::cuda && share_ == 1) wait_for_device();
    allocation(release.buffer);
  }
  void operator()(const EmptyCache&) { call(call_seconds); }
  void operator()(const RegisterHost& lock) { register_host(lock.buffer); }
  void operator()(const UnregisterHost& unlock) { register_host(unlock.buffer); }
  void operator()(const RecordEvent& record) {
    call(call_seconds);
    event(record.event) = stream();
  }
  void operator()(const StreamWaitsEvent& wait) {
    call(call_seconds);
    if (share_ == 1) stream().wait_for(event(wait.event));
  }
  void operator()(const HostWaits& wait) {
    call(call_seconds);
    if (share_ != 1) return;
    switch (wait.what) {
      case WaitFor::device:
        return wait_for_device();
      case WaitFor::stream:
        return host_.wait_for(stream());
      case WaitFor::event:
      case WaitFor::poll:
        return host_.wait_for(event(wait.event));
    }
  }
  void operator()(const TakeBatch&) {
    const double wait = microsecond * plan_.loader.wait_us;
    if (plan_.loader.depth == 0) return call(wait);
    const auto& [every, start] = std::pair(plan_.loader.restart_every, plan_.loader.start_us);
    call(wait / static_cast<double>(plan_.loader.workers) +
         (every > 0 ? microsecond * start / static_cast<double>(every) : 0));
  }
  void operator()(const HostWork& work) {
    call(nanosecond * static_cast<double>(work.nanoseconds));
  }
  // Costs as much as a copy from and to memory; no anchor has a collective.
  void operator()(const Collective& collective) {
    call(operation_->captured ? graph_node_seconds : call_seconds);
    work(2 * static_cast<double>(payload_bytes(collective)) / rough_bytes_per_second,
         Bottleneck::hbm);
  }

 private:
  const Buffer& buffer(int index) const { return buffer_at(plan_, index); }
  Moment& stream() { return streams_[static_cast<std::size_t>(operation_->stream)]; }
  Moment& event(int index) {
    std::vector<Moment>& slots = events_[static_cast<std::size_t>(index)];
    return slots[static_cast<std::size_t>(step_) % slots.size()];
  }

  void call(double seconds) { host_.add(share_ * seconds, Bottleneck::launch); }

  // Work starts after its call, after earlier work of its stream, and after work of streams that
  // synchronise implicitly with it.
  void work(double seconds, Bottleneck on) {
    Moment& own = stream();
    own.wait_for(host_);
    for (std::size_t other = 0; other < streams_.size(); ++other) {
      if (wait_for_each_other(stream_at(plan_, operation_->stream), plan_.streams[other]))
        own.wait_for(streams_[other]);
    }
    own.add(share_ * seconds, on);
  }

  void wait_for_device() {
    for (const Moment& stream : streams_) host_.wait_for(stream);
  }

  void allocation(int index) {
    call(buffer(index).allocated_by == AllocatedBy::cuda ? allocation_seconds : call_seconds);
  }
  void register_host(int index) {
    call(register_seconds_per_byte * static_cast<double>(buffer(index).bytes));
  }

  const StepPlan& plan_;
  const Operation* operation_ = nullptr;
  std::int64_t step_ = 0;  // the step that the operation acts for
  double share_ = 1;
  Moment host_;
  std::vector<Moment> streams_;              // by stream
  std::vector<std::vector<Moment>> events_;  // [event][slot]
};

}  // namespace

Bottleneck bottleneck_of(const StepPlan& plan) {
  Played played(plan);
  for (std::int64_t step = 0; step < played_steps; ++step) played.step(step);
  return played.bottleneck();
}

}  // namespace stepgate
