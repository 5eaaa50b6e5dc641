// SPDX-License-Identifier: MIT
// Tests the contract of traces about single records: spans and calls of the host, work of the
// device, and their links. Linked into the programs of the trace contract.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "plan/analyse/access.h"
#include "tests/contract/trace_contract.h"

namespace stepgate {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// The accuracy to which the clocks of host and device are aligned.
constexpr nanoseconds clock_skew = microseconds(20);
// Spans are disjoint and in order, with one span for each operation that acts in a step; calls lie
// within spans.
TEST_P(TraceContract, PutsCallsIntoSpansAndSpansInOrder) {
  if (!traces()) return;
  for (const Knobs& knobs : different_steps()) {
    SCOPED_TRACE(describe(knobs));
    const StepPlan plan = plan_of(knobs);
    const Trace trace = trace_of(plan);
    const HostSpan* before = nullptr;
    for (const HostSpan& span : trace.spans) {
      EXPECT_LE(span.begin, span.end) << where(plan, span);
      if (before != nullptr) {
        EXPECT_LE(before->end, span.begin) << where(plan, span);
        EXPECT_LE(before->step, span.step) << where(plan, span);
      }
      before = &span;
      const Operation* operation = operation_of(plan, span);
      if (operation == nullptr) continue;
      EXPECT_EQ(span.acts_for, span.step + operation->ahead) << where(plan, span);
      EXPECT_TRUE(acts_for(*operation, span.acts_for)) << where(plan, span);
    }
    TraceTime last{0};
    for (const HostCall& call : trace.calls) {
      EXPECT_FALSE(call.name.empty());
      EXPECT_LE(last, call.begin) << call.name;
      EXPECT_LE(call.begin, call.end) << call.name;
      last = call.begin;
      if (call.span < 0) continue;
      const HostSpan& span = trace.spans.at(static_cast<std::size_t>(call.span));
      EXPECT_LE(span.begin, call.begin) << call.name << ", " << where(plan, span);
      EXPECT_GE(span.end, call.end) << call.name << ", " << where(plan, span);
    }
    if (HasFailure()) return;
  }
}

// The number of times that each operation acts in the traced steps.
std::map<int, std::int64_t> actions_of(const StepPlan& plan, const Trace& trace) {
  std::map<int, std::int64_t> actions;
  for (std::int64_t step = trace.first_step; step < trace.first_step + trace.steps; ++step) {
    for (std::size_t index = 0; index < plan.operations.size(); ++index) {
      const Operation& operation = plan.operations[index];
      if (acts_for(operation, step + operation.ahead)) ++actions[static_cast<int>(index)];
    }
  }
  return actions;
}

TEST_P(TraceContract, SeesTheWorkOfEveryOperationWithItsKindItsBytesAndItsEnds) {
  if (!traces()) return;
  for (const Knobs& knobs : different_steps()) {
    SCOPED_TRACE(describe(knobs));
    const StepPlan plan = plan_of(knobs);
    const Trace trace = trace_of(plan);
    std::map<int, std::int64_t> copies;
    std::map<int, std::int64_t> kernels;
    std::map<int, std::int64_t> filled_bytes;
    for (const DeviceWork& work : trace.work) {
      const Operation* operation = operation_of(plan, work);
      if (operation == nullptr) continue;
      EXPECT_EQ(work.from_graph, operation->captured) << where(plan, work);
      if (work.kind == WorkKind::kernel) {
        ++kernels[work.operation];
        EXPECT_FALSE(work.name.empty()) << where(plan, work);
        EXPECT_TRUE(std::holds_alternative<LaunchKernel>(operation->action)) << where(plan, work);
      } else if (work.kind == WorkKind::fill) {
        filled_bytes[work.operation] += work.bytes;
        EXPECT_TRUE(std::holds_alternative<FillZero>(operation->action)) << where(plan, work);
      } else {
        ++copies[work.operation];
        const auto& copy = std::get<CopyBytes>(operation->action);
        EXPECT_EQ(work.bytes, copy.to.bytes) << where(plan, work);
        const auto is_device = [&](const BufferUse& use) {
          return plan.buffers[static_cast<std::size_t>(use.buffer)].memory == MemoryKind::device;
        };
        EXPECT_EQ(work.from == CopyEnd::device, is_device(copy.from)) << where(plan, work);
        EXPECT_EQ(work.to == CopyEnd::device, is_device(copy.to)) << where(plan, work);
        EXPECT_EQ(work.from == CopyEnd::pageable || work.to == CopyEnd::pageable,
                  is_pageable(plan, copy))
            << where(plan, work);
      }
    }
    for (const auto& [index, actions] : actions_of(plan, trace)) {
      const Operation& operation = plan.operations[static_cast<std::size_t>(index)];
      SCOPED_TRACE(operation.name);
      if (const auto* fill = std::get_if<FillZero>(&operation.action)) {
        EXPECT_EQ(filled_bytes[index], actions * fill->what.bytes);
      } else if (std::holds_alternative<CopyBytes>(operation.action)) {
        EXPECT_EQ(copies[index], actions);
      } else if (std::holds_alternative<LaunchKernel>(operation.action)) {
        EXPECT_GE(kernels[index], actions);  // a GEMM may be several kernels
      }
    }
    if (HasFailure()) return;
  }
}

TEST_P(TraceContract, KnowsTheCallOfAllWorkAndLetsNoneBeginBeforeIt) {
  if (!traces()) return;
  for (const Knobs& knobs : different_steps()) {
    SCOPED_TRACE(describe(knobs));
    const StepPlan plan = plan_of(knobs);
    const Trace trace = trace_of(plan);
    std::map<std::uint32_t, const HostCall*> calls;
    for (const HostCall& call : trace.calls) {
      if (call.correlation != 0) {
        EXPECT_TRUE(calls.emplace(call.correlation, &call).second) << call.name;
      }
    }
    TraceTime last{0};
    for (const DeviceWork& work : trace.work) {
      EXPECT_LE(work.begin, work.end) << where(plan, work);
      EXPECT_LE(last, work.begin) << where(plan, work);
      last = work.begin;
      if (work.operation < 0) continue;
      const auto call = calls.find(work.correlation);
      ASSERT_NE(call, calls.end()) << where(plan, work);
      EXPECT_LE(call->second->begin, work.begin + clock_skew) << where(plan, work);
      const HostSpan& span = trace.spans.at(static_cast<std::size_t>(call->second->span));
      EXPECT_EQ(span.step, work.step) << where(plan, work);
      if (work.from_graph) {
        EXPECT_EQ(call->second->kind, CallKind::graph_launch) << where(plan, work);
      } else {
        EXPECT_EQ(span.operation, work.operation) << where(plan, work);
      }
    }
    if (HasFailure()) return;
  }
}

// Each stream of the plan must be one device stream, whose work runs in order.
void expect_streams_apart(const StepPlan& plan, const Trace& trace, std::size_t count) {
  std::map<int, int> numbers;  // by stream of the plan
  std::map<int, TraceTime> ends;
  for (const DeviceWork& work : trace.work) {
    const Operation* operation = operation_of(plan, work);
    if (operation == nullptr) continue;
    const auto number = numbers.emplace(operation->stream, work.stream).first;
    EXPECT_EQ(number->second, work.stream) << where(plan, work);
    EXPECT_GE(work.begin + microseconds(1), ends[work.stream]) << where(plan, work);
    ends[work.stream] = work.end;
  }
  std::set<int> different;
  for (const auto& [stream, number] : numbers) different.insert(number);
  EXPECT_EQ(numbers.size(), count);
  EXPECT_EQ(different.size(), count);
}

TEST_P(TraceContract, KeepsStreamsApartAndTheirWorkInTurn) {
  if (!traces()) return;
  for (const auto& [plan, streams] :
       {std::pair(plan_of(busy_knobs()), 2U), std::pair(plan_over_three_streams(), 3U)}) {
    expect_streams_apart(plan, trace_of(plan), streams);
  }
}

}  // namespace
}  // namespace stepgate
