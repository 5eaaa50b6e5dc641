// SPDX-License-Identifier: MIT
#include "report/trace/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <ostream>

#include "base/text/json_line.h"
#include "base/text/units.h"
#include "device/device.h"
#include "report/append.h"

namespace stepgate {
namespace {

constexpr std::size_t most_kept_bytes = 1 << 16;

}  // namespace

std::string json_text(std::string_view text) {
  return json_line(nlohmann::json(text));
}

void TraceEvents::begin_event() {
  if (text_.size() > most_kept_bytes) {
    out_ << text_;
    text_.clear();
  }
  text_ += first_ ? "\n" : ",\n";
  first_ = false;
}

void TraceEvents::time(TraceTime span) {
  // Writes whole nanoseconds as decimal microseconds, so that adjacent events stay adjacent in the
  // file.
  append(text_, "{}.{:03}", span.count() / 1000, span.count() % 1000);
}

void TraceEvents::name_process(std::int64_t process, std::string_view name, std::string_view label,
                               std::int64_t place) {
  const auto entry = [&](std::string_view what, std::string_view key, const std::string& value) {
    begin_event();
    append(text_, R"({{"ph":"M","name":"{}","ts":0.000,"pid":{},"tid":0,"args":{{"{}":{}}}}})",
           what, process, key, value);
  };
  entry("process_name", "name", json_text(name));
  entry("process_labels", "labels", json_text(label));
  entry("process_sort_index", "sort_index", std::to_string(place));
}

void TraceEvents::name_row(Row row, std::string_view name, std::int64_t place) {
  const auto entry = [&](std::string_view what, std::string_view key, const std::string& value) {
    begin_event();
    append(text_, R"({{"ph":"M","name":"{}","ts":0.000,"pid":{},"tid":{},"args":{{"{}":{}}}}})",
           what, row.process, row.thread, key, value);
  };
  entry("thread_name", "name", json_text(name));
  entry("thread_sort_index", "sort_index", std::to_string(place));
}

void TraceEvents::stretch(std::string_view category, std::string_view name, Row row,
                          TraceTime begin, TraceTime end, std::string_view arguments) {
  begin_event();
  append(text_, R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":)", category,
         json_text(name), row.process, row.thread);
  time(begin - base_);
  text_ += R"(,"dur":)";
  time(end - begin);
  append(text_, R"(,"args":{{{}}}}})", arguments);
}

void TraceEvents::arrow(std::int64_t number, Row from, TraceTime left, Row to, TraceTime arrived) {
  begin_event();
  append(text_, R"({{"ph":"s","id":{},"pid":{},"tid":{},"cat":"ac2g","name":"ac2g","ts":)", number,
         from.process, from.thread);
  time(left - base_);
  text_ += '}';
  begin_event();
  append(text_, R"({{"ph":"f","bp":"e","id":{},"pid":{},"tid":{},"cat":"ac2g","name":"ac2g","ts":)",
         number, to.process, to.thread);
  time(arrived - base_);
  text_ += '}';
}

void TraceEvents::counter(std::string_view name, std::int64_t process, TraceTime at,
                          std::string_view series, std::int64_t value) {
  begin_event();
  append(text_, R"({{"ph":"C","name":"{}","pid":{},"args":{{"{}":{}}},"ts":)", name, process,
         series, value);
  time(at - base_);
  text_ += '}';
}

void TraceEvents::finish() {
  out_ << text_;
  text_.clear();
}

namespace {

// Estimates how much of the GPU a kernel can fill, from its launch parameters, as the PyTorch
// profiler does. It is for people and decides nothing.
struct Occupancy {
  double blocks_per_multiprocessor = 0;
  double warps_per_multiprocessor = 0;
  int percent = 0;  // of the warps that a multiprocessor can hold
};

constexpr std::int64_t warp_threads = 32;
constexpr std::int64_t registers_of_a_multiprocessor = 65536;
constexpr std::int64_t register_unit = 256;  // allocation unit of registers per warp
// The driver reserves this much shared memory per block since compute capability 8.0.
constexpr std::int64_t reserved_shared_memory = 1024;

// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
struct Limits {
  double compute_capability;
  std::int64_t threads;
  std::int64_t blocks;
  std::int64_t shared_memory;
};
constexpr std::array limits_table{
    Limits{8.0, 2048, 32, 164 * kibibyte},  Limits{8.6, 1536, 16, 100 * kibibyte},
    Limits{8.9, 1536, 24, 100 * kibibyte},  Limits{9.0, 2048, 32, 228 * kibibyte},
    Limits{10.0, 2048, 32, 228 * kibibyte}, Limits{12.0, 1536, 24, 100 * kibibyte}};

std::int64_t product(const std::array<int, 3>& sides) {
  return std::int64_t{sides[0]} * sides[1] * sides[2];
}

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The largest number of blocks of the kernel that can be resident on one multiprocessor.
std::int64_t most_blocks(const Limits& limits, const DeviceWork& kernel, std::int64_t warps) {
  std::int64_t most = std::min(limits.blocks, limits.threads / (warps * warp_threads));
  if (kernel.registers_per_thread > 0) {
    const std::int64_t a_warp =
        rounded_up(kernel.registers_per_thread * warp_threads, register_unit);
    most = std::min(most, registers_of_a_multiprocessor / a_warp / warps);
  }
  return std::min(most,
                  limits.shared_memory / (kernel.shared_memory_bytes + reserved_shared_memory));
}

// nullopt where the number of multiprocessors or the kernel's grid is unknown, or the compute
// capability is not in the table.
std::optional<Occupancy> estimated_occupancy(const DeviceIdentity& device,
                                             const DeviceWork& kernel) {
  const std::int64_t threads = product(kernel.block);
  const std::int64_t blocks = product(kernel.grid);
  const auto limits =
      std::find_if(limits_table.begin(), limits_table.end(), [&](const Limits& row) {
        return std::abs(row.compute_capability - device.compute_capability) < 0.05;
      });
  if (device.multiprocessors == 0 || threads == 0 || blocks == 0 || limits == limits_table.end()) {
    return std::nullopt;
  }
  const std::int64_t warps = (threads + warp_threads - 1) / warp_threads;
  Occupancy occupancy;
  occupancy.blocks_per_multiprocessor =
      static_cast<double>(blocks) / static_cast<double>(device.multiprocessors);
  occupancy.warps_per_multiprocessor =
      occupancy.blocks_per_multiprocessor * static_cast<double>(warps);
  const double held = std::min(static_cast<double>(most_blocks(*limits, kernel, warps)),
                               occupancy.blocks_per_multiprocessor);
  occupancy.percent =
      static_cast<int>(std::lround(100 * held * static_cast<double>(warps * warp_threads) /
                                   static_cast<double>(limits->threads)));
  return occupancy;
}

// CUPTI's identifiers of the runtime API calls (cupti_runtime_cbid.h).
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
    case CopyEnd::managed:  // the profiler counts managed memory as device memory
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
      .add("queued", 0)  // known only if launches are time-stamped, which slows them down
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
  if (nanoseconds > 0) {  // bytes per nanosecond are gigabytes per second
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
