// SPDX-License-Identifier: MIT
#include "device/cuda/cupti.h"

#include <cupti.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <vector>

#include "device/cuda/call_kinds.h"
#include "device/cuda/kernel_name.h"
#include "device/device.h"

namespace stepgate {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr std::size_t buffer_alignment = 8;
// Of CUDA 12.0. What the records of older ones look like was not looked up.
constexpr std::uint32_t oldest_version = 18;

std::uint64_t raw_nanoseconds() {
  // Unlike CLOCK_MONOTONIC this one is not adjusted while steps run.
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

TraceTime trace_time(std::uint64_t nanoseconds) {
  return TraceTime(static_cast<std::int64_t>(nanoseconds));
}

struct Filled {
  std::uint8_t* memory = nullptr;
  std::size_t bytes = 0;
};

// What CUPTI's threads have filled and nobody has read yet. Its callbacks take no argument of ours,
// so there can be only one.
struct FilledBuffers {
  std::mutex mutex;
  std::vector<Filled> all;
};

FilledBuffers& filled_buffers() {
  static FilledBuffers buffers;
  return buffers;
}

void CUPTIAPI request_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes));
  *bytes = *buffer ? buffer_bytes : 0;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI complete_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                              std::size_t valid_bytes) {
  FilledBuffers& buffers = filled_buffers();
  const std::lock_guard lock(buffers.mutex);
  buffers.all.push_back({buffer, valid_bytes});
}

void CUPTIAPI ignore_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

// In this order, so that a library that knows fewer kinds fails at the least important.
constexpr std::array recorded_kinds{
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_OVERHEAD};

// What libraries call directly. Of all others the runtime's call is enough.
constexpr std::array<CUpti_CallbackId, 14> recorded_driver_calls{
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
    CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize};

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
      return std::nullopt;  // the library's own business
  }
}

// The given library, or those that may be there.
std::vector<std::string> library_names() {
  if (const char* given = std::getenv("STEPGATE_CUPTI")) return {given};
  std::vector<std::string> names{"libcupti.so.13", "libcupti.so"};
  if (const char* home = std::getenv("CUDA_HOME")) {
    names.push_back(std::string(home) + "/extras/CUPTI/lib64/libcupti.so");
    names.push_back(std::string(home) + "/lib64/libcupti.so");
  }
  names.emplace_back(STEPGATE_CUPTI_LIBRARY);
  return names;
}

}  // namespace

TraceTime trace_now() {
  return trace_time(raw_nanoseconds());
}

// The functions, typed by the header that the build has. Records only grow from version to version,
// so fields of that header can be read as far as the oldest version had them.
struct Cupti::Library {
  void* handle = nullptr;
  std::string unavailable;
  CUpti_SubscriberHandle subscriber = nullptr;
  std::map<const char*, std::string> kernel_names;
  std::map<std::pair<int, CUpti_CallbackId>, std::string> call_names;

  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiSubscribe_v2) subscribe_v2 = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;

  template <class Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }

  std::string in_words(CUptiResult result) const {
    const char* text = nullptr;
    if (result_string && result_string(result, &text) == CUPTI_SUCCESS && text) return text;
    return fmt::format("error {}", static_cast<int>(result));
  }

  void open() {
    std::string reasons;
    for (const std::string& name : library_names()) {
      handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle) return find_functions(name);
      const char* reason = dlerror();
      if (reasons.empty()) reasons = reason ? reason : name + " cannot be opened";
    }
    unavailable = "CUPTI cannot be opened: " + reasons;
  }

  void find_functions(const std::string& name) {
    const bool usable = find(get_version, "cuptiGetVersion") && find(subscribe, "cuptiSubscribe") &&
                        find(register_callbacks, "cuptiActivityRegisterCallbacks") &&
                        find(register_clock, "cuptiActivityRegisterTimestampCallback") &&
                        find(enable, "cuptiActivityEnable") &&
                        find(flush_all, "cuptiActivityFlushAll") &&
                        find(next_record, "cuptiActivityGetNextRecord") &&
                        find(dropped_records, "cuptiActivityGetNumDroppedRecords") &&
                        find(callback_name, "cuptiGetCallbackName");
    find(result_string, "cuptiGetResultString");
    find(subscribe_v2, "cuptiSubscribe_v2");
    find(unsubscribe, "cuptiUnsubscribe");
    find(enable_driver_call, "cuptiActivityEnableDriverApi");
    if (!usable) {
      unavailable = name + " is not the CUPTI of CUDA 12 or later";
      return;
    }
    std::uint32_t version = 0;
    if (get_version(&version) != CUPTI_SUCCESS || version < oldest_version) {
      unavailable = fmt::format("{} is of version {}, {} is the oldest that will do", name, version,
                                oldest_version);
      return;
    }
    start();
  }

  // Only one tool at a time can hold CUPTI, and being subscribed is how it shows.
  void start() {
    std::array<char, 2 * CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> holder{};
    CUptiResult result = CUPTI_SUCCESS;
    if (subscribe_v2) {
      CUpti_SubscriberParams parameters{.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                        .subscriberName = "stepgate",
                                        .oldSubscriberName = holder.data(),
                                        .oldSubscriberSize = holder.size()};
      result = subscribe_v2(&subscriber, ignore_callback, nullptr, &parameters);
    } else {
      result = subscribe(&subscriber, ignore_callback, nullptr);
    }
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
      unavailable =
          fmt::format("CUPTI is held by another tool{}{}", holder[0] ? ": " : "", holder.data());
      return;
    }
    if (result != CUPTI_SUCCESS) {
      unavailable = "CUPTI does not start: " + in_words(result);
      return;
    }
    result = register_clock(raw_nanoseconds);
    if (result == CUPTI_SUCCESS) result = register_callbacks(request_buffer, complete_buffer);
    for (const CUpti_ActivityKind kind : recorded_kinds) {
      if (result == CUPTI_SUCCESS) result = enable(kind);
    }
    for (const CUpti_CallbackId call : recorded_driver_calls) {
      if (result == CUPTI_SUCCESS && enable_driver_call) result = enable_driver_call(call, 1);
    }
    if (result != CUPTI_SUCCESS) unavailable = "CUPTI does not record: " + in_words(result);
  }

  const std::string& name_of_kernel(const char* symbol) {
    const auto [place, is_new] = kernel_names.try_emplace(symbol);
    if (is_new) place->second = readable_kernel_name(symbol);
    return place->second;
  }

  const std::string& name_of_call(CUpti_CallbackDomain domain, CUpti_CallbackId call) {
    const auto [place, is_new] = call_names.try_emplace({static_cast<int>(domain), call});
    const char* name = nullptr;
    if (is_new && callback_name(domain, call, &name) == CUPTI_SUCCESS && name) {
      place->second = plain_call_name(name);
    }
    return place->second;
  }

  void read(const CUpti_Activity* record, ActivityRecords& records);
  void read_call(const CUpti_ActivityAPI&, bool of_driver, ActivityRecords&);
  void read_kernel(const CUpti_ActivityKernel10&, ActivityRecords&);
  void read_memory(const CUpti_ActivityMemory4&, ActivityRecords&);
  void read_overhead(const CUpti_ActivityOverhead3&, ActivityRecords&);
};

void Cupti::Library::read_call(const CUpti_ActivityAPI& call, bool of_driver,
                               ActivityRecords& records) {
  const auto domain = of_driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  records.calls.push_back({.name = name_of_call(domain, call.cbid),
                           .of_driver = of_driver,
                           .correlation = call.correlationId,
                           .begin = trace_time(call.start),
                           .end = trace_time(call.end)});
}

void Cupti::Library::read_kernel(const CUpti_ActivityKernel10& kernel, ActivityRecords& records) {
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

void Cupti::Library::read_memory(const CUpti_ActivityMemory4& memory, ActivityRecords& records) {
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

void Cupti::Library::read_overhead(const CUpti_ActivityOverhead3& overhead,
                                   ActivityRecords& records) {
  const auto kind = unsteady_kind(overhead.overheadKind);
  if (!kind) return;
  records.unsteady.push_back(
      {.kind = *kind, .begin = trace_time(overhead.start), .end = trace_time(overhead.end)});
}

void Cupti::Library::read(const CUpti_Activity* record, ActivityRecords& records) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return read_call(*reinterpret_cast<const CUpti_ActivityAPI*>(record), false, records);
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return read_call(*reinterpret_cast<const CUpti_ActivityAPI*>(record), true, records);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return read_kernel(*reinterpret_cast<const CUpti_ActivityKernel10*>(record), records);
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      records.work.push_back({.kind = WorkKind::copy,
                              .name = {},
                              .stream = static_cast<int>(copy.streamId),
                              .correlation = copy.correlationId,
                              .begin = trace_time(copy.start),
                              .end = trace_time(copy.end),
                              .bytes = static_cast<std::int64_t>(copy.bytes),
                              .from = end_of_copy(copy.srcKind),
                              .to = end_of_copy(copy.dstKind)});
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      records.work.push_back({.kind = WorkKind::fill,
                              .name = {},
                              .stream = static_cast<int>(fill.streamId),
                              .correlation = fill.correlationId,
                              .begin = trace_time(fill.start),
                              .end = trace_time(fill.end),
                              .bytes = static_cast<std::int64_t>(fill.bytes),
                              .to = end_of_copy(static_cast<std::uint8_t>(fill.memoryKind))});
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return read_memory(*reinterpret_cast<const CUpti_ActivityMemory4*>(record), records);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return read_overhead(*reinterpret_cast<const CUpti_ActivityOverhead3*>(record), records);
    default:
      return;
  }
}

Cupti::Cupti() : library_(std::make_unique<Library>()) {
  library_->open();
}

// The library stays open: its threads may still be at work when the process ends.
Cupti::~Cupti() {
  if (library_->subscriber && library_->unsubscribe) {
    (void)library_->unsubscribe(library_->subscriber);
  }
}

const std::string& Cupti::unavailable() const {
  return library_->unavailable;
}

ActivityRecords Cupti::take() {
  const CUptiResult flushed = library_->flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (flushed != CUPTI_SUCCESS) {
    throw DeviceError("CUPTI does not give its records: " + library_->in_words(flushed));
  }
  std::vector<Filled> filled;
  {
    FilledBuffers& buffers = filled_buffers();
    const std::lock_guard lock(buffers.mutex);
    filled.swap(buffers.all);
  }
  ActivityRecords records;
  for (const Filled& buffer : filled) {
    CUpti_Activity* record = nullptr;
    while (buffer.bytes > 0 &&
           library_->next_record(buffer.memory, buffer.bytes, &record) == CUPTI_SUCCESS) {
      library_->read(record, records);
    }
    std::free(buffer.memory);
  }
  std::size_t dropped = 0;
  const CUptiResult asked = library_->dropped_records(nullptr, 0, &dropped);
  if (asked != CUPTI_SUCCESS || dropped > 0) {
    throw DeviceError(fmt::format("CUPTI lost {} records of the trace", dropped));
  }
  return records;
}

}  // namespace stepgate
