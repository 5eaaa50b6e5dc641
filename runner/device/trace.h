// SPDX-License-Identifier: MIT
// Events while a few steps ran: the calls of the host and the work of the device, on one monotonic
// clock. Devices record it; measure and judge derive all else from it.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/record/fields.h"
#include "device/call_kind.h"
#include "plan/step_plan.h"

namespace stepgate {

// Time since some moment before the first record; the origin is the same for all times of a trace.
using TraceTime = std::chrono::nanoseconds;

// Time that the host spent on one operation of the plan, or on the runner itself.
struct HostSpan {
  int operation = -1;     // index into StepPlan::operations; -1: the runner's own business, such
                          // as holding the host back, which is no part of the step
  std::int64_t step = 0;  // number of the step that the host was at
  std::int64_t acts_for = 0;  // the step that the operation acted for
  TraceTime begin{0};
  TraceTime end{0};
};
template <>
inline constexpr auto fields_of<HostSpan> =
    row_fields<&HostSpan::operation, &HostSpan::step, &HostSpan::acts_for, &HostSpan::begin,
               &HostSpan::end>;

// One call of the CUDA runtime, or of the driver where no runtime call stands around it. Polls of
// one operation are one call.
struct HostCall {
  std::string name = {};  // "cudaMemcpyAsync"
  CallKind kind = CallKind::other;
  // Whether the host may wait in the call for the device: it is an explicit wait, a synchronous
  // copy, a copy with a pageable end, or a release that waits.
  bool can_block = false;
  int span = -1;                  // index into Trace::spans
  std::uint32_t correlation = 0;  // links the call to the device work that it caused; 0: none
  std::int64_t count = 1;         // polls that were put together
  TraceTime begin{0};
  TraceTime end{0};
};
template <>
inline constexpr auto fields_of<HostCall> =
    row_fields<&HostCall::name, &HostCall::kind, &HostCall::can_block, &HostCall::span,
               &HostCall::correlation, &HostCall::count, &HostCall::begin, &HostCall::end>;

enum class WorkKind { kernel, copy, fill, collective };

// The memory at one end of a copy, as the driver sees it.
enum class CopyEnd { unknown, pageable, pinned, device, managed };

// Something that ran on the device.
struct DeviceWork {
  WorkKind kind = WorkKind::kernel;
  std::string name = {};  // of a kernel, readable: "stepgate::cross_entropy_kernel"
  int stream = 0;         // as the driver numbers them
  int operation = -1;     // of the plan; -1: the runner's own
  std::int64_t step = 0;  // number of the step that the host was at
  std::uint32_t correlation = 0;
  bool from_graph = false;
  TraceTime begin{0};
  TraceTime end{0};
  std::int64_t bytes = 0;  // of a copy or a fill; of a collective its total
  CopyEnd from = CopyEnd::unknown;
  CopyEnd to = CopyEnd::unknown;
  std::array<int, 3> grid{};  // of a kernel
  std::array<int, 3> block{};
  int registers_per_thread = 0;
  std::int64_t shared_memory_bytes = 0;           // static and dynamic
  std::optional<CollectiveKind> collective = {};  // of a collective
};
template <>
inline constexpr auto fields_of<DeviceWork> =
    row_fields<&DeviceWork::kind, &DeviceWork::name, &DeviceWork::stream, &DeviceWork::operation,
               &DeviceWork::step, &DeviceWork::correlation, &DeviceWork::from_graph,
               &DeviceWork::begin, &DeviceWork::end, &DeviceWork::bytes, &DeviceWork::from,
               &DeviceWork::to, &DeviceWork::grid, &DeviceWork::block,
               &DeviceWork::registers_per_thread, &DeviceWork::shared_memory_bytes,
               &DeviceWork::collective>;

// The time when one of several ranks arrived at a collective, which begins when the last rank has
// arrived.
struct RankArrival {
  int operation = -1;     // of the plan
  std::int64_t step = 0;  // that the host was at
  int rank = 0;
  TraceTime at{0};
};
template <>
inline constexpr auto fields_of<RankArrival> =
    row_fields<&RankArrival::operation, &RankArrival::step, &RankArrival::rank, &RankArrival::at>;

// The algorithm that a library uses for collectives of a kind and size.
struct CollectiveAlgorithm {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t bytes = 0;      // total over all ranks
  std::string algorithm = {};  // "ring"
  std::string protocol = {};   // "simple"
  std::int64_t channels = 0;
  auto operator<=>(const CollectiveAlgorithm&) const = default;
};
template <>
inline constexpr auto fields_of<CollectiveAlgorithm> =
    row_fields<&CollectiveAlgorithm::kind, &CollectiveAlgorithm::bytes,
               &CollectiveAlgorithm::algorithm, &CollectiveAlgorithm::protocol,
               &CollectiveAlgorithm::channels>;

// Facts about the collectives of the traced steps, from the collective library's own record or from
// the simulated machine.
struct LibraryRecord {
  std::string library = {};      // "NCCL 2.28.9"
  std::string unavailable = {};  // why there is no record, in words; empty if there is one
  std::string difference = {};   // first difference from the plan, in words; empty: none
  std::vector<CollectiveAlgorithm> algorithms = {};  // each once, by kind and size
  std::string guessed = {};  // times that were not measured, in words; empty: none
  // Some collectives are in a graph: the library reports those at capture, and not when they run.
  bool captured = false;
};
template <>
inline constexpr auto fields_of<LibraryRecord> =
    fields<&LibraryRecord::library, &LibraryRecord::unavailable, &LibraryRecord::difference,
           &LibraryRecord::algorithms, &LibraryRecord::guessed, &LibraryRecord::captured>;

// Memory taken (bytes above 0) or given back (below 0), as the driver saw it.
struct MemoryChange {
  TraceTime at{0};
  std::int64_t bytes = 0;
  MemoryKind memory = MemoryKind::device;  // device or pinned
  int operation = -1;                      // of the plan; -1: outside of the steps
};
template <>
inline constexpr auto fields_of<MemoryChange> =
    row_fields<&MemoryChange::at, &MemoryChange::bytes, &MemoryChange::memory,
               &MemoryChange::operation>;

// Events of pages of managed memory.
enum class PageEventKind {
  device_faults,  // a kernel touched pages that were not on the device
  host_faults,    // the host touched pages that were not on the host
  to_device,      // pages moved, on a fault or by a prefetch
  to_host
};

struct PageEvent {
  PageEventKind kind = PageEventKind::device_faults;
  std::int64_t amount = 0;  // of faults, or of bytes moved
  TraceTime begin{0};
  TraceTime end{0};
};
template <>
inline constexpr auto fields_of<PageEvent> =
    row_fields<&PageEvent::kind, &PageEvent::amount, &PageEvent::begin, &PageEvent::end>;

// Events that do not belong into a steady step.
enum class UnsteadyKind { module_loading, jit_compilation, command_buffer_full, other };

struct Unsteady {
  UnsteadyKind kind = UnsteadyKind::other;
  TraceTime begin{0};
  TraceTime end{0};
};
template <>
inline constexpr auto fields_of<Unsteady> =
    row_fields<&Unsteady::kind, &Unsteady::begin, &Unsteady::end>;

// Memory of the traced step, by the accounting of the device and of the driver.
struct MemoryUse {
  // Most bytes in buffers at one time, by Purpose; PyTorch calls this allocated.
  std::array<std::int64_t, purpose_count> allocated_bytes{};
  std::int64_t peak_allocated_bytes = 0;  // largest sum over all purposes
  std::int64_t peak_reserved_bytes = 0;   // most taken from the driver, used or not
  std::int64_t pinned_bytes = 0;          // pinned host memory
  // Device memory at the end of the traced steps that was free when the load began, by the driver's
  // report of free memory. Memory left by the load before counts as far as this step requested it.
  // The report covers the whole device, so other processes affect it. Absent where there is no such
  // report.
  std::optional<std::int64_t> driver_bytes = {};
};
template <>
inline constexpr auto fields_of<MemoryUse> =
    fields<&MemoryUse::allocated_bytes, &MemoryUse::peak_allocated_bytes,
           &MemoryUse::peak_reserved_bytes, &MemoryUse::pinned_bytes, &MemoryUse::driver_bytes>;

// The mean clock of the device's multiprocessors since the reading before.
struct ClockReading {
  TraceTime at{0};
  double hertz = 0;
};
template <>
inline constexpr auto fields_of<ClockReading> = row_fields<&ClockReading::at, &ClockReading::hertz>;

// A trace of `steps` consecutive steps, from `first_step` on. Work, calls and spans are those that
// the host issued at these steps, each in the order of `begin`.
struct Trace {
  std::int64_t first_step = 0;
  std::int64_t steps = 0;
  // Number of steps at the end that count nowhere: the first work of the last step marks the end of
  // the steps before it, including the pause after them.
  std::int64_t closing_steps = 0;
  std::vector<HostSpan> spans;
  std::vector<HostCall> calls;
  std::vector<DeviceWork> work;
  std::vector<MemoryChange> memory_changes;
  std::vector<Unsteady> unsteady;
  // Events from the begin of the first span to the end of the last; absent if not known.
  std::optional<std::vector<PageEvent>> page_events;
  std::vector<ClockReading> clocks;  // in the order of their times; empty if not known
  MemoryUse memory;
  int rank = 0;            // the rank that was traced
  std::vector<int> alike;  // other ranks that this trace stands for
  // Arrivals of this rank and others at its collectives, in the order in which it issued them. One
  // rank may stand for all that are alike; empty if not known.
  std::vector<RankArrival> arrivals;
  std::optional<LibraryRecord> library;  // absent if there is no such library
  // Wall time that was spent after the last step on collecting and merging the records.
  std::chrono::nanoseconds collected_in{0};
};
template <>
inline constexpr auto fields_of<Trace> =
    fields<&Trace::first_step, &Trace::steps, &Trace::closing_steps, &Trace::spans, &Trace::calls,
           &Trace::work, &Trace::memory_changes, &Trace::unsteady, &Trace::page_events,
           &Trace::clocks, &Trace::memory, &Trace::rank, &Trace::alike, &Trace::arrivals,
           &Trace::library, &Trace::collected_in>;

}  // namespace stepgate
