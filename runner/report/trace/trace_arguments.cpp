// SPDX-License-Identifier: MIT
#include "report/trace/trace_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "report/text/occupancy.h"
#include "report/trace/trace_events.h"

namespace stepgate {
namespace {

// CUPTI's numbers of the runtime's calls (cupti_runtime_cbid.h).
struct CallNumber {
  std::string_view name;
  int number;
};
constexpr std::array call_numbers{CallNumber{"cudaMalloc", 20},
                                  CallNumber{"cudaFree", 22},
                                  CallNumber{"cudaMallocHost", 25},
                                  CallNumber{"cudaFreeHost", 26},
                                  CallNumber{"cudaHostAlloc", 27},
                                  CallNumber{"cudaMemcpy", 31},
                                  CallNumber{"cudaMemcpyAsync", 41},
                                  CallNumber{"cudaMemset", 49},
                                  CallNumber{"cudaMemsetAsync", 51},
                                  CallNumber{"cudaStreamSynchronize", 131},
                                  CallNumber{"cudaStreamQuery", 132},
                                  CallNumber{"cudaEventRecord", 135},
                                  CallNumber{"cudaEventSynchronize", 137},
                                  CallNumber{"cudaEventQuery", 138},
                                  CallNumber{"cudaStreamWaitEvent", 147},
                                  CallNumber{"cudaHostRegister", 152},
                                  CallNumber{"cudaHostUnregister", 153},
                                  CallNumber{"cudaDeviceSynchronize", 165},
                                  CallNumber{"cudaLaunchKernel", 211},
                                  CallNumber{"cudaGraphLaunch", 311},
                                  CallNumber{"cudaMallocAsync", 373},
                                  CallNumber{"cudaFreeAsync", 375},
                                  CallNumber{"cudaLaunchKernelExC", 430}};

struct EndWords {
  const char* letter;
  const char* name;
};

EndWords words_of(CopyEnd end) {
  switch (end) {
    case CopyEnd::pageable:
      return {"H", "Pageable"};
    case CopyEnd::pinned:
      return {"H", "Pinned"};
    case CopyEnd::device:
      return {"D", "Device"};
    case CopyEnd::managed:  // wherever its pages are; the profiler counts it to the device
      return {"D", "Managed"};
    case CopyEnd::unknown:
      break;
  }
  return {"?", "Unknown"};
}

class Arguments {
 public:
  template <class Value>
  Arguments& add(std::string_view key, const Value& value) {
    if (!text_.empty()) text_ += ',';
    fmt::format_to(std::back_inserter(text_), "\"{}\":{}", key, value);
    return *this;
  }
  Arguments& add(const TraceLinks& links) {
    if (links.operation > 0) add("External id", links.operation);
    if (links.correlation > 0) add("correlation", links.correlation);
    return *this;
  }
  Arguments& add_sides(std::string_view key, const std::array<int, 3>& sides) {
    return add(key, fmt::format("[{},{},{}]", sides[0], sides[1], sides[2]));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_kernel(Arguments& arguments, const DeviceIdentity& device, const DeviceWork& work) {
  arguments
      .add("queued", 0)  // known only where launches are slowed down to be stamped
      .add_sides("grid", work.grid)
      .add_sides("block", work.block)
      .add("registers per thread", work.registers_per_thread)
      .add("shared memory", work.shared_memory_bytes);
  if (const auto occupancy = estimated_occupancy(device, work)) {
    arguments.add("blocks per SM", fmt::format("{:.6g}", occupancy->blocks_per_multiprocessor))
        .add("warps per SM", fmt::format("{:.6g}", occupancy->warps_per_multiprocessor))
        .add("est. achieved occupancy %", occupancy->percent);
  }
}

void add_bytes(Arguments& arguments, const DeviceWork& work) {
  arguments.add("bytes", work.bytes);
  const auto nanoseconds = (work.end - work.begin).count();
  if (nanoseconds > 0) {  // bytes a nanosecond are gigabytes a second
    arguments.add(
        work.kind == WorkKind::collective ? "algorithm bandwidth (GB/s)"
                                          : "memory bandwidth (GB/s)",
        fmt::format("{:.6g}", static_cast<double>(work.bytes) / static_cast<double>(nanoseconds)));
  }
}

}  // namespace

std::string name_of_work(const DeviceWork& work) {
  switch (work.kind) {
    case WorkKind::kernel:
    case WorkKind::collective:
      return work.name;
    case WorkKind::fill:
      return "Memset (Device)";
    case WorkKind::copy:
      break;
  }
  const EndWords from = words_of(work.from);
  const EndWords to = words_of(work.to);
  return fmt::format("Memcpy {}to{} ({} -> {})", from.letter, to.letter, from.name, to.name);
}

std::string_view kind_of_wait(const HostCall& call) {
  if (call.kind == CallKind::wait_for_device) return "Context Sync";
  return call.kind == CallKind::wait_for_stream ? "Stream Sync" : "Event Sync";
}

std::string arguments_of_call(const HostCall& call, TraceLinks links) {
  Arguments arguments;
  const auto row = std::find_if(call_numbers.begin(), call_numbers.end(),
                                [&](const CallNumber& known) { return known.name == call.name; });
  if (row != call_numbers.end()) arguments.add("cbid", row->number);
  arguments.add(links);
  if (call.can_block) arguments.add("can wait for the device", "true");
  if (call.count > 1) arguments.add("calls", call.count);
  return arguments.text();
}

std::string arguments_of_work(const DeviceIdentity& device, const DeviceWork& work,
                              std::int64_t stream, const std::string& operation, TraceLinks links) {
  Arguments arguments;
  arguments.add(links).add("device", links.gpu).add("context", 1).add("stream", stream);
  if (work.kind == WorkKind::kernel) {
    add_kernel(arguments, device, work);
  } else {
    add_bytes(arguments, work);
  }
  if (work.from_graph) {
    // A plan has one graph; its nodes are the plan's operations.
    arguments.add("graph id", 1).add("graph node id", work.operation);
  }
  arguments.add("step", work.step).add("operation", json_text(operation));
  return arguments.text();
}

std::string arguments_of_wait(const HostCall& call, std::int64_t stream, std::int64_t recorded_by,
                              TraceLinks links) {
  Arguments arguments;
  arguments.add("cuda_sync_kind", json_text(kind_of_wait(call))).add("stream", stream).add(links);
  arguments.add("device", links.gpu).add("context", 1);
  if (call.kind == CallKind::wait_for_event) {
    arguments.add("wait_on_stream", stream).add("wait_on_cuda_event_record_corr_id", recorded_by);
  }
  return arguments.text();
}

}  // namespace stepgate
