// SPDX-License-Identifier: MIT
#include "device/simulated/timeline.h"

#include <algorithm>
#include <cmath>

#include "device/loader.h"
#include "kernels/catalogue.h"
#include "plan/access.h"
#include "support/require.h"

namespace stepgate {
namespace {

constexpr std::int64_t mebibyte = 1024 * 1024;
constexpr double nanoseconds_per_second = 1e9;

Nanoseconds scaled(Nanoseconds time, double factor) {
  return static_cast<Nanoseconds>(std::llround(static_cast<double>(time) * factor));
}

double flops_per_second(const ComputeCosts& costs, DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return costs.fp32_flops_per_second;
    case DType::tf32:
      return costs.tf32_flops_per_second;
    case DType::bf16:
      return costs.bf16_flops_per_second;
  }
  require(false, "every dtype has a rate");
  return 0;
}

}  // namespace

Timeline::Timeline(const StepPlan& plan, const DeviceProfile& profile, Nanoseconds start)
    : plan_(plan),
      profile_(profile),
      step_ends_(static_cast<std::size_t>(plan.run_ahead_steps), 0),
      stamps_(static_cast<std::size_t>(plan.bookkeeping.capacity), 0),
      worker_free_(static_cast<std::size_t>(plan.loader.workers), start),
      taken_(static_cast<std::size_t>(std::max<std::int64_t>(plan.loader.depth, 1)), start) {
  for (const Event& event : plan.events)
    events_.emplace_back(static_cast<std::size_t>(event.slots), 0);
  start_at(start);
}

void Timeline::start_at(Nanoseconds now) {
  host_ = std::max(host_, now);
}

void Timeline::drain() {
  wait_until(all_work_end());
}

Nanoseconds Timeline::stamp(std::int64_t step) const {
  return stamps_[static_cast<std::size_t>(step) % stamps_.size()];
}

void Timeline::issue_step(std::int64_t step, const StepNoise& noise) {
  noise_ = noise;
  graph_issued_ = false;
  if (step >= 0) bound_run_ahead(step);
  pass_host(noise.host_extra);
  for (const Operation& operation : plan_.operations) {
    const std::int64_t acted_for = step + operation.ahead;
    if (acts_for(operation, acted_for)) issue(operation, acted_for);
  }
  if (step >= 0) step_ends_[static_cast<std::size_t>(step) % step_ends_.size()] = streams_[0];
}

void Timeline::bound_run_ahead(std::int64_t step) {
  const Nanoseconds oldest = step_ends_[static_cast<std::size_t>(step) % step_ends_.size()];
  if (oldest > host_) wait_until(oldest);
}

void Timeline::issue(const Operation& operation, std::int64_t step) {
  struct Issue {
    Timeline& self;
    const Operation& operation;
    std::int64_t step;

    void operator()(const LaunchKernel& launch) const { self.launch(operation, launch, step); }
    void operator()(const CopyBytes& copy) const { self.copy(operation, copy); }
    void operator()(const FillZero& fill) const { self.fill(operation, fill); }
    void operator()(const Allocate& allocate) const { self.allocate(operation, allocate); }
    void operator()(const Release& release) const { self.release(operation, release); }
    void operator()(const PageLock& lock) const {
      self.pass_host(self.profile_.host.page_lock_nanoseconds_per_mib *
                     bytes_of_buffer(lock.buffer) / mebibyte);
    }
    void operator()(const PageUnlock& unlock) const {
      self.wait_until(self.all_work_end());
      self.pass_host(self.profile_.host.page_unlock_nanoseconds_per_mib *
                     bytes_of_buffer(unlock.buffer) / mebibyte);
    }
    void operator()(const RecordEvent& record) const {
      self.pass_host(self.profile_.host.event_nanoseconds);
      self.event_at(record.event, step) = self.ready(operation);
    }
    void operator()(const StreamWaitsEvent& waits) const {
      self.pass_host(self.profile_.host.event_nanoseconds);
      self.finish(operation, std::max(self.ready(operation), self.event_at(waits.event, step)));
    }
    void operator()(const HostWaits& waits) const { self.wait(operation, waits, step); }
    void operator()(const TakeBatch&) const { self.take_batch(step); }
    void operator()(const HostWork& work) const { self.pass_host(work.nanoseconds); }

    std::int64_t bytes_of_buffer(int buffer) const {
      return self.plan_.buffers[static_cast<std::size_t>(buffer)].bytes;
    }
  };
  std::visit(Issue{*this, operation, step}, operation.action);
}

void Timeline::pass_host(Nanoseconds cost) {
  host_ += scaled(cost, noise_.host);
}

// A wait for work that is already done returns at once.
void Timeline::wait_until(Nanoseconds when) {
  const Nanoseconds begin = host_;
  if (when > host_) host_ = when + profile_.host.wake_up_nanoseconds;
  waited_ += host_ - begin;
}

// When the operation may start on its stream: after what is queued there and after the host's call.
// The legacy stream and the compute stream wait for each other.
Nanoseconds Timeline::ready(const Operation& operation) {
  const Nanoseconds compute = streams_[static_cast<int>(StreamName::compute)];
  const Nanoseconds legacy = streams_[static_cast<int>(StreamName::legacy)];
  const Nanoseconds own = streams_[static_cast<int>(operation.stream)];
  const Nanoseconds queued =
      operation.stream == StreamName::side ? own : std::max({own, compute, legacy});
  return std::max(queued, host_);
}

void Timeline::finish(const Operation& operation, Nanoseconds end) {
  streams_[static_cast<int>(operation.stream)] = end;
}

// Beside its work, a kernel takes what the shortest one takes.
Nanoseconds Timeline::kernel_time(const LaunchKernel& launch, Nanoseconds floor) const {
  if (launch.kernel == "spin") {
    return std::max(floor, static_cast<Nanoseconds>(launch.scalars[0] * 1000));
  }
  const ComputeCosts& costs = profile_.compute;
  const KernelWork work = kernel(launch.kernel).work(launch.shape, launch.dtype, launch.scalars);
  const double bytes = static_cast<double>(work.bytes_read + work.bytes_written);
  const double memory_seconds = bytes / costs.memory_bytes_per_second;
  double math_seconds = static_cast<double>(work.flops) / flops_per_second(costs, launch.dtype);
  if (launch.kernel == "matmul") math_seconds /= share_of_full_waves(launch.shape);
  return floor +
         static_cast<Nanoseconds>(std::max(memory_seconds, math_seconds) * nanoseconds_per_second);
}

// A product is cut into tiles, one multiprocessor works on one tile at a time, and the last wave of
// tiles takes as long as a full one (NVIDIA: Matrix Multiplication Background User's Guide).
double Timeline::share_of_full_waves(const KernelShape& shape) const {
  constexpr std::int64_t tile = 128;
  const std::int64_t tiles = (shape.rows + tile - 1) / tile * ((shape.columns + tile - 1) / tile);
  const std::int64_t waves = (tiles + profile_.multiprocessors - 1) / profile_.multiprocessors;
  const double useful = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  return useful / static_cast<double>(waves * profile_.multiprocessors * tile * tile);
}

void Timeline::launch(const Operation& operation, const LaunchKernel& launch, std::int64_t step) {
  Nanoseconds floor = profile_.compute.kernel_floor_nanoseconds;
  Nanoseconds latency = profile_.compute.launch_latency_nanoseconds;
  if (!operation.captured) {
    const bool product = launch.kernel == "matmul";
    pass_host(plan_.launch_host_nanoseconds +
              (product ? profile_.host.product_nanoseconds : profile_.host.launch_nanoseconds));
  } else {
    floor = profile_.compute.graph_node_floor_nanoseconds;
    if (graph_issued_) latency = 0;
    if (!graph_issued_)
      pass_host(plan_.launch_host_nanoseconds + profile_.host.graph_launch_nanoseconds);
    graph_issued_ = true;
  }
  const Nanoseconds start = std::max(ready(operation), host_ + latency);
  const Nanoseconds end = start + scaled(kernel_time(launch, floor), noise_.device);
  finish(operation, end);
  for (const BufferUse& use : launch.operands) {
    if (use.buffer == plan_.bookkeeping.stamps)
      stamps_[static_cast<std::size_t>(step) % stamps_.size()] = end;
  }
}

void Timeline::copy(const Operation& operation, const CopyBytes& copy) {
  const auto memory = [&](const BufferUse& use) {
    return plan_.buffers[static_cast<std::size_t>(use.buffer)].memory;
  };
  const bool to_device = memory(copy.to) == MemoryKind::device;
  const std::int64_t bytes = copy.to.bytes;
  pass_host(profile_.host.copy_call_nanoseconds);
  if (to_device && memory(copy.from) == MemoryKind::device) {
    const double seconds =
        2.0 * static_cast<double>(bytes) / profile_.compute.memory_bytes_per_second;
    const auto duration = static_cast<Nanoseconds>(seconds * nanoseconds_per_second);
    return finish(operation, ready(operation) + profile_.compute.kernel_floor_nanoseconds +
                                 scaled(duration, noise_.device));
  }
  Nanoseconds& engine = to_device ? to_device_engine_ : from_device_engine_;
  const bool pageable = is_pageable(plan_, copy);
  Nanoseconds duration = profile_.pinned.of(bytes);
  bool waits = copy.host_waits;
  if (pageable) {
    // The driver copies a part into its own pinned memory at once, whatever the stream does. What
    // is left, and everything that comes back, keeps the host in the call until it is done.
    const std::int64_t staged = to_device ? std::min(bytes, profile_.staging_bytes) : 0;
    const Nanoseconds staging = staged > 0 ? profile_.pageable.of(staged) : 0;
    pass_host(staging);
    waits = waits || staged < bytes;
    if (staged < bytes) duration = profile_.pageable.of(bytes) - staging;
  }
  engine = std::max(ready(operation), engine) + scaled(duration, noise_.device);
  finish(operation, engine);
  if (waits) wait_until(engine);
}

void Timeline::fill(const Operation& operation, const FillZero& fill) {
  pass_host(profile_.host.copy_call_nanoseconds);
  const double seconds =
      static_cast<double>(fill.what.bytes) / profile_.compute.memory_bytes_per_second;
  const auto duration = static_cast<Nanoseconds>(seconds * nanoseconds_per_second);
  finish(operation, ready(operation) + std::max(profile_.compute.kernel_floor_nanoseconds,
                                                scaled(duration, noise_.device)));
}

void Timeline::allocate(const Operation& operation, const Allocate& allocate) {
  if (operation.captured) return;
  if (plan_.buffers[static_cast<std::size_t>(allocate.buffer)].allocated_by == AllocatedBy::cuda) {
    return pass_host(profile_.host.malloc_nanoseconds);
  }
  pass_host(pool_is_empty_ ? profile_.host.pool_grow_nanoseconds
                           : profile_.host.malloc_async_nanoseconds);
}

void Timeline::release(const Operation& operation, const Release& release) {
  if (operation.captured) return;
  if (plan_.buffers[static_cast<std::size_t>(release.buffer)].allocated_by == AllocatedBy::cuda) {
    wait_until(all_work_end());
    return pass_host(profile_.host.free_nanoseconds);
  }
  pass_host(profile_.host.malloc_async_nanoseconds);
  if (!plan_.keep_bytes) pool_is_empty_ = false;
}

// A pool that keeps nothing returns its memory whenever the host waits.
void Timeline::give_pool_back() {
  if (plan_.keep_bytes) pool_is_empty_ = true;
}

void Timeline::wait(const Operation& operation, const HostWaits& waits, std::int64_t step) {
  switch (waits.what) {
    case WaitFor::device:
      wait_until(all_work_end());
      break;
    case WaitFor::stream:
      wait_until(ready(operation));
      break;
    case WaitFor::event:
    case WaitFor::poll:
      wait_until(event_at(waits.event, step));
      break;
  }
  give_pool_back();
}

Nanoseconds Timeline::all_work_end() const {
  return *std::max_element(streams_.begin(), streams_.end());
}

void Timeline::take_batch(std::int64_t step) {
  const Nanoseconds cost = loading_time(plan_.loader, plan_.seed, step).count();
  if (plan_.loader.depth == 0) {
    host_ += cost;
    waited_ += cost;
    return;
  }
  // The worker that is free first makes the batch, as soon as there is a place for it.
  Nanoseconds& place = taken_[static_cast<std::size_t>(step) % taken_.size()];
  Nanoseconds& worker = *std::min_element(worker_free_.begin(), worker_free_.end());
  worker = std::max(worker, place) + cost;
  const Nanoseconds begin = host_;
  host_ = std::max(host_, worker);
  waited_ += host_ - begin;
  place = host_;
}

Nanoseconds& Timeline::event_at(int event, std::int64_t step) {
  std::vector<Nanoseconds>& slots = events_[static_cast<std::size_t>(event)];
  return slots[static_cast<std::size_t>(step) % slots.size()];
}

}  // namespace stepgate
