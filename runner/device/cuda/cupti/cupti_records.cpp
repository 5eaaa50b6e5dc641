// SPDX-License-Identifier: MIT
#include "device/cuda/cupti/cupti_records.h"

#include <optional>

#include "device/cuda/cupti/call_kinds.h"
#include "device/cuda/cupti/kernel_name.h"

namespace stepgate {
namespace {

TraceTime trace_time(std::uint64_t nanoseconds) {
  return TraceTime(static_cast<std::int64_t>(nanoseconds));
}

CopyEnd end_of_copy(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return CopyEnd::pageable;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return CopyEnd::pinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
      return CopyEnd::device;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
      return CopyEnd::managed;
    default:
      return CopyEnd::unknown;
  }
}

std::optional<UnsteadyKind> unsteady_kind(CUpti_ActivityOverheadKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      return UnsteadyKind::jit_compilation;
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
      return UnsteadyKind::module_loading;
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
      return UnsteadyKind::command_buffer_full;
    default:
      return std::nullopt;  // internal work of the library
  }
}

std::optional<PageEventKind> page_event_kind(CUpti_ActivityUnifiedMemoryCounterKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD:
      return PageEventKind::to_device;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
      return PageEventKind::to_host;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT:
      return PageEventKind::host_faults;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT:
      return PageEventKind::device_faults;
    default:
      return std::nullopt;
  }
}

template <class Record>
const Record& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

}  // namespace

const std::string& CuptiRecords::name_of_kernel(const char* symbol) {
  const auto [place, is_new] = kernel_names_.try_emplace(symbol);
  if (is_new) place->second = readable_kernel_name(symbol);
  return place->second;
}

const std::string& CuptiRecords::name_of_call(CUpti_CallbackDomain domain, CUpti_CallbackId call) {
  const auto [place, is_new] = call_names_.try_emplace({domain, call});
  const char* name = nullptr;
  if (is_new && callback_name_(domain, call, &name) == CUPTI_SUCCESS && name) {
    place->second = plain_call_name(name);
  }
  return place->second;
}

void CuptiRecords::read_call(const CUpti_ActivityAPI& call, CUpti_CallbackDomain domain,
                             ActivityRecords& records) {
  records.calls.push_back({.name = name_of_call(domain, call.cbid),
                           .of_driver = domain == CUPTI_CB_DOMAIN_DRIVER_API,
                           .correlation = call.correlationId,
                           .begin = trace_time(call.start),
                           .end = trace_time(call.end)});
}

void CuptiRecords::read_kernel(const CUpti_ActivityKernel10& kernel, ActivityRecords& records) {
  records.work.push_back(
      {.kind = WorkKind::kernel,
       .name = name_of_kernel(kernel.name),
       .stream = static_cast<int>(kernel.streamId),
       .correlation = kernel.correlationId,
       .begin = trace_time(kernel.start),
       .end = trace_time(kernel.end),
       .grid = {kernel.gridX, kernel.gridY, kernel.gridZ},
       .block = {kernel.blockX, kernel.blockY, kernel.blockZ},
       .registers_per_thread = kernel.registersPerThread,
       .shared_memory_bytes = kernel.staticSharedMemory + kernel.dynamicSharedMemory});
}

void CuptiRecords::read_memory(const CUpti_ActivityMemory4& memory, ActivityRecords& records) {
  const bool taken = memory.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  const bool given = memory.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  const CopyEnd where = end_of_copy(static_cast<std::uint8_t>(memory.memoryKind));
  if ((!taken && !given) || (where != CopyEnd::device && where != CopyEnd::pinned)) return;
  const auto bytes = static_cast<std::int64_t>(memory.bytes);
  records.memory_changes.push_back(
      {.at = trace_time(memory.timestamp),
       .bytes = taken ? bytes : -bytes,
       .memory = where == CopyEnd::device ? MemoryKind::device : MemoryKind::pinned});
}

void CuptiRecords::read_overhead(const CUpti_ActivityOverhead3& overhead,
                                 ActivityRecords& records) {
  const auto kind = unsteady_kind(overhead.overheadKind);
  if (!kind) return;
  records.unsteady.push_back(
      {.kind = *kind, .begin = trace_time(overhead.start), .end = trace_time(overhead.end)});
}

void CuptiRecords::read_copy(const CUpti_ActivityMemcpy6& copy, ActivityRecords& records) {
  records.work.push_back({.kind = WorkKind::copy,
                          .name = {},
                          .stream = static_cast<int>(copy.streamId),
                          .correlation = copy.correlationId,
                          .begin = trace_time(copy.start),
                          .end = trace_time(copy.end),
                          .bytes = static_cast<std::int64_t>(copy.bytes),
                          .from = end_of_copy(copy.srcKind),
                          .to = end_of_copy(copy.dstKind)});
}

void CuptiRecords::read_fill(const CUpti_ActivityMemset4& fill, ActivityRecords& records) {
  records.work.push_back({.kind = WorkKind::fill,
                          .name = {},
                          .stream = static_cast<int>(fill.streamId),
                          .correlation = fill.correlationId,
                          .begin = trace_time(fill.start),
                          .end = trace_time(fill.end),
                          .bytes = static_cast<std::int64_t>(fill.bytes),
                          .to = end_of_copy(static_cast<std::uint8_t>(fill.memoryKind))});
}

// The value of a device's page fault is the number of faults of that page. The value of a host's
// fault is an address, and each record is one fault.
void CuptiRecords::read_pages(const CUpti_ActivityUnifiedMemoryCounter3& counter,
                              ActivityRecords& records) {
  const auto kind = page_event_kind(counter.counterKind);
  if (!kind || !records.page_events) return;
  const bool counted = *kind != PageEventKind::host_faults;
  // The record of a host fault has no end time.
  const std::uint64_t end = counter.end > counter.start ? counter.end : counter.start;
  records.page_events->push_back({.kind = *kind,
                                  .amount = counted ? static_cast<std::int64_t>(counter.value) : 1,
                                  .begin = trace_time(counter.start),
                                  .end = trace_time(end)});
}

void CuptiRecords::read(const CUpti_Activity& record, ActivityRecords& records) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return read_call(as<CUpti_ActivityAPI>(record), CUPTI_CB_DOMAIN_RUNTIME_API, records);
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return read_call(as<CUpti_ActivityAPI>(record), CUPTI_CB_DOMAIN_DRIVER_API, records);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return read_kernel(as<CUpti_ActivityKernel10>(record), records);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return read_copy(as<CUpti_ActivityMemcpy6>(record), records);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return read_fill(as<CUpti_ActivityMemset4>(record), records);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return read_memory(as<CUpti_ActivityMemory4>(record), records);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return read_overhead(as<CUpti_ActivityOverhead3>(record), records);
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
      return read_pages(as<CUpti_ActivityUnifiedMemoryCounter3>(record), records);
    default:
      return;
  }
}

}  // namespace stepgate
