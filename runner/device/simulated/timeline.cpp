// SPDX-License-Identifier: MIT
#include "device/simulated/timeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/seconds.h"
#include "device/device.h"
#include "device/loader.h"
#include "device/simulated/kernel_time.h"
#include "kernels/catalogue.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

Nanoseconds scaled(Nanoseconds time, double factor) {
  return static_cast<Nanoseconds>(std::llround(static_cast<double>(time) * factor));
}

// Factor by which busy workers are slower because they share the processors with each other and
// with the thread that issues the step. No more of them work at once than batches are ahead.
double wait_for_processors(const LoaderKnobs& loader, const HostCosts& host) {
  const auto threads = static_cast<double>(std::min(loader.workers, loader.depth) + 1);
  return std::max(1.0, threads / static_cast<double>(host.processors));
}

}  // namespace

Timeline::Timeline(const StepPlan& plan, const DeviceProfile& profile, const LoadDraw& draw,
                   Nanoseconds start)
    : plan_(plan),
      profile_(profile),
      first_step_(draw.first_step),
      loader_seed_(loader_seed(plan, draw)),
      pages_(plan),
      memory_(profile.memory_bytes),
      pool_(plan.keep_bytes),
      streams_(plan.streams.size(), 0),
      step_ends_(static_cast<std::size_t>(plan.steps_in_flight), 0),
      stamps_(static_cast<std::size_t>(plan.telemetry.capacity), 0),
      kernel_times_(plan.operations.size(), 0),
      worker_free_(static_cast<std::size_t>(plan.loader.workers),
                   start + nanoseconds_of(plan.loader.start_us)),
      communicators_(static_cast<std::size_t>(plan.ranks.communicators), 0),
      ctas_(ctas_of_collectives(profile, plan.ranks)),
      contention_(contention_of(profile, plan.ranks.count)),
      taken_(static_cast<std::size_t>(std::max<std::int64_t>(plan.loader.depth, 1)), start) {
  for (const Event& event : plan.events)
    events_.emplace_back(static_cast<std::size_t>(event.slots), 0);
  if (contention_.collective_stretch > 1)
    kernels_beside_ = kernels_beside_collectives(plan, profile);
  start_at(start);
  if (!plan.allocator) return;
  served_.emplace(plan, memory_);
  if (const auto refusal = served_->take_kept())
    throw DeviceError(in_words(*refusal, "what stays from step to step") + "; " +
                      way_out(*refusal));
  capture_allocations();
}

void Timeline::start_at(Nanoseconds now) {
  host_ = std::max(host_, now);
}

void Timeline::queue_after(Nanoseconds end) {
  Nanoseconds& compute = streams_[compute_stream];
  compute = std::max(compute, end);
}

void Timeline::drain() {
  wait_until(all_work_end());
  pool_.wait();
}

Nanoseconds Timeline::stamp(std::int64_t step) const {
  return stamps_[static_cast<std::size_t>(step) % stamps_.size()];
}

void Timeline::begin_step(std::int64_t step, const StepNoise& noise) {
  noise_ = noise;
  graph_issued_ = false;
  const auto open = std::ranges::find_if(
      communication_, [&](const Interval& collective) { return collective.end > host_; });
  communication_.erase(communication_.begin(), open);
  if (step >= first_step_) throttle(step);
  pass_host(noise.host_extra);
}

std::optional<Nanoseconds> Timeline::issue(std::size_t index, std::int64_t step) {
  const Operation& operation = plan_.operations[index];
  const std::int64_t acted_for = step + operation.ahead;
  if (!acts_for(operation, acted_for, first_step_)) return std::nullopt;
  recorder_.begin_span(static_cast<int>(index), step, acted_for, host_);
  issue(operation, acted_for);
  if (meeting_ != nullptr) return came_;  // the span ends when they have met
  recorder_.end_span(host_);
  return std::nullopt;
}

void Timeline::end_step(std::int64_t step) {
  if (step >= first_step_)
    step_ends_[static_cast<std::size_t>(step) % step_ends_.size()] = compute_end();
}

void Timeline::throttle(std::int64_t step) {
  const Nanoseconds oldest = step_ends_[static_cast<std::size_t>(step) % step_ends_.size()];
  if (oldest <= host_) return;
  recorder_.begin_span(-1, step, step, host_);
  recorder_.begin_call(call_of(HostWaits{WaitFor::event}), host_);
  wait_until(oldest, Processor::given_up);
  recorder_.end_call(host_);
  recorder_.end_span(host_);
}

void Timeline::issue(const Operation& operation, std::int64_t step) {
  struct Issue {
    Timeline& self;
    const Operation& operation;
    std::int64_t step;

    void operator()(const LaunchKernel& launch) const { self.launch(operation, launch, step); }
    void operator()(const CopyBytes& copy) const { self.copy(operation, copy); }
    void operator()(const FillZero& fill) const { self.fill(operation, fill); }
    void operator()(const HostCopies& copy) const { self.copy_on_host(copy, step); }
    void operator()(const Prefetch& prefetch) const { self.prefetch(operation, prefetch, step); }
    void operator()(const Allocate& allocate) const { self.allocate(operation, allocate, step); }
    void operator()(const Release& release) const { self.release(operation, release, step); }
    void operator()(const EmptyCache&) const { self.empty_cache(); }
    void operator()(const RegisterHost& lock) const { self.register_host(lock); }
    void operator()(const UnregisterHost& unlock) const { self.unregister_host(unlock); }
    void operator()(const RecordEvent& record) const { self.record_event(operation, record, step); }
    void operator()(const StreamWaitsEvent& waits) const {
      self.stream_waits(operation, waits, step);
    }
    void operator()(const HostWaits& waits) const { self.wait(operation, waits, step); }
    void operator()(const TakeBatch&) const { self.take_batch(step); }
    void operator()(const HostWork& work) const { self.pass_host(work.nanoseconds_of_step(step)); }
    void operator()(const Collective& collective) const { self.come_to(operation, collective); }
  };
  visit_action(Issue{*this, operation, step}, operation.action);
}

void Timeline::pass_host(Nanoseconds cost) {
  host_ += scaled(cost, noise_.host);
}

Nanoseconds Timeline::scaled_for_device(Nanoseconds cost) const {
  return scaled(cost, noise_.device);
}

// Records a call whose only effect is its cost in host time.
void Timeline::call(const CallMade& made, Nanoseconds cost) {
  recorder_.begin_call(made, host_);
  pass_host(cost);
  recorder_.end_call(host_);
}

// Time from the end of the work to the return of a wait that has lasted `waited`. A blocking wait
// gives up the processor: it returned 24, 54 and 495 us late after waits of 20 us, 200 us and 2 ms
// on an H200's host. Spinning and yielding returned 8 to 9 us late whatever the wait.
Nanoseconds Timeline::wake_up_time(Nanoseconds waited) const {
  constexpr Nanoseconds interrupt = 12'000;
  constexpr Nanoseconds of_the_wait = 5;  // a fifth
  const Nanoseconds wake_up = profile_.host.wake_up_nanoseconds;
  return plan_.wait_style == SyncWait::block ? wake_up + interrupt + waited / of_the_wait : wake_up;
}

// A wait for work that is already done returns at once.
void Timeline::wait_until(Nanoseconds when, Processor processor) {
  const Nanoseconds begin = host_;
  if (when > host_) host_ = when + wake_up_time(when - host_);
  waited_ += host_ - begin;
  if (processor == Processor::given_up) idle_ += host_ - begin;
}

// Returns when the operation may start on its stream: after the host's call, and after the work
// queued in the stream and in streams that synchronise implicitly with it.
Nanoseconds Timeline::ready(const Operation& operation) {
  Nanoseconds queued = streams_[static_cast<std::size_t>(operation.stream)];
  for (std::size_t other = 0; other < streams_.size(); ++other) {
    if (wait_for_each_other(stream_at(plan_, operation.stream), plan_.streams[other]))
      queued = std::max(queued, streams_[other]);
  }
  return std::max(queued, host_);
}

void Timeline::finish(const Operation& operation, Nanoseconds end) {
  streams_[static_cast<std::size_t>(operation.stream)] = end;
}

void Timeline::finish_work(const Operation& operation, const WorkSeen& work, Nanoseconds begin,
                           Nanoseconds end) {
  finish(operation, end);
  recorder_.work(work, operation, begin, end);
}

// Launches the graph with the first captured operation of a step. Returns when the device may
// start.
Nanoseconds Timeline::launch_graph() {
  if (graph_issued_) return host_;
  graph_issued_ = true;
  pass_host(plan_.launch_host_nanoseconds);
  call({CallKind::graph_launch, "cudaGraphLaunch"}, profile_.host.graph_launch_nanoseconds);
  return host_ + profile_.compute.launch_latency_nanoseconds;
}

Nanoseconds Timeline::time_of(const Operation& operation, const LaunchKernel& launch,
                              Nanoseconds floor) {
  Nanoseconds& time = kernel_times_[static_cast<std::size_t>(&operation - plan_.operations.data())];
  if (time == 0) time = kernel_time(profile_, launch, floor);
  return time;
}

void Timeline::launch(const Operation& operation, const LaunchKernel& launch, std::int64_t step) {
  Nanoseconds floor = profile_.compute.kernel_floor_nanoseconds;
  Nanoseconds earliest = 0;
  if (operation.captured) {
    floor = profile_.compute.graph_node_floor_nanoseconds;
    earliest = launch_graph();
  } else {
    const bool gemm = kernel(launch.kernel).library.is_gemm();
    const auto& replacement = kernel(launch.kernel).replacement;
    pass_host(plan_.launch_host_nanoseconds);
    for (std::int64_t call_of_it = 0; call_of_it < (replacement ? replacement->launches : 1);
         ++call_of_it) {
      call({CallKind::launch, gemm ? "cudaLaunchKernelExC" : "cudaLaunchKernel"},
           gemm ? profile_.host.gemm_nanoseconds : profile_.host.launch_nanoseconds);
    }
    earliest = host_ + profile_.compute.launch_latency_nanoseconds;
  }
  const Nanoseconds start = std::max(ready(operation), earliest);
  const Nanoseconds time = time_of(operation, launch, floor);
  const Nanoseconds alone = time + fault_in(launch, step, start);
  const Nanoseconds end = end_beside_collectives(launch, start, scaled_for_device(alone));
  const Nanoseconds begin =
      start + scaled_for_device(pause_before(launch, floor, time, operation.captured));
  finish_work(operation, {.kind = WorkKind::kernel, .name = launch.kernel.name()}, begin, end);
  for (const BufferUse& use : launch.operands) {
    if (use.buffer == plan_.telemetry.stamps)
      stamps_[static_cast<std::size_t>(step) % stamps_.size()] = end;
  }
}

void Timeline::copy(const Operation& operation, const CopyBytes& copy) {
  const MemoryKind from = buffer(copy.from.buffer).memory;
  const MemoryKind to = buffer(copy.to.buffer).memory;
  const std::int64_t bytes = copy.to.bytes;
  const WorkSeen work{
      .kind = WorkKind::copy, .bytes = bytes, .from = copy_end_of(from), .to = copy_end_of(to)};
  if (operation.captured) launch_graph();
  if (!operation.captured) recorder_.begin_call(call_of(plan_, copy), host_);
  if (!operation.captured) pass_host(profile_.host.copy_call_nanoseconds);
  if (to == MemoryKind::device && from == MemoryKind::device) {
    const double seconds =
        2.0 * static_cast<double>(bytes) / profile_.compute.memory_bytes_per_second;
    const auto duration = static_cast<Nanoseconds>(seconds * nanoseconds_per_second);
    const Nanoseconds begin = ready(operation);
    finish_work(operation, work, begin,
                begin + profile_.compute.kernel_floor_nanoseconds + scaled_for_device(duration));
  } else {
    const Nanoseconds waits_until = transfer(operation, copy, work);
    if (waits_until > 0) wait_until(waits_until);
  }
  if (!operation.captured) recorder_.end_call(host_);
}

// Models a copy over the bus. Returns the time until which the host stays in the call; 0 when the
// call returns at once.
Nanoseconds Timeline::transfer(const Operation& operation, const CopyBytes& copy,
                               const WorkSeen& work) {
  const bool to_device = work.to == CopyEnd::device;
  Nanoseconds& engine = to_device ? to_device_engine_ : from_device_engine_;
  Nanoseconds duration = profile_.pinned.of(work.bytes);
  bool waits = copy.host_waits;
  if (is_pageable(plan_, copy)) {
    // The driver copies a part into its own pinned memory at once, whatever the stream does. The
    // rest, and every copy to the host, blocks the host until it is done.
    const std::int64_t staged = to_device ? std::min(work.bytes, profile_.staging_bytes) : 0;
    const Nanoseconds staging = staged > 0 ? profile_.pageable.of(staged) : 0;
    pass_host(staging);
    waits = waits || staged < work.bytes;
    if (staged < work.bytes) duration = profile_.pageable.of(work.bytes) - staging;
  }
  const Nanoseconds begin = std::max(ready(operation), engine);
  engine = begin + scaled_for_device(duration);
  finish_work(operation, work, begin, engine);
  return waits ? engine : 0;
}

void Timeline::fill(const Operation& operation, const FillZero& fill) {
  if (operation.captured) {
    launch_graph();
  } else {
    call({CallKind::fill, "cudaMemsetAsync"}, profile_.host.copy_call_nanoseconds);
  }
  const double seconds =
      static_cast<double>(fill.what.bytes) / profile_.compute.memory_bytes_per_second;
  const auto duration = static_cast<Nanoseconds>(seconds * nanoseconds_per_second);
  const Nanoseconds begin = ready(operation);
  finish_work(
      operation, {.kind = WorkKind::fill, .bytes = fill.what.bytes}, begin,
      begin + std::max(profile_.compute.kernel_floor_nanoseconds, scaled_for_device(duration)));
}

// A captured event is an edge of the graph and costs no call.
void Timeline::issue_event(const Operation& operation, const char* name) {
  if (operation.captured) {
    launch_graph();
  } else {
    call({CallKind::other, name}, profile_.host.event_nanoseconds);
  }
}

void Timeline::record_event(const Operation& operation, const RecordEvent& record,
                            std::int64_t step) {
  issue_event(operation, "cudaEventRecord");
  event_at(record.event, step) = ready(operation);
}

void Timeline::stream_waits(const Operation& operation, const StreamWaitsEvent& waits,
                            std::int64_t step) {
  issue_event(operation, "cudaStreamWaitEvent");
  finish(operation, std::max(ready(operation), event_at(waits.event, step)));
}

void Timeline::wait(const Operation& operation, const HostWaits& waits, std::int64_t step) {
  recorder_.begin_call(call_of(waits), host_);
  switch (waits.what) {
    case WaitFor::device:
      wait_until(all_work_end());
      break;
    case WaitFor::stream:
      wait_until(ready(operation));
      break;
    case WaitFor::event:
      wait_until(event_at(waits.event, step));
      break;
    case WaitFor::poll:
      wait_until(event_at(waits.event, step), Processor::held);
      break;
  }
  // Giving a chunk back takes about as long as growing by one (an H100: 69 and 61 us for one chunk,
  // 1.5 us per MiB for many).
  if (waits.what != WaitFor::poll) pass_host(pool_.wait() * profile_.host.pool_grow_nanoseconds);
  recorder_.end_call(host_);
}

Nanoseconds Timeline::all_work_end() const {
  return *std::max_element(streams_.begin(), streams_.end());
}

void Timeline::take_batch(std::int64_t step) {
  Nanoseconds cost = loading_time(plan_.loader, loader_seed_, step).count();
  if (plan_.loader.depth == 0) {
    host_ += cost;
    waited_ += cost;
    if (!plan_.loader.busy) idle_ += sleep_within(std::chrono::nanoseconds(cost)).count();
    return;
  }
  if (plan_.loader.busy) cost = scaled(cost, wait_for_processors(plan_.loader, profile_.host));
  if (step != first_step_ && restarts_before(plan_.loader, step)) {
    std::ranges::fill(worker_free_, host_ + nanoseconds_of(plan_.loader.start_us));
    std::ranges::fill(taken_, host_);
  }
  // The worker that is free first makes the batch, as soon as the queue has a free place for it.
  Nanoseconds& place = taken_[static_cast<std::size_t>(step) % taken_.size()];
  Nanoseconds& worker = *std::min_element(worker_free_.begin(), worker_free_.end());
  worker = std::max(worker, place) + cost;
  const Nanoseconds begin = host_;
  host_ = std::max(host_, worker);
  waited_ += host_ - begin;
  idle_ += host_ - begin;
  place = host_;
}

Nanoseconds& Timeline::event_at(int event, std::int64_t step) {
  std::vector<Nanoseconds>& slots = events_[static_cast<std::size_t>(event)];
  return slots[static_cast<std::size_t>(step) % slots.size()];
}

}  // namespace stepgate
