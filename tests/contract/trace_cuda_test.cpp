// SPDX-License-Identifier: MIT
// Records every step of the suite on the local GPU, and tests which calls and which device work
// belong to each operation of its plan. The conformance test compares their counts with the plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "device/cuda/cuda_device.h"
#include "plan/analyse/access.h"
#include "plan/compose/build_step_plan.h"
#include "plan/compose/step_names.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

std::vector<StepPlan> all_plans() {
  std::vector<StepPlan> plans;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(STEPGATE_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() == ".toml") files.insert(entry.path());
  }
  for (const auto& file : files) {
    const Scenario scenario = read_scenario(file);
    if (is_planned_only(scenario)) continue;
    for (StepPlan& plan : build_step_plans(scenario, 7)) plans.push_back(std::move(plan));
  }
  return plans;
}

// The requests of a caching allocator to the driver differ from step to step; the tests of
// conformance check that the plan counts them.
bool asks_an_allocator(const StepPlan& plan, int index) {
  const Action& action = plan.operations[static_cast<std::size_t>(index)].action;
  const auto serves = [&](int buffer) {
    return plan.buffers[static_cast<std::size_t>(buffer)].allocated_by ==
           AllocatedBy::step_allocator;
  };
  if (const auto* allocate = std::get_if<Allocate>(&action)) return serves(allocate->buffer);
  if (const auto* release = std::get_if<Release>(&action)) return serves(release->buffer);
  return std::holds_alternative<EmptyCache>(action);
}

// The calls of the host and the work of the device for one operation at one step, in words.
std::string deeds_of(const Trace& trace, std::size_t span) {
  std::string words;
  for (const HostCall& call : trace.calls) {
    if (call.span != static_cast<int>(span)) continue;
    words += call.name + (call.can_block ? "! " : " ");
    for (const DeviceWork& work : trace.work) {
      if (work.correlation != call.correlation || call.correlation == 0) continue;
      words += fmt::format(
          "[{}{} s{} {} B {:.1f} us] ", work.name,
          work.kind == WorkKind::kernel ? "" : (work.kind == WorkKind::copy ? "copy" : "fill"),
          work.stream, work.bytes, static_cast<double>((work.end - work.begin).count()) / 1000);
    }
  }
  return words;
}

TEST(CudaTrace, ShowsTheSameCallsForAnOperationAtEveryStep) {
  const auto device = make_cuda_device(Recording::on);
  ASSERT_EQ(device->reason_against_tracing(), "");
  for (const StepPlan& plan : all_plans()) {
    auto step = device->load(plan);
    const StepResult result = step->run({.wash_out_steps = 50, .steps = 50, .trace = true});
    ASSERT_TRUE(result.trace);
    const Trace& trace = *result.trace;
    fmt::print("== {} {}: {} spans, {} calls, {} work, {} unsteady\n", plan.scenario, plan.variant,
               trace.spans.size(), trace.calls.size(), trace.work.size(), trace.unsteady.size());
    std::vector<std::string> names_of(trace.spans.size());
    for (const HostCall& call : trace.calls) {
      if (call.span >= 0) names_of.at(static_cast<std::size_t>(call.span)) += call.name + " ";
    }
    std::map<int, std::map<std::string, int>> forms;  // by operation: how often each
    for (std::size_t span = 0; span < trace.spans.size(); ++span) {
      ++forms[trace.spans[span].operation][names_of[span]];
    }
    for (std::size_t span = 0; span < trace.spans.size(); ++span) {
      if (trace.spans[span].step != trace.first_step + 20) continue;
      const int operation = trace.spans[span].operation;
      if (plan.operations.size() > 120 && operation % 40 != 0) continue;
      fmt::print(
          "  {:2} {:28} {:6.1f} us {}{}\n", operation,
          operation < 0 ? "(runner)" : plan.operations[static_cast<std::size_t>(operation)].name,
          static_cast<double>((trace.spans[span].end - trace.spans[span].begin).count()) / 1000,
          deeds_of(trace, span), forms[operation].size() > 1 ? " (differs)" : "");
    }
    for (const auto& [operation, names] : forms) {
      if (operation < 0 || asks_an_allocator(plan, operation)) continue;
      EXPECT_EQ(names.size(), 1U) << plan.scenario << ' ' << plan.variant << ' '
                                  << plan.operations[static_cast<std::size_t>(operation)].name;
    }
  }
}

TEST(CudaTrace, TellsTheClockOfTheMultiprocessors) {
  const auto device = make_cuda_device(Recording::on);
  const StepPlan plan = all_plans().front();
  const Trace trace =
      device->load(plan)->run({.wash_out_steps = 20, .steps = 50, .trace = true}).trace.value();
  EXPECT_GE(trace.clocks.size(), 25U) << "readings of one multiprocessor follow each other";
  for (const ClockReading& clock : trace.clocks) {
    EXPECT_GT(clock.hertz, 3e8);
    EXPECT_LT(clock.hertz, 4e9);
  }
}

// The driver has given at least the memory that the device's accounting shows, and not much more
// than its rounding of each allocation.
TEST(CudaTrace, BooksAsMuchMemoryAsTheDriverGave) {
  constexpr std::int64_t block_bytes = std::int64_t{2} << 20;
  const auto device = make_cuda_device(Recording::on);
  for (const StepPlan& plan : all_plans()) {
    if (uses_managed_memory(plan)) continue;  // the driver moves its pages at any time
    const std::int64_t free_before = device->identity().free_memory_bytes;
    const auto step = device->load(plan);
    const Trace trace = step->run({.wash_out_steps = 20, .steps = 5, .trace = true}).trace.value();
    const std::int64_t taken = free_before - device->identity().free_memory_bytes;
    std::int64_t stays = 0;
    for (const Buffer& buffer : plan.buffers) {
      if (buffer.memory == MemoryKind::device && buffer.allocated_by == AllocatedBy::the_plan)
        stays += buffer.bytes * buffer.slots;
    }
    const std::int64_t reported = trace.memory.driver_bytes.value();
    fmt::print("{} {}: planned {}, booked {}, taken from the driver {}, reported {}\n",
               plan.scenario, plan.variant, stays, trace.memory.peak_reserved_bytes, taken,
               reported);
    // Streams exist before the report begins.
    EXPECT_LE(reported, taken + block_bytes) << plan.scenario << ' ' << plan.variant;
    EXPECT_GE(reported, stays - block_bytes) << plan.scenario << ' ' << plan.variant;
    // A block that the driver had taken for an earlier step may serve this one.
    EXPECT_GE(taken, stays - block_bytes) << plan.scenario << ' ' << plan.variant;
    // The rest is blocks, and memory that the driver takes for modules, streams and graphs.
    EXPECT_LE(taken, trace.memory.peak_reserved_bytes +
                         block_bytes * static_cast<std::int64_t>(plan.buffers.size() + 32))
        << plan.scenario << ' ' << plan.variant;
  }
}

}  // namespace
}  // namespace stepgate
