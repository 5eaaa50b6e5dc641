// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "device/cuda/cupti/activity_records.h"

namespace stepgate {
namespace {

TraceTime at(std::int64_t nanoseconds) {
  return TraceTime(nanoseconds);
}

CallRecord call(const char* name, std::uint32_t correlation, std::int64_t begin, std::int64_t end) {
  return {.name = name, .correlation = correlation, .begin = at(begin), .end = at(end)};
}

CallRecord driver_call(const char* name, std::uint32_t correlation, std::int64_t begin,
                       std::int64_t end) {
  CallRecord record = call(name, correlation, begin, end);
  record.of_driver = true;
  return record;
}

DeviceWork kernel_work(std::uint32_t correlation, std::int64_t begin, std::int64_t end) {
  return {.name = "k", .correlation = correlation, .begin = at(begin), .end = at(end)};
}

DeviceWork copy_work(std::uint32_t correlation, CopyEnd from, CopyEnd to) {
  return {.kind = WorkKind::copy,
          .name = {},
          .correlation = correlation,
          .begin = at(150),
          .end = at(160),
          .bytes = 64,
          .from = from,
          .to = to};
}

// Returns spans of two operations, after a span of the runner itself.
std::vector<HostSpan> spans() {
  return {{.operation = -1, .step = 4, .acts_for = 4, .begin = at(50), .end = at(90)},
          {.operation = 0, .step = 4, .acts_for = 4, .begin = at(100), .end = at(200)},
          {.operation = 1, .step = 4, .acts_for = 5, .begin = at(200), .end = at(300)}};
}

StepPlan two_operations() {
  StepPlan plan;
  plan.operations.resize(2);
  plan.operations[0].action = LaunchKernel{};
  plan.operations[1].action = LaunchKernel{};
  return plan;
}

TEST(AssembleTrace, GivesCallsToTheSpanThatTheyBeganInAndWorkToItsCall) {
  ActivityRecords records;
  records.calls = {call("cudaLaunchKernel", 8, 210, 220), call("cudaLaunchKernel", 7, 110, 120)};
  records.work = {kernel_work(8, 900, 950), kernel_work(7, 400, 500)};
  records.collected_in = std::chrono::seconds(1);
  const Trace trace = assemble_trace(two_operations(), records, spans(), 4, 1);
  EXPECT_GT(trace.collected_in, records.collected_in);
  ASSERT_EQ(trace.calls.size(), 2U);
  EXPECT_EQ(trace.calls[0].span, 1);
  EXPECT_EQ(trace.calls[1].span, 2);
  ASSERT_EQ(trace.work.size(), 2U);
  EXPECT_EQ(trace.work[0].operation, 0);
  EXPECT_EQ(trace.work[1].operation, 1);
  EXPECT_EQ(trace.work[1].step, 4);
}

TEST(AssembleTrace, LeavesOutWhatBelongsToNoSpan) {
  ActivityRecords records;
  records.calls = {call("cudaEventRecord", 1, 10, 20), call("cudaLaunchKernel", 2, 350, 360),
                   call("cudaGetLastError", 3, 110, 111)};
  records.work = {kernel_work(2, 400, 500), kernel_work(99, 400, 500)};
  const Trace trace = assemble_trace(two_operations(), records, spans(), 4, 1);
  EXPECT_TRUE(trace.calls.empty());
  EXPECT_TRUE(trace.work.empty());
}

TEST(AssembleTrace, CountsADriverCallInsideARuntimeCallOnce) {
  ActivityRecords records;
  records.calls = {call("cudaLaunchKernelExC", 5, 110, 130),
                   driver_call("cuLaunchKernelEx", 5, 112, 128),
                   driver_call("cuLaunchKernel", 6, 140, 150)};
  const Trace trace = assemble_trace(two_operations(), records, spans(), 4, 1);
  ASSERT_EQ(trace.calls.size(), 2U);
  EXPECT_EQ(trace.calls[0].name, "cudaLaunchKernelExC");
  EXPECT_EQ(trace.calls[1].name, "cuLaunchKernel");
}

TEST(AssembleTrace, PutsTheQueriesOfOneOperationTogether) {
  ActivityRecords records;
  for (int query = 0; query < 40; ++query) {
    records.calls.push_back(call("cudaEventQuery", 0, 110 + query, 111 + query));
  }
  records.calls.push_back(call("cudaEventQuery", 0, 210, 211));
  const Trace trace = assemble_trace(two_operations(), records, spans(), 4, 1);
  ASSERT_EQ(trace.calls.size(), 2U);
  EXPECT_EQ(trace.calls[0].count, 40);
  EXPECT_EQ(trace.calls[0].end, at(150));
  EXPECT_EQ(trace.calls[1].count, 1);
}

TEST(AssembleTrace, AnAllocatorThatLooksForFreeBlocksDoesNotPoll) {
  StepPlan plan = two_operations();
  plan.operations[0].action = Allocate{};
  ActivityRecords records;
  records.calls = {call("cudaEventQuery", 0, 110, 111), call("cudaEventQuery", 0, 210, 211)};
  const Trace trace = assemble_trace(plan, records, spans(), 4, 1);
  ASSERT_EQ(trace.calls.size(), 2U);
  EXPECT_EQ(trace.calls[0].kind, CallKind::other);
  EXPECT_EQ(trace.calls[1].kind, CallKind::poll);
}

StepPlan a_kernel_and_a_collective() {
  StepPlan plan = two_operations();
  plan.operations[1].action = Collective{
      .kind = CollectiveKind::reduce_scatter, .from = {.bytes = 4096}, .to = {.bytes = 1024}};
  return plan;
}

TEST(AssembleTrace, KernelsOfNcclThatACollectiveMadeAreThatCollective) {
  ActivityRecords records;
  records.calls = {call("cudaLaunchKernel", 1, 110, 120), call("cudaLaunchKernelExC", 2, 210, 220),
                   call("cudaLaunchKernelExC", 3, 230, 240)};
  records.work = {kernel_work(1, 400, 500), kernel_work(2, 500, 600), kernel_work(3, 600, 700)};
  records.work[0].name =
      "ncclDevKernel_AllReduce_Sum_f32_RING_LL";  // the name belongs to another operation
  records.work[1].name = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL";
  const Trace trace = assemble_trace(a_kernel_and_a_collective(), records, spans(), 4, 1);
  ASSERT_EQ(trace.work.size(), 3U);
  EXPECT_EQ(trace.work[0].kind, WorkKind::kernel);
  EXPECT_FALSE(trace.work[0].collective);
  EXPECT_EQ(trace.work[1].kind, WorkKind::collective);
  EXPECT_EQ(trace.work[1].collective, CollectiveKind::reduce_scatter);
  EXPECT_EQ(trace.work[1].bytes, 4096);
  EXPECT_EQ(trace.work[1].operation, 1);
  EXPECT_EQ(trace.work[2].kind, WorkKind::kernel);  // this kernel has another name
}

TEST(AssembleTrace, EveryKernelOfNcclIsKnownByItsName) {
  for (const char* name : {"ncclDevKernel_AllGather_RING_LL", "ncclSymkDevKernel_AllReduce_AGxLL_R",
                           "ncclKernel_AllReduce_RING_LL_Sum_float"}) {
    ActivityRecords records;
    records.calls = {call("cuLaunchKernelEx", 2, 210, 220)};
    records.work = {kernel_work(2, 500, 600)};
    records.work[0].name = name;
    const Trace trace = assemble_trace(a_kernel_and_a_collective(), records, spans(), 4, 1);
    EXPECT_EQ(trace.work.at(0).kind, WorkKind::collective) << name;
  }
}

TEST(AssembleTrace, WhatNcclCallsWithinACollectiveIsNeitherLaunchNorWait) {
  ActivityRecords records;
  records.calls = {call("cudaLaunchKernelExC", 1, 210, 220),
                   call("cudaStreamSynchronize", 0, 220, 230), call("cudaEventQuery", 0, 230, 231),
                   call("cudaMalloc", 0, 235, 236), call("cudaMemcpyAsync", 2, 240, 250)};
  records.work = {copy_work(2, CopyEnd::pageable, CopyEnd::device)};
  const Trace trace = assemble_trace(a_kernel_and_a_collective(), records, spans(), 4, 1);
  ASSERT_EQ(trace.calls.size(), 5U);
  for (const HostCall& one : trace.calls) {
    EXPECT_EQ(one.kind, CallKind::other) << one.name;
    EXPECT_FALSE(one.can_block) << one.name;
  }
}

TEST(AssembleTrace, AnAsynchronousCopyCanBlockOnlyWithAPageableEnd) {
  ActivityRecords records;
  records.calls = {call("cudaMemcpyAsync", 1, 110, 120), call("cudaMemcpyAsync", 2, 130, 140),
                   call("cudaMemcpyAsync", 3, 150, 160)};
  records.work = {copy_work(1, CopyEnd::pinned, CopyEnd::device),
                  copy_work(2, CopyEnd::pageable, CopyEnd::device),
                  copy_work(3, CopyEnd::device, CopyEnd::pageable)};
  const Trace trace = assemble_trace(two_operations(), records, spans(), 4, 1);
  ASSERT_EQ(trace.calls.size(), 3U);
  EXPECT_FALSE(trace.calls[0].can_block);
  EXPECT_TRUE(trace.calls[1].can_block);
  EXPECT_TRUE(trace.calls[2].can_block);
}

TEST(AssembleTrace, TheNthWorkOfAGraphIsTheNthThatWasCaptured) {
  StepPlan plan = two_operations();
  for (Operation& operation : plan.operations) operation.captured = true;
  ActivityRecords records;
  records.calls = {call("cudaGraphLaunch", 9, 110, 120)};
  records.work = {kernel_work(9, 700, 800), kernel_work(9, 400, 500)};
  records.graph_work = {0, 1};
  const Trace trace = assemble_trace(plan, records, spans(), 4, 1);
  ASSERT_EQ(trace.work.size(), 2U);
  EXPECT_TRUE(trace.work[0].from_graph);
  EXPECT_EQ(trace.work[0].operation, 0);
  EXPECT_EQ(trace.work[1].operation, 1);
}

TEST(AssembleTrace, TheKernelsThatALibraryMadeOfOneOperationAreAllOfIt) {
  StepPlan plan = two_operations();
  for (Operation& operation : plan.operations) operation.captured = true;
  ActivityRecords records;
  records.calls = {call("cudaGraphLaunch", 9, 110, 120)};
  records.work = {kernel_work(9, 400, 500), kernel_work(9, 500, 510), kernel_work(9, 510, 600)};
  records.graph_work = {0, 0, 1};
  const Trace trace = assemble_trace(plan, records, spans(), 4, 1);
  ASSERT_EQ(trace.work.size(), 3U);
  EXPECT_EQ(trace.work[0].operation, 0);
  EXPECT_EQ(trace.work[1].operation, 0);
  EXPECT_EQ(trace.work[2].operation, 1);
}

DeviceWork nccl_work(const char* name, std::int64_t begin, std::int64_t end) {
  DeviceWork work = kernel_work(9, begin, end);
  work.name = name;
  return work;
}

// Two kernels and three collectives of two kinds, with the dependencies of their capture.
StepPlan a_graph_with_collectives() {
  StepPlan plan;
  plan.operations.resize(5);
  plan.operations[0].action = LaunchKernel{};
  plan.operations[1].action = Collective{.kind = CollectiveKind::reduce_scatter};
  plan.operations[2].action = Collective{.kind = CollectiveKind::all_gather};
  plan.operations[3].action = LaunchKernel{};
  plan.operations[4].action = Collective{.kind = CollectiveKind::reduce_scatter};
  for (Operation& operation : plan.operations) operation.captured = true;
  return plan;
}

ActivityRecords records_of_a_graph(std::vector<DeviceWork> work) {
  ActivityRecords records;
  records.calls = {call("cudaGraphLaunch", 9, 110, 120)};
  records.work = std::move(work);
  records.graph_work = {0, 1, 2, 3, 4};
  return records;
}

std::vector<int> operations_of(const Trace& trace) {
  std::vector<int> operations;
  for (const DeviceWork& work : trace.work) operations.push_back(work.operation);
  return operations;
}

// Collectives may begin in another order than captured, but those of one kind keep their order.
TEST(AssembleTrace, CollectivesOfAGraphAreBesideItsOtherWork) {
  const char* const scatter = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL";
  const Trace trace = assemble_trace(
      a_graph_with_collectives(),
      records_of_a_graph({kernel_work(9, 400, 500), kernel_work(9, 500, 600),
                          nccl_work("ncclDevKernel_AllGather_RING_LL", 505, 900),
                          nccl_work(scatter, 510, 700), nccl_work(scatter, 700, 800)}),
      spans(), 4, 1);
  EXPECT_EQ(operations_of(trace), (std::vector<int>{0, 3, 2, 1, 4}));
  EXPECT_EQ(trace.work[2].kind, WorkKind::collective);
  EXPECT_EQ(trace.work[2].collective, CollectiveKind::all_gather);
  EXPECT_EQ(trace.work[3].collective, CollectiveKind::reduce_scatter);
  EXPECT_TRUE(trace.work[4].from_graph);
}

// A captured collective that does not run must be missing, even if others run.
TEST(AssembleTrace, ACollectiveThatAGraphLacksIsNotCounted) {
  const Trace trace = assemble_trace(
      a_graph_with_collectives(),
      records_of_a_graph({kernel_work(9, 400, 500), kernel_work(9, 500, 600),
                          nccl_work("ncclDevKernel_AllGather_RING_LL", 505, 900),
                          nccl_work("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", 510, 700)}),
      spans(), 4, 1);
  EXPECT_EQ(operations_of(trace), (std::vector<int>{0, 3, 2, 0}));
  EXPECT_EQ(trace.work[3].kind, WorkKind::kernel);
}

TEST(AssembleTrace, KeepsUnsteadyTimeOfTheTracedStepsOnly) {
  ActivityRecords records;
  records.unsteady = {{UnsteadyKind::module_loading, at(10), at(20)},
                      {UnsteadyKind::jit_compilation, at(250), at(260)}};
  const Trace trace = assemble_trace(two_operations(), records, spans(), 4, 1);
  ASSERT_EQ(trace.unsteady.size(), 1U);
  EXPECT_EQ(trace.unsteady[0].kind, UnsteadyKind::jit_compilation);
}

TEST(AssembleTrace, MemoryBelongsToTheOperationThatTookIt) {
  ActivityRecords records;
  records.memory_changes = {
      {.at = at(250), .bytes = -64}, {.at = at(150), .bytes = 64}, {.at = at(5), .bytes = 1}};
  const Trace trace = assemble_trace(two_operations(), records, spans(), 4, 1);
  ASSERT_EQ(trace.memory_changes.size(), 2U);
  EXPECT_EQ(trace.memory_changes[0].bytes, 64);
  EXPECT_EQ(trace.memory_changes[0].operation, 0);
  EXPECT_EQ(trace.memory_changes[1].operation, 1);
}

}  // namespace
}  // namespace stepgate
