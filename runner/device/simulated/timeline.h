// SPDX-License-Identifier: MIT
// The times of all events of one loaded step on the simulated machine. Operations are issued in
// program order and streams are first in, first out, so every time follows from earlier ones; no
// event queue is needed. With several ranks, each has a timeline, and all issue an operation before
// any issues the next (rank_timelines.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/stats/interval_union.h"
#include "device/device.h"
#include "device/profile.h"
#include "device/simulated/collective_time.h"
#include "device/simulated/trace_recorder.h"
#include "plan/allocate/async_pool.h"
#include "plan/allocate/step_allocator.h"
#include "plan/allocators/simulated_memory.h"
#include "plan/step_plan.h"

namespace stepgate {

using Nanoseconds = std::int64_t;

// Where the pages of a plan's managed memory are: on the host or on the device.
enum class PagesAre { on_host, on_device };

class ManagedPages {
 public:
  // Number of bytes that one page fault of the device migrates.
  static constexpr std::int64_t page_bytes = std::int64_t{64} << 10;

  // Initially all pages are on the host, which wrote them last.
  explicit ManagedPages(const StepPlan&);

  // Moves this part of the slot that the step uses to the host or the device. Returns the number of
  // pages that had to move; 0 for memory that is not managed.
  std::int64_t bring(const BufferUse&, std::int64_t step, PagesAre);

  // Whether any page of the slot that the step uses is on the host; false for memory that is not
  // managed.
  bool are_on_host(const BufferUse&, std::int64_t step) const;

 private:
  std::vector<std::vector<std::vector<PagesAre>>> pages_;  // by buffer, slot, page
};

// Multipliers of one step, made by the device from its noise.
struct StepNoise {
  double host = 1;
  double device = 1;
  Nanoseconds host_extra = 0;
};

class Timeline {
 public:
  // Begins with LoadDraw::first_step.
  Timeline(const StepPlan&, const DeviceProfile&, const LoadDraw&, Nanoseconds start);

  std::size_t operations() const { return plan_.operations.size(); }

  // Each step calls begin_step, issues its operations in order, and calls end_step.
  void begin_step(std::int64_t step, const StepNoise&);
  // Issues an operation if it acts at this step. For a collective, returns when this rank arrives;
  // all ranks must call `meet` before the next operation is issued.
  std::optional<Nanoseconds> issue(std::size_t operation, std::int64_t step);
  // Starts the collective that was issued last at `last`, when the last of its ranks arrives.
  void meet(Nanoseconds last);
  void end_step(std::int64_t step);

  void start_at(Nanoseconds now);

  // The host waits for all work.
  void drain();

  // Work that is queued from now on starts after `end`, as if queued after another step's work on
  // the same stream.
  void queue_after(Nanoseconds end);

  // Statistics of the step's allocator; null where it has none.
  const MemoryStatistics* allocator_statistics() const {
    return served_ ? &served_->statistics() : nullptr;
  }

  // Device memory that the step has taken, as a driver would report it. It is the memory that the
  // step's allocator has reserved; or the plan's own buffers, separate allocations and the pool.
  std::int64_t driver_bytes() const;

  // The recorder receives all activity of host and device, and records once it is started.
  TraceRecorder& recorder() { return recorder_; }

  Nanoseconds host_now() const { return host_; }
  Nanoseconds host_waited() const { return waited_; }
  // The part of host_waited() that is not processor time of the step: asleep, or throttled by the
  // runner.
  Nanoseconds host_idle() const { return idle_; }
  // End of the work that is queued on the compute stream.
  Nanoseconds compute_end() const { return streams_[compute_stream]; }
  // The time of a step's stamp, for steps issued so far; indexed by step modulo the plan's ring.
  Nanoseconds stamp(std::int64_t step) const;

 private:
  void issue(const Operation&,
             std::int64_t step);  // `step` is the step that the operation acts for
  void throttle(std::int64_t step);
  void launch(const Operation&, const LaunchKernel&, std::int64_t step);
  // Time of the kernel alone; `floor` is the time of the shortest kernel.
  Nanoseconds time_of(const Operation&, const LaunchKernel&, Nanoseconds floor);
  void copy(const Operation&, const CopyBytes&);
  Nanoseconds transfer(const Operation&, const CopyBytes&, const WorkSeen&);
  void fill(const Operation&, const FillZero&);
  void copy_on_host(const HostCopies&, std::int64_t step);
  void prefetch(const Operation&, const Prefetch&, std::int64_t step);
  Nanoseconds fault_in(const LaunchKernel&, std::int64_t step, Nanoseconds begin);
  std::int64_t bytes_of_pages(std::int64_t pages, const BufferUse&) const;
  void allocate(const Operation&, const Allocate&, std::int64_t step);
  void release(const Operation&, const Release&, std::int64_t step);
  void empty_cache();
  void catch_up_allocator();
  void serve(const Operation&, const Allocate&, std::int64_t step);
  void pay_driver(const MemoryStatistics& before);
  void capture_allocations();
  bool take_from_pool(const Operation&, const Buffer&);
  void wait(const Operation&, const HostWaits&, std::int64_t step);
  void register_host(const RegisterHost&);
  void unregister_host(const UnregisterHost&);
  void issue_event(const Operation&, const char* name);
  void record_event(const Operation&, const RecordEvent&, std::int64_t step);
  void stream_waits(const Operation&, const StreamWaitsEvent&, std::int64_t step);
  void take_batch(std::int64_t step);
  void come_to(const Operation&, const Collective&);
  Nanoseconds end_beside_collectives(const LaunchKernel&, Nanoseconds begin,
                                     Nanoseconds alone) const;

  void pass_host(Nanoseconds cost);
  Nanoseconds scaled_for_device(Nanoseconds cost) const;
  void call(const CallMade&, Nanoseconds cost);
  Nanoseconds launch_graph();
  const Buffer& buffer(int index) const { return plan_.buffers[static_cast<std::size_t>(index)]; }
  enum class Processor { held, given_up };
  Processor while_waiting() const {
    return plan_.wait_style == SyncWait::block ? Processor::given_up : Processor::held;
  }
  void wait_until(Nanoseconds when) { wait_until(when, while_waiting()); }
  void wait_until(Nanoseconds when, Processor);
  Nanoseconds wake_up_time(Nanoseconds waited) const;
  Nanoseconds ready(const Operation&);
  void finish(const Operation&, Nanoseconds end);
  void finish_work(const Operation&, const WorkSeen&, Nanoseconds begin, Nanoseconds end);
  Nanoseconds all_work_end() const;
  Nanoseconds& event_at(int event, std::int64_t step);

  const StepPlan& plan_;
  const DeviceProfile& profile_;
  std::int64_t first_step_;
  std::uint64_t loader_seed_;
  TraceRecorder recorder_;
  ManagedPages pages_;
  SimulatedMemory memory_;
  std::optional<StepAllocator> served_;
  AsyncPool pool_;
  StepNoise noise_;
  Nanoseconds host_ = 0;
  Nanoseconds waited_ = 0;
  Nanoseconds idle_ = 0;
  std::vector<Nanoseconds> streams_;  // end of the queued work, by stream
  Nanoseconds to_device_engine_ = 0;
  Nanoseconds from_device_engine_ = 0;
  bool graph_issued_ = false;
  std::int64_t cuda_live_bytes_ = 0;  // cudaMalloc without an allocator
  std::vector<std::vector<Nanoseconds>> events_;
  std::vector<Nanoseconds> step_ends_;     // ring buffer for the limit of steps in flight
  std::vector<Nanoseconds> stamps_;        // ring buffer
  std::vector<Nanoseconds> kernel_times_;  // by operation: the same at every step
  std::vector<Nanoseconds> worker_free_;   // loader workers
  // Times of collectives that had not ended when the host last began a step.
  IntervalUnion communication_;
  std::vector<Nanoseconds> communicators_;  // end of the queued collectives, by communicator
  CtasOfCollectives ctas_;
  Contention contention_;
  std::vector<Nanoseconds>
      kernels_beside_;  // by operation; empty if kernels do not slow collectives down
  // The collective that was issued last, until all ranks have met there.
  const Operation* meeting_ = nullptr;
  Nanoseconds came_ = 0;
  std::vector<Nanoseconds> taken_;  // ring buffer over the loader's depth: when a place became free
};

}  // namespace stepgate
