// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/cuda/check.h"
#include "device/cuda/span_recorder.h"
#include "device/mean_clock.h"
#include "kernels/number_format.h"
#include "plan/access.h"
#include "support/require.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

void spin_for(std::int64_t duration_nanoseconds) {
  const auto end = steady_clock::now() + nanoseconds(duration_nanoseconds);
  while (steady_clock::now() < end) {
  }
}

unsigned flags_of(WaitStyle style) {
  switch (style) {
    case WaitStyle::spin:
      return cudaDeviceScheduleSpin;
    case WaitStyle::yield:
      return cudaDeviceScheduleYield;
    case WaitStyle::block:
      return cudaDeviceScheduleBlockingSync;
  }
  require(false, "every way to wait is known");
  return cudaDeviceScheduleSpin;
}

template <class Number>
void append_ring(std::vector<Number>& to, const std::vector<std::byte>& ring, std::int64_t first,
                 std::int64_t last) {
  const auto capacity = static_cast<std::int64_t>(ring.size() / sizeof(Number));
  for (std::int64_t index = first; index < last; ++index) {
    Number value;
    std::memcpy(&value, ring.data() + static_cast<std::size_t>(index % capacity) * sizeof value,
                sizeof value);
    to.push_back(value);
  }
}

}  // namespace

template <class Call>
void CudaStep::waiting(Call call) {
  const auto begin = steady_clock::now();
  call();
  waited_ += steady_clock::now() - begin;
}

void* CudaStep::address(const BufferUse& use, std::int64_t step) const {
  return static_cast<std::byte*>(buffers_.address(use.buffer, step)) + use.offset_bytes;
}

cudaStream_t CudaStep::stream(StreamName name) const {
  switch (name) {
    case StreamName::compute:
      return compute_.get();
    case StreamName::side:
      return side_.get();
    case StreamName::legacy:
      return cudaStreamLegacy;
  }
  require(false, "every stream is known");
  return nullptr;
}

cudaEvent_t CudaStep::event(int index, std::int64_t step) const {
  const std::vector<CudaEvent>& slots = events_[static_cast<std::size_t>(index)];
  return slots[static_cast<std::size_t>(step) % slots.size()].get();
}

StepResult CudaStep::run(const Observe& observe) {
  require(observe.steps >= 1, "at least one step is scored");
  // What a failed run left in queues, slots and loader is not a step's beginning.
  if (running_) {
    throw DeviceError("variant '" + plan_.variant +
                      "' failed in an earlier run and must be loaded again");
  }
  running_ = true;
  check(cudaSetDeviceFlags(flags_of(plan_.wait_style)), "choose how the host waits");
  StepResult result;
  result.first_step = next_step_;
  result.steps = observe.steps;
  losses_.clear();
  stamps_.clear();
  cycles_.clear();
  run_steps(observe.wash_out_steps);
  if (observe.trace && cupti_) {
    result.trace = traced(observe, result);
  } else {
    run_scored(observe, result, always_watches_);
  }
  harvest();
  result.losses = losses_;
  for (std::size_t step = static_cast<std::size_t>(observe.wash_out_steps) + 1;
       step < stamps_.size(); ++step) {
    result.step_times.emplace_back(static_cast<std::int64_t>(stamps_[step] - stamps_[step - 1]));
  }
  result.sm_clock_hertz = mean_clock_since(observe.wash_out_steps);
  if (observe.tensors) read_tensors(result);
  running_ = false;
  return result;
}

void CudaStep::run_scored(const Observe& observe, StepResult& result, StepObserver* observer) {
  if (observer) observer->begin_run(plan_);
  observer_ = observer;
  check(cudaEventRecord(first_mark_.get(), compute_.get()), "mark the first scored step");
  waited_ = nanoseconds(0);
  const auto begin = steady_clock::now();
  run_steps(observe.steps);
  result.host_busy = steady_clock::now() - begin - waited_;
  check(cudaEventRecord(last_mark_.get(), compute_.get()), "mark the last scored step");
  check(cudaStreamSynchronize(compute_.get()), "finish the scored steps");
  check(cudaStreamSynchronize(side_.get()), "finish the scored steps' copies");
  check(cudaStreamSynchronize(cudaStreamLegacy), "finish the scored steps' synchronous calls");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, first_mark_.get(), last_mark_.get()),
        "read the time of the scored steps");
  result.elapsed = nanoseconds(static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6));
  observer_ = nullptr;
  if (observer) observer->end_run();
}

// Work of the wash-out is still running when the spans begin, so that queues are as deep as in a
// run that nobody traces.
Trace CudaStep::traced(const Observe& observe, StepResult& result) {
  const std::int64_t first = next_step_;
  // Every operation, and three spans of the runner's own, at every step.
  const std::size_t spans = (plan_.operations.size() + 3) * static_cast<std::size_t>(observe.steps);
  SpanRecorder recorder(spans);
  run_scored(observe, result, &recorder);
  Trace trace = assemble_trace(plan_, cupti_->take(), recorder.take(), first, observe.steps);
  trace.memory = buffers_.use();
  return trace;
}

void CudaStep::run_steps(std::int64_t count) {
  if (next_step_ == 0 && count > 0) {
    for (std::int64_t step = -furthest_ahead_; step < 0; ++step) issue_step(step);
  }
  for (std::int64_t done = 0; done < count; ++done) {
    {
      const Observed own(observer_, -1, next_step_, next_step_);
      if (next_step_ - harvested_ == plan_.bookkeeping.capacity) {
        waiting([&] { harvest(); });
      }
      hold_back();
    }
    issue_step(next_step_);
    ++next_step_;
    mark_progress();
  }
}

// The driver accepts about a thousand launches and then blocks; a real input pipeline holds back
// far earlier. Progress is looked at once every half of the run-ahead, since marking it takes time
// on the device: then the half before the last one must be done.
void CudaStep::hold_back() {
  const std::int64_t half = plan_.run_ahead_steps / 2;
  if (next_step_ % half != 0) return;
  const cudaEvent_t before_last = progress_[static_cast<std::size_t>(next_step_ / half % 2)].get();
  if (cudaEventQuery(before_last) == cudaSuccess) return;
  (void)cudaGetLastError();  // "not ready" must not look like the error of the next launch
  waiting([&] { check(cudaEventSynchronize(before_last), "wait for earlier steps"); });
}

void CudaStep::mark_progress() {
  const std::int64_t half = plan_.run_ahead_steps / 2;
  if (next_step_ % half != 0) return;
  const std::int64_t finished = next_step_ / half - 1;
  check(cudaEventRecord(progress_[static_cast<std::size_t>(finished % 2)].get(), compute_.get()),
        "mark the end of some steps");
}

void CudaStep::issue_step(std::int64_t step) {
  bool graph_launched = false;
  for (std::size_t index = 0; index < prepared_.size(); ++index) {
    const Prepared& prepared = prepared_[index];
    const Operation& operation = *prepared.operation;
    const std::int64_t acted_for = step + operation.ahead;
    if (!acts_for(operation, acted_for)) continue;
    if (operation.captured && graph_launched) continue;
    const Observed observed(observer_, static_cast<int>(index), step, acted_for);
    if (operation.captured) {
      launch_graph(acted_for);
      graph_launched = true;
    } else if (prepared.launch) {
      pass_launch_time();
      issue_launch(prepared, acted_for);
    } else {
      issue(prepared, acted_for);
    }
  }
}

void CudaStep::launch_graph(std::int64_t step) {
  pass_launch_time();
  check(cudaGraphLaunch(graphs_[static_cast<std::size_t>(step) % graphs_.size()].get(),
                        compute_.get()),
        "launch the step's graph");
}

void CudaStep::issue(const Prepared& prepared, std::int64_t step) {
  const Operation& operation = *prepared.operation;
  const cudaStream_t on = prepared.stream;
  if (prepared.launch) return issue_launch(prepared, step);
  struct Issue {
    CudaStep& self;
    cudaStream_t on;
    std::int64_t step;

    void operator()(const LaunchKernel&) const { require(false, "launches are prepared"); }
    void operator()(const CopyBytes& copy) const { self.issue_copy(copy, on, step); }
    void operator()(const FillZero& fill) const {
      check(cudaMemsetAsync(self.address(fill.what, step), 0,
                            static_cast<std::size_t>(fill.what.bytes), on),
            "zero a buffer");
    }
    void operator()(const Allocate& allocate) const {
      self.buffers_.allocate(allocate.buffer, step, on);
    }
    void operator()(const Release& release) const {
      const Buffer& buffer = self.plan_.buffers[static_cast<std::size_t>(release.buffer)];
      if (buffer.allocated_by == AllocatedBy::cuda) {
        return self.waiting([&] { self.buffers_.release(release.buffer, step, on); });
      }
      self.buffers_.release(release.buffer, step, on);
    }
    void operator()(const PageLock& lock) const {
      const auto bytes =
          static_cast<std::size_t>(self.plan_.buffers[static_cast<std::size_t>(lock.buffer)].bytes);
      check(cudaHostRegister(self.buffers_.address(lock.buffer, step), bytes,
                             cudaHostRegisterDefault),
            "page-lock a host buffer");
    }
    void operator()(const PageUnlock& unlock) const {
      self.waiting([&] {
        check(cudaHostUnregister(self.buffers_.address(unlock.buffer, step)),
              "unlock a host buffer");
      });
    }
    void operator()(const RecordEvent& record) const {
      check(cudaEventRecord(self.event(record.event, step), on), "record an event");
    }
    void operator()(const StreamWaitsEvent& waits) const {
      check(cudaStreamWaitEvent(on, self.event(waits.event, step), 0),
            "let a stream wait for an event");
    }
    void operator()(const HostWaits& waits) const { self.wait(waits, on, step); }
    void operator()(const TakeBatch&) const {
      self.waiting([&] { self.loader_->take(step); });
    }
    void operator()(const HostWork& work) const { spin_for(work.nanoseconds); }
  };
  std::visit(Issue{*this, on, step}, operation.action);
}

void CudaStep::issue_launch(const Prepared& prepared, std::int64_t step) {
  if (!prepared.operands.empty()) {
    const std::int64_t row =
        prepared.period == 1 ? 0 : step % prepared.period * prepared.operand_count;
    return prepared.launch(prepared.operands.data() + row, prepared.stream);
  }
  const auto& uses = std::get<LaunchKernel>(prepared.operation->action).operands;
  std::array<void*, 8> operands{};
  require(uses.size() <= operands.size(), "a kernel has at most eight operands");
  std::transform(uses.begin(), uses.end(), operands.begin(),
                 [&](const BufferUse& use) { return address(use, step); });
  prepared.launch(operands.data(), prepared.stream);
}

void CudaStep::pass_launch_time() const {
  if (plan_.launch_host_nanoseconds > 0) spin_for(plan_.launch_host_nanoseconds);
}

void CudaStep::issue_copy(const CopyBytes& copy, cudaStream_t on, std::int64_t step) {
  void* to = address(copy.to, step);
  const void* from = address(copy.from, step);
  const auto bytes = static_cast<std::size_t>(copy.to.bytes);
  if (copy.host_waits) {
    return waiting([&] { check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copy, waiting"); });
  }
  const auto enqueue = [&] {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, on), "copy");
  };
  if (is_pageable(plan_, copy)) return waiting(enqueue);
  enqueue();
}

void CudaStep::wait(const HostWaits& waits, cudaStream_t on, std::int64_t step) {
  waiting([&] {
    switch (waits.what) {
      case WaitFor::device:
        return check(cudaDeviceSynchronize(), "wait for the device");
      case WaitFor::stream:
        return check(cudaStreamSynchronize(on), "wait for a stream");
      case WaitFor::event:
        return check(cudaEventSynchronize(event(waits.event, step)), "wait for an event");
      case WaitFor::poll:
        cudaError_t status = cudaErrorNotReady;
        while (status == cudaErrorNotReady) status = cudaEventQuery(event(waits.event, step));
        (void)cudaGetLastError();  // "not ready" must not look like the error of the next launch
        return check(status, "poll an event");
    }
  });
}

void CudaStep::harvest() {
  check(cudaStreamSynchronize(compute_.get()), "wait before reading the losses");
  append_ring(losses_, buffers_.read(plan_.bookkeeping.losses, 0), harvested_, next_step_);
  append_ring(stamps_, buffers_.read(plan_.bookkeeping.stamps, 0), harvested_, next_step_);
  append_ring(cycles_, buffers_.read(plan_.bookkeeping.cycles, 0), 2 * harvested_, 2 * next_step_);
  harvested_ = next_step_;
}

// A step's clocks are read near its end: what the last step of the wash-out read is where the
// scored steps begin.
std::optional<double> CudaStep::mean_clock_since(std::int64_t wash_out_steps) const {
  std::vector<ClockStamp> stamps;
  for (auto step = static_cast<std::size_t>(std::max<std::int64_t>(wash_out_steps - 1, 0));
       step < stamps_.size(); ++step) {
    stamps.push_back({.nanoseconds = stamps_[step],
                      .cycles = cycles_[2 * step],
                      .multiprocessor = cycles_[2 * step + 1]});
  }
  return mean_clock_hertz(stamps);
}

void CudaStep::read_tensors(StepResult& result) const {
  for (std::size_t index = 0; index < plan_.buffers.size(); ++index) {
    const Buffer& buffer = plan_.buffers[index];
    if (buffer.purpose != Purpose::weights && buffer.purpose != Purpose::gradients) continue;
    const std::vector<std::byte> bytes = buffers_.read(static_cast<int>(index), 0);
    result.tensors.push_back({buffer.name, floats_of(bytes.data(), buffer.dtype,
                                                     buffer.bytes / bytes_of(buffer.dtype))});
  }
}

}  // namespace stepgate
