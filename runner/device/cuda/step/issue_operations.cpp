// SPDX-License-Identifier: MIT
// The host side of the operations of a step.
#include <algorithm>
#include <cstring>

#include "base/require.h"
#include "device/cuda/check.h"
#include "device/cuda/nccl/nccl_words.h"
#include "device/cuda/step/cuda_step.h"
#include "plan/analyse/access.h"
#include "plugin/library_call.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

void spin_for(std::int64_t duration_nanoseconds) {
  const auto end = steady_clock::now() + nanoseconds(duration_nanoseconds);
  while (steady_clock::now() < end) {
  }
}

}  // namespace

void* CudaStep::address(const BufferUse& use, std::int64_t step) const {
  return static_cast<std::byte*>(buffers_.address(use.buffer, step)) + use.offset_bytes;
}

cudaEvent_t CudaStep::event(int index, std::int64_t step) const {
  const std::vector<CudaEvent>& slots = events_[static_cast<std::size_t>(index)];
  return slots[static_cast<std::size_t>(step) % slots.size()].get();
}

void CudaStep::read_gradients(const Operation& operation, std::int64_t step, cudaStream_t on) {
  if (!gradients_ || !operation.reads_gradients || step != gradients_->step()) return;
  gradients_->read(operation, address(gradients_of(operation), step), on);
}

// Gradients that an update within the graph reads are still there after the graph
// (reason_against_gradients).
void CudaStep::issue_step(std::int64_t step) {
  bool graph_launched = false;
  for (std::size_t index = 0; index < prepared_.size(); ++index) {
    const Prepared& prepared = prepared_[index];
    const Operation& operation = *prepared.operation;
    const std::int64_t acted_for = step + operation.ahead;
    if (!acts_for(operation, acted_for, first_step_)) continue;
    const bool of_graph = operation.captured && !(audits_graph_ && acted_for == audited_step_);
    if (of_graph && graph_launched) {
      read_gradients(operation, acted_for, stream(compute_stream));
      continue;
    }
    issuing_ = &operation;
    const Observed observed(observer_, static_cast<int>(index), step, acted_for);
    if (of_graph) {
      launch_graph(acted_for);
      graph_launched = true;
      read_gradients(operation, acted_for, stream(compute_stream));
    } else if (prepared.launch) {
      read_gradients(operation, acted_for, prepared.stream);
      pass_launch_time();
      if (is_audited(index, acted_for)) {
        audit(prepared, acted_for);
      } else {
        issue_launch(prepared, acted_for);
      }
    } else {
      issue(prepared, acted_for);
    }
  }
  issuing_ = nullptr;
}

bool CudaStep::is_audited(std::size_t operation, std::int64_t step) const {
  return step == audited_step_ && std::ranges::binary_search(audited_, static_cast<int>(operation));
}

void CudaStep::audit(const Prepared& prepared, std::int64_t step) {
  const auto& launch = std::get<LaunchKernel>(prepared.operation->action);
  std::vector<void*> operands;
  for (const BufferUse& use : launch.operands) operands.push_back(address(use, step));
  AuditedLaunch audited{.launch = launch,
                        .operands = {},
                        .copy =
                            [](void* to, const void* from, std::size_t bytes) {
                              check(cudaDeviceSynchronize(), "wait for what is audited");
                              check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault),
                                    "copy what is audited");
                              check(cudaDeviceSynchronize(), "finish a copy of what is audited");
                            },
                        .run_own = [&] { issue_launch(prepared, step); },
                        .run_catalogue =
                            [&] {
                              kernel(launch.kernel.name())
                                  .prepare(launch.shape, launch.dtype, launch.attributes, context_)(
                                      operands.data(), prepared.stream);
                            }};
  for (void* operand : operands) audited.operands.push_back(static_cast<std::byte*>(operand));
  audits_.push_back({.step = step,
                     .operation = prepared.operation->name,
                     .kernel = std::string(launch.kernel.name()),
                     .difference = difference_by_audit(audited)});
}

void CudaStep::launch_graph(std::int64_t step) {
  pass_launch_time();
  check(cudaGraphLaunch(graphs_[static_cast<std::size_t>(step) % graphs_.size()].get(),
                        stream(compute_stream)),
        "launch the step's graph");
}

void CudaStep::issue(const Prepared& prepared, std::int64_t step) {
  const Operation& operation = *prepared.operation;
  const cudaStream_t on = prepared.stream;
  if (prepared.launch) return issue_launch(prepared, step);
  struct Issue {
    CudaStep& self;
    int stream;
    cudaStream_t on;
    std::int64_t step;

    void operator()(const LaunchKernel&) const { require(false, "launches are prepared"); }
    void operator()(const CopyBytes& copy) const { self.issue_copy(copy, on, step); }
    void operator()(const FillZero& fill) const {
      check(cudaMemsetAsync(self.address(fill.what, step), 0,
                            static_cast<std::size_t>(fill.what.bytes), on),
            "zero a buffer");
    }
    void operator()(const HostCopies& copy) const {
      std::memcpy(self.address(copy.to, step), self.address(copy.from, step),
                  static_cast<std::size_t>(copy.to.bytes));
    }
    void operator()(const Prefetch& prefetch) const { self.issue_prefetch(prefetch, on, step); }
    void operator()(const Allocate& allocate) const {
      self.buffers_.allocate(allocate.buffer, step, stream, on);
    }
    void operator()(const Release& release) const {
      const Buffer& buffer = self.plan_.buffers[static_cast<std::size_t>(release.buffer)];
      if (buffer.allocated_by == AllocatedBy::cuda) {
        return self.waiting([&] { self.buffers_.release(release.buffer, step, on); });
      }
      self.buffers_.release(release.buffer, step, on);
    }
    void operator()(const EmptyCache&) const {
      self.waiting([&] { self.buffers_.empty_cache(); });
    }
    void operator()(const RegisterHost& lock) const {
      const auto bytes =
          static_cast<std::size_t>(self.plan_.buffers[static_cast<std::size_t>(lock.buffer)].bytes);
      check(cudaHostRegister(self.buffers_.address(lock.buffer, step), bytes,
                             cudaHostRegisterDefault),
            "register a host buffer");
    }
    void operator()(const UnregisterHost& unlock) const {
      self.waiting([&] {
        check(cudaHostUnregister(self.buffers_.address(unlock.buffer, step)),
              "unregister a host buffer");
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
    void operator()(const HostWork& work) const { spin_for(work.nanoseconds_of_step(step)); }
    void operator()(const Collective& collective) const {
      require(!self.communicators_.empty(), "a step of several ranks is loaded by one of them");
      self.communicator(collective).issue(self.call_of(collective, step), on);
    }
  };
  visit_action(Issue{*this, operation.stream, on, step}, operation.action);
}

void CudaStep::issue_launch(const Prepared& prepared, std::int64_t step) {
  if (!plan_.library_kernels.empty()) library_call().operation = prepared.operation->name.c_str();
  if (!prepared.operands.empty()) {
    const std::int64_t row =
        prepared.period == 1 ? 0 : step % prepared.period * prepared.operand_count;
    return prepared.launch(prepared.operands.data() + row, prepared.stream);
  }
  const auto& uses = std::get<LaunchKernel>(prepared.operation->action).operands;
  operands_of_launch_.clear();
  for (const BufferUse& use : uses) operands_of_launch_.push_back(address(use, step));
  prepared.launch(operands_of_launch_.data(), prepared.stream);
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

CollectiveCall CudaStep::call_of(const Collective& collective, std::int64_t step) const {
  return {.kind = collective.kind,
          .from = address(collective.from, step),
          .to = address(collective.to, step),
          .elements = nccl_elements_of(collective),
          .dtype = collective.dtype,
          .reduction = collective.reduction};
}

void CudaStep::issue_prefetch(const Prefetch& prefetch, cudaStream_t on, std::int64_t step) {
  int device = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  const cudaMemLocation location{.type = cudaMemLocationTypeDevice, .id = device};
  check(cudaMemPrefetchAsync(address(prefetch.what, step),
                             static_cast<std::size_t>(prefetch.what.bytes), location, 0, on),
        "prefetch managed memory");
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

}  // namespace stepgate
