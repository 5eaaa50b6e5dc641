// SPDX-License-Identifier: MIT
// One trace as compact JSON: a row of whole numbers for each record, names told once.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "device/trace.h"

namespace stepgate {

// Choices that a row may name, of CopyEnd and of UnsteadyKind.
inline constexpr int copy_end_count = 5;
inline constexpr int unsteady_kind_count = 4;

using TraceJson = nlohmann::json;

// The fault of JSON that should be a trace, in words that go on after "the trace ".
class WrongTrace : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

TraceJson json_of(const Trace&);
TraceJson json_of(const MemoryUse&);
TraceJson json_of(const LibraryRecord&);

// Throw WrongTrace and nlohmann's exceptions.
Trace trace_from(const TraceJson&);
MemoryUse memory_from(const TraceJson&);
LibraryRecord library_record_from(const TraceJson&);
int rank_from(const TraceJson&);

// A whole number that can be added to others of its kind without an overflow.
std::int64_t whole_number(const TraceJson&);

// The next whole number of a row, and those that stand for something.
class TraceRow {
 public:
  TraceRow(const TraceJson& row, std::size_t columns);
  std::int64_t number();
  std::int64_t number(std::int64_t least, std::int64_t most);
  template <class Choice>
  Choice choice(int count) {
    return static_cast<Choice>(number(0, count - 1));
  }

 private:
  const TraceJson& row_;
  std::size_t next_ = 0;
};

}  // namespace stepgate
