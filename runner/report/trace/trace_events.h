// SPDX-License-Identifier: MIT
// Single events of a Chrome trace, as text. write_trace gives them their meaning.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

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

}  // namespace stepgate
