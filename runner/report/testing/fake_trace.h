// SPDX-License-Identifier: MIT
// For tests of this station: a plan and its trace as a driver would record it, without a device. A
// step copies a batch, launches kernels and waits for the device if requested.
#pragma once

#include <algorithm>
#include <string>

#include "device/device.h"
#include "device/trace.h"
#include "plan/testing/three_streams.h"

namespace stepgate {

struct FakeSteps {
  std::string variant = "baseline";
  int kernels = 4;  // per step
  int steps = 3;
  std::int64_t kernel_nanoseconds = 5003;
  std::int64_t launch_nanoseconds = 2001;
  CopyEnd batch_from = CopyEnd::pageable;
  bool waits = true;  // for the device, at the end of every step
  std::string kernel_name = "stepgate::product_kernel";
};

struct FakeTrace {
  StepPlan plan;
  Trace trace;
};

inline DeviceIdentity fake_gpu() {
  DeviceIdentity device;
  device.kind = DeviceKind::cuda;
  device.name = "NVIDIA H200";
  device.driver = "580.159";
  device.compute_capability = 9.0;
  device.memory_bytes = 150'754'820'096;
  device.multiprocessors = 132;
  return device;
}

class TraceScript {
 public:
  explicit TraceScript(const FakeSteps& wanted) : wanted_(wanted) {
    fake_.plan.scenario = "scripted";
    fake_.plan.variant = wanted.variant;
    fake_.plan.streams = three_streams();
    add("copy the batch", Phase::h2d, side_stream, CopyBytes{});
    for (int kernel = 0; kernel < wanted.kernels; ++kernel) {
      const Phase phase = kernel < wanted.kernels / 2 ? Phase::forward : Phase::backward;
      add("layer " + std::to_string(kernel), phase, compute_stream, LaunchKernel{});
    }
    if (wanted.waits) add("wait for the device", Phase::sync, compute_stream, HostWaits{});
  }

  FakeTrace run() {
    Trace& trace = fake_.trace;
    trace.first_step = 20;
    trace.steps = wanted_.steps;
    trace.memory.peak_reserved_bytes = 64 << 20;
    trace.clocks = {{TraceTime(1000), 1.98e9}};
    for (int step = 0; step < wanted_.steps; ++step) {
      const int operations = static_cast<int>(fake_.plan.operations.size());
      for (int index = 0; index < operations; ++index) issue(index, 20 + step);
    }
    return fake_;
  }

 private:
  void add(std::string name, Phase phase, int stream, Action action) {
    fake_.plan.operations.push_back(
        {.name = std::move(name), .phase = phase, .stream = stream, .action = std::move(action)});
  }

  void issue(int index, std::int64_t step) {
    Trace& trace = fake_.trace;
    const Operation& operation = fake_.plan.operations[static_cast<std::size_t>(index)];
    const TraceTime begin = host_;
    HostCall call{.name = "cudaLaunchKernel",
                  .kind = CallKind::launch,
                  .span = static_cast<int>(trace.spans.size()),
                  .begin = host_ + TraceTime(100)};
    host_ += TraceTime(wanted_.launch_nanoseconds);
    if (std::holds_alternative<HostWaits>(operation.action)) {
      call.name = "cudaDeviceSynchronize";
      call.kind = CallKind::wait_for_device;
      call.can_block = true;
      host_ = std::max({host_, compute_, side_}) + TraceTime(4000);
    } else {
      call.correlation = ++correlation_;
      trace.work.push_back(work_of(operation, index, step));
    }
    if (std::holds_alternative<CopyBytes>(operation.action)) {
      call.name = "cudaMemcpyAsync";
      call.kind = CallKind::copy;
      call.can_block = wanted_.batch_from == CopyEnd::pageable;
    }
    call.end = host_ - TraceTime(100);
    trace.calls.push_back(call);
    trace.spans.push_back({index, step, step, begin, host_});
  }

  DeviceWork work_of(const Operation& operation, int index, std::int64_t step) {
    DeviceWork work;
    work.stream = 7;
    work.operation = index;
    work.step = step;
    work.correlation = correlation_;
    work.begin = std::max(compute_, host_ + TraceTime(1500));
    if (std::holds_alternative<CopyBytes>(operation.action)) {
      work.kind = WorkKind::copy;
      work.stream = 14;
      work.begin = std::max(side_, host_ + TraceTime(1500));
      work.bytes = 1 << 20;
      work.from = wanted_.batch_from;
      work.to = CopyEnd::device;
      work.end = side_ = work.begin + TraceTime(20000);
      return work;
    }
    work.name = wanted_.kernel_name;
    work.grid = {264, 1, 1};
    work.block = {256, 1, 1};
    work.registers_per_thread = 64;
    work.shared_memory_bytes = 16384;
    work.end = compute_ = work.begin + TraceTime(wanted_.kernel_nanoseconds);
    return work;
  }

  FakeSteps wanted_;
  FakeTrace fake_;
  std::uint32_t correlation_ = 0;
  TraceTime host_{1'000'000};
  TraceTime compute_{0};
  TraceTime side_{0};
};

inline FakeTrace fake_trace(const FakeSteps& wanted = {}) {
  return TraceScript(wanted).run();
}

}  // namespace stepgate
