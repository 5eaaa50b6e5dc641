// SPDX-License-Identifier: MIT
#include "device/cuda/cupti/cupti.h"

#include <cupti.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <vector>

#include "base/process/attached_tool.h"
#include "device/cuda/cupti/cupti_records.h"
#include "device/device.h"
#include "kernels/dynamic_library.h"

namespace stepgate {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr std::size_t buffer_alignment = 8;
// The oldest supported version is that of CUDA 12.0. Records of older versions have not been
// checked.
constexpr std::uint32_t oldest_version = 18;

std::uint64_t raw_nanoseconds() {
  // CLOCK_MONOTONIC_RAW is used since CLOCK_MONOTONIC may be adjusted while steps run.
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

struct Filled {
  std::uint8_t* memory = nullptr;
  std::size_t bytes = 0;
};

// Buffers that CUPTI's threads have filled and that have not been read. There is one instance,
// since CUPTI's callbacks take no user argument.
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

// Ordered by importance, so that an older library fails only at the last kinds.
constexpr std::array recorded_kinds{
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_OVERHEAD};

// Driver calls that libraries make directly. For all other driver calls, the runtime call that
// contains them is enough.
constexpr std::array<CUpti_CallbackId, 16> recorded_driver_calls{
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
    CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
    CUPTI_DRIVER_TRACE_CBID_cuMemCreate,
    CUPTI_DRIVER_TRACE_CBID_cuMemUnmap};

constexpr std::array counted_page_events{
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT};

std::vector<DynamicLibraryPlace> places_of_cupti() {
  std::vector<DynamicLibraryPlace> places{{"libcupti.so.13"}, {"libcupti.so"}};
  if (const char* home = std::getenv("CUDA_HOME")) {
    places.push_back({std::string(home) + "/extras/CUPTI/lib64/libcupti.so"});
    places.push_back({std::string(home) + "/lib64/libcupti.so"});
  }
  places.push_back({STEPGATE_CUPTI_LIBRARY});
  return places;
}

}  // namespace

TraceTime trace_now() {
  return TraceTime(static_cast<std::int64_t>(raw_nanoseconds()));
}

// The functions of the library, with the types of the build's header. Records only grow from
// version to version, so fields that the oldest version had can be read.
struct Cupti::Library {
  std::string unavailable;
  CUpti_SubscriberHandle subscriber = nullptr;

  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiSubscribe_v2) subscribe_v2 = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;
  decltype(&cuptiActivityConfigureUnifiedMemoryCounter) configure_pages = nullptr;
  bool watches_pages = false;

  CUptiResult count_pages(bool on);

  std::string in_words(CUptiResult result) const {
    const char* text = nullptr;
    if (result_string && result_string(result, &text) == CUPTI_SUCCESS && text) return text;
    return fmt::format("error {}", static_cast<int>(result));
  }

  void open() {
    // Two profilers in one process may wait for each other instead of reporting an error.
    if (const auto mark = attached_tool()) {
      unavailable = fmt::format("another tool is attached to the process: {} is set", *mark);
      return;
    }
    DynamicLibrary library(
        {.name = "CUPTI", .variable = "STEPGATE_CUPTI", .places = places_of_cupti()});
    constexpr auto optional = DynamicFunction::optional;
    library.bind({{"cuptiGetVersion", &get_version},
                  {"cuptiSubscribe", &subscribe},
                  {"cuptiActivityRegisterCallbacks", &register_callbacks},
                  {"cuptiActivityRegisterTimestampCallback", &register_clock},
                  {"cuptiActivityEnable", &enable},
                  {"cuptiActivityFlushAll", &flush_all},
                  {"cuptiActivityGetNextRecord", &next_record},
                  {"cuptiActivityGetNumDroppedRecords", &dropped_records},
                  {"cuptiGetCallbackName", &callback_name},
                  {"cuptiGetResultString", &result_string, optional},
                  {"cuptiSubscribe_v2", &subscribe_v2, optional},
                  {"cuptiUnsubscribe", &unsubscribe, optional},
                  {"cuptiActivityDisable", &disable, optional},
                  {"cuptiActivityEnableDriverApi", &enable_driver_call, optional},
                  {"cuptiActivityConfigureUnifiedMemoryCounter", &configure_pages, optional}});
    unavailable = library.unavailable();
    if (!unavailable.empty()) return;
    std::uint32_t version = 0;
    if (get_version(&version) != CUPTI_SUCCESS || version < oldest_version) {
      unavailable = fmt::format("{} is of version {}, {} is the oldest that will do",
                                library.file(), version, oldest_version);
      return;
    }
    start();
  }

  // Subscribes to CUPTI, which fails if another tool already has.
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
};

CUptiResult Cupti::Library::count_pages(bool on) {
  std::vector<CUpti_ActivityUnifiedMemoryCounterConfig> counters;
  for (const CUpti_ActivityUnifiedMemoryCounterKind kind : counted_page_events) {
    counters.push_back({.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
                        .kind = kind,
                        .deviceId = 0,
                        .enable = on ? 1U : 0U});
  }
  return configure_pages(counters.data(), static_cast<std::uint32_t>(counters.size()));
}

void Cupti::watch_pages() {
  if (library_->watches_pages || !library_->configure_pages) return;
  CUptiResult result = library_->count_pages(true);
  if (result == CUPTI_SUCCESS) {
    result = library_->enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
  }
  library_->watches_pages = result == CUPTI_SUCCESS;
}

Cupti::Cupti() : library_(std::make_unique<Library>()) {
  library_->open();
}

// Does not close the library, since its threads may still run when the process ends. Disables the
// counters, since configured ones could not be configured again.
Cupti::~Cupti() {
  if (library_->watches_pages) {
    if (library_->disable) (void)library_->disable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
    (void)library_->count_pages(false);
  }
  if (library_->subscriber && library_->unsubscribe) {
    (void)library_->unsubscribe(library_->subscriber);
  }
}

const std::string& Cupti::unavailable() const {
  return library_->unavailable;
}

ActivityRecords Cupti::take() {
  ActivityRecords records;
  const auto begin = std::chrono::steady_clock::now();
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
  if (library_->watches_pages) records.page_events.emplace();
  CuptiRecords reader(library_->callback_name);
  for (const Filled& buffer : filled) {
    CUpti_Activity* record = nullptr;
    while (buffer.bytes > 0 &&
           library_->next_record(buffer.memory, buffer.bytes, &record) == CUPTI_SUCCESS) {
      reader.read(*record, records);
    }
    std::free(buffer.memory);
  }
  std::size_t dropped = 0;
  const CUptiResult asked = library_->dropped_records(nullptr, 0, &dropped);
  if (asked != CUPTI_SUCCESS || dropped > 0) {
    throw DeviceError(fmt::format("CUPTI lost {} records of the trace", dropped));
  }
  records.collected_in = std::chrono::steady_clock::now() - begin;
  return records;
}

}  // namespace stepgate
