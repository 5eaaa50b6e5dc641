// SPDX-License-Identifier: MIT
// Single events of a Chrome trace as text, and what each says of its call or its work under the
// keys of the PyTorch profiler. write_trace gives them their meaning.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "device/device.h"
#include "device/trace.h"

namespace stepgate {

// As a JSON string with its quotes. What is not UTF-8 is replaced: a name must not lose the file.
std::string json_text(std::string_view text);

class TraceEvents {
 public:
  // A row of the viewer: a process and a thread of it.
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
  // `arguments`: the members of a JSON object, without its braces.
  void stretch(std::string_view category, std::string_view name, Row, TraceTime begin,
               TraceTime end, std::string_view arguments);
  // From what encloses one moment of a row to what encloses the other; both must be written before.
  // The number is the arrow's own.
  void arrow(std::int64_t number, Row from, TraceTime left, Row to, TraceTime arrived);
  void counter(std::string_view name, std::int64_t process, TraceTime at, std::string_view series,
               std::int64_t value);
  // Hands the rest to the stream. Nothing may follow.
  void finish();

 private:
  void begin_event();
  void time(TraceTime);  // microseconds with three decimals

  std::ostream& out_;
  TraceTime base_{0};
  bool first_ = true;
  std::string text_;  // not handed to the stream yet: one write an event would cost seconds
};

// The numbers that tie a host operation, its call and the work of the device together.
struct TraceLinks {
  std::int64_t operation = 0;    // "External id": a host span, counted from 1; 0: none
  std::int64_t correlation = 0;  // of a call and its work; 0: none
  std::int64_t gpu = 0;          // which one it is of
};

// "Memcpy HtoD (Pageable -> Device)", "Memset (Device)", a kernel's own name.
std::string name_of_work(const DeviceWork&);

// The kind of an explicit wait: "Context Sync", "Stream Sync" or "Event Sync".
std::string_view kind_of_wait(const HostCall&);

std::string arguments_of_call(const HostCall&, TraceLinks);

// `stream`: as written in the file. `operation`: what the plan calls what the work belongs to.
std::string arguments_of_work(const DeviceIdentity&, const DeviceWork&, std::int64_t stream,
                              const std::string& operation, TraceLinks);

// `stream`: that is waited for, -1 for all of them.
std::string arguments_of_wait(const HostCall&, std::int64_t stream, std::int64_t recorded_by,
                              TraceLinks);

}  // namespace stepgate
