// SPDX-License-Identifier: MIT
// Writes single events of a Chrome trace as text, with the attributes of calls and work under the
// keys of the PyTorch profiler. write_trace combines them.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "device/device.h"
#include "device/trace.h"

namespace stepgate {

// Returns a JSON string with its quotes. Replaces invalid UTF-8, so that a bad name does not spoil
// the file.
std::string json_text(std::string_view text);

class TraceEvents {
 public:
  // A row of the viewer, identified by process and thread.
  struct Row {
    std::int64_t process = 0;
    std::int64_t thread = 0;
  };

  explicit TraceEvents(std::ostream& out) : out_(out) {}

  // Later events are written with times relative to `base`.
  void count_from(TraceTime base) { base_ = base; }

  void name_process(std::int64_t process, std::string_view name, std::string_view label,
                    std::int64_t place);
  void name_row(Row, std::string_view name, std::int64_t place);
  // `arguments` has the members of a JSON object, without its braces.
  void stretch(std::string_view category, std::string_view name, Row, TraceTime begin,
               TraceTime end, std::string_view arguments);
  // Draws an arrow from the event that encloses time `left` of one row to the event that encloses
  // `arrived` of the other. Both events must be written before. `number` must be unique.
  void arrow(std::int64_t number, Row from, TraceTime left, Row to, TraceTime arrived);
  void counter(std::string_view name, std::int64_t process, TraceTime at, std::string_view series,
               std::int64_t value);
  // Writes the rest to the stream. Nothing may follow.
  void finish();

 private:
  void begin_event();
  void time(TraceTime);  // microseconds with three decimals

  std::ostream& out_;
  TraceTime base_{0};
  bool first_ = true;
  std::string text_;  // buffered, since one write per event would take seconds
};

// The numbers that link a host operation, its call and the device work.
struct TraceLinks {
  std::int64_t operation = 0;    // "External id": a host span, counted from 1; 0: none
  std::int64_t correlation = 0;  // of a call and its work; 0 means none
  std::int64_t gpu = 0;          // number of the GPU
};

// Returns the name of the work: "Memcpy HtoD (Pageable -> Device)", "Memset (Device)", or the name
// of a kernel.
std::string name_of_work(const DeviceWork&);

// The kind of an explicit wait: "Context Sync", "Stream Sync" or "Event Sync".
std::string_view kind_of_wait(const HostCall&);

std::string arguments_of_call(const HostCall&, TraceLinks);

// `stream` is its number in the file. `operation` is the plan's name of the operation.
std::string arguments_of_work(const DeviceIdentity&, const DeviceWork&, std::int64_t stream,
                              const std::string& operation, TraceLinks);

// `stream` is the one that is waited for, -1 for all streams.
std::string arguments_of_wait(const HostCall&, std::int64_t stream, std::int64_t recorded_by,
                              TraceLinks);

}  // namespace stepgate
