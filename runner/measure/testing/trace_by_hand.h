// SPDX-License-Identifier: MIT
// For tests only: traces written record by record, in microseconds, and the plan that they belong
// to.
#pragma once

#include <string>
#include <utility>

#include "device/trace.h"
#include "measure/trace/traced.h"
#include "plan/count/facts_of.h"
#include "plan/testing/three_streams.h"

namespace stepgate {

// The operations of plan_by_hand, by position.
namespace by_hand {
constexpr int take = 0;
constexpr int copy = 1;
constexpr int math = 2;
constexpr int memory = 3;
constexpr int fill = 4;
constexpr int wait = 5;
constexpr int work = 6;
}  // namespace by_hand

// Returns a plan with a batch from the loader, its copy, a kernel of each kind, a fill, a wait and
// host work.
inline PlannedStep plan_by_hand(int copies_on = compute_stream, int ahead = 0) {
  StepPlan plan;
  plan.variant = "by hand";
  plan.streams = three_streams();
  const auto add = [&](std::string name, Phase phase, int stream, Action action) {
    plan.operations.push_back(
        {.name = std::move(name), .phase = phase, .stream = stream, .action = std::move(action)});
  };
  plan.buffers = {{.name = "device batch", .bytes = 1000},
                  {.name = "host batch", .memory = MemoryKind::pinned, .bytes = 1000},
                  {.name = "weights", .bytes = 4 * 1024 * 1024},
                  {.name = "gradients", .bytes = 4 * 1024 * 1024}};
  add("take", Phase::data_wait, compute_stream, TakeBatch{});
  add("copy", Phase::h2d, copies_on, CopyBytes{{0, 0, 1000}, {1, 0, 1000}});
  plan.operations[by_hand::take].ahead = ahead;
  plan.operations[by_hand::copy].ahead = ahead;
  add("math", Phase::forward, compute_stream,
      LaunchKernel{.kernel = "spin", .shape = {}, .operands = {{0, 0, 4}}});
  add("memory", Phase::optimizer, compute_stream,
      LaunchKernel{.kernel = "sgd",
                   .shape = MatrixShape{1024, 1024},
                   .operands = {{2, 0, 4 * 1024 * 1024}, {3, 0, 4 * 1024 * 1024}}});
  add("fill", Phase::backward, compute_stream, FillZero{{0, 0, 1000}});
  add("wait", Phase::sync, compute_stream, HostWaits{WaitFor::device});
  add("work", Phase::host, compute_stream, HostWork{1000});
  return with_facts(std::move(plan));
}

// In seconds; `close` is the tolerance for sums.
constexpr double microsecond = 1e-6;
constexpr double close = 1e-12;

const DeviceWork a_kernel{.kind = WorkKind::kernel};
const DeviceWork a_fill{.kind = WorkKind::fill, .bytes = 1000};
const DeviceWork to_device{
    .kind = WorkKind::copy, .bytes = 1000, .from = CopyEnd::pinned, .to = CopyEnd::device};
const DeviceWork to_host{
    .kind = WorkKind::copy, .bytes = 4, .from = CopyEnd::device, .to = CopyEnd::pageable};
const HostCall device_wait{
    .name = "cudaDeviceSynchronize", .kind = CallKind::wait_for_device, .can_block = true};

inline HostCall launch(std::uint32_t correlation) {
  return {.name = "cudaLaunchKernel", .kind = CallKind::launch, .correlation = correlation};
}
inline DeviceWork caused_by(std::uint32_t correlation) {
  DeviceWork work = a_kernel;
  work.correlation = correlation;
  return work;
}

inline double sum_of_parts(const TimeBreakdown& time) {
  return time.math + time.memory + time.latency + time.copies + time.communication +
         time.idle_after_wait + time.idle_for_data + time.idle_for_host + time.idle_in_queue;
}

class TraceByHand {
 public:
  explicit TraceByHand(std::int64_t steps) { trace_.steps = steps; }

  // Adds host time of an operation without a call.
  TraceByHand& span(int operation, std::int64_t step, std::int64_t begin, std::int64_t end) {
    trace_.spans.push_back({.operation = operation,
                            .step = step,
                            .acts_for = step,
                            .begin = microseconds(begin),
                            .end = microseconds(end)});
    return *this;
  }
  // Adds host time of an operation that is a single call.
  TraceByHand& call(int operation, std::int64_t step, HostCall made, std::int64_t begin,
                    std::int64_t end) {
    span(operation, step, begin, end);
    made.span = static_cast<int>(trace_.spans.size()) - 1;
    made.begin = microseconds(begin);
    made.end = microseconds(end);
    trace_.calls.push_back(std::move(made));
    return *this;
  }
  TraceByHand& work(int operation, std::int64_t step, DeviceWork done, std::int64_t begin,
                    std::int64_t end) {
    done.operation = operation;
    done.step = step;
    done.begin = microseconds(begin);
    done.end = microseconds(end);
    trace_.work.push_back(std::move(done));
    return *this;
  }
  Trace& trace() { return trace_; }

 private:
  static TraceTime microseconds(std::int64_t count) { return std::chrono::microseconds(count); }

  Trace trace_;
};

}  // namespace stepgate
