// SPDX-License-Identifier: MIT
#include "device/trace_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stepgate {
namespace {

// Numbers up to this one can be added to each other without an overflow.
constexpr std::int64_t largest = (std::int64_t{1} << 62) - 1;

void check_number(std::int64_t number, std::int64_t least, std::int64_t most) {
  if (number >= least && number <= most) return;
  throw WrongRecord(number, fmt::format("is not from {} to {}", least, most));
}

class Check {
 public:
  explicit Check(const Trace& trace) : spans_(std::ssize(trace.spans)) {}

  template <class Value>
  void field(std::string_view name, const Value& value) const {
    try {
      check(name, value);
    } catch (const WrongRecord& wrong) {
      throw wrong.within(name);
    }
  }

 private:
  template <class Value>
  void check(std::string_view name, const Value& value) const {
    if constexpr (std::is_same_v<Value, TraceTime>) {
      check_number(value.count(), -largest, largest);
    } else if constexpr (std::is_same_v<Value, std::int64_t>) {
      check_number(value, name == "steps" ? 1 : -largest, largest);
    } else if constexpr (std::is_same_v<Value, int>) {
      if (name == "operation") check_number(value, -1, largest);
      if (name == "span") check_number(value, -1, spans_ - 1);
      if (name == "rank") check_number(value, 0, most_ranks - 1);
      if (name == "grid" || name == "block" || name == "registers_per_thread")
        check_number(value, 0, largest);
    } else if constexpr (std::is_same_v<Value, double>) {
      if (!(std::abs(value) < 1e18)) throw WrongRecord(json_of_number(value), "is too large");
    } else if constexpr (std::is_same_v<Value, std::vector<int>>) {
      for (const int rank : value) check_number(rank, 0, most_ranks - 1);
    } else if constexpr (Record<Value>) {
      for_each_field(value, [&](std::string_view part, const auto& of) { field(part, of); });
    } else if constexpr (requires { std::tuple_size<Value>::value; }) {
      for (const auto& element : value) check(name, element);
    } else if constexpr (requires { value.has_value(); }) {
      if (value) check(name, *value);
    } else if constexpr (requires { requires Record<typename Value::value_type>; }) {
      for (std::size_t index = 0; index < value.size(); ++index)
        field('[' + std::to_string(index) + ']', value[index]);
    }
  }

  std::int64_t spans_;
};

// Calls `visit` with each time of each row.
template <class SomeTrace, class Visit>
void for_each_time(SomeTrace& trace, const Visit& visit) {
  const auto visit_rows = [&](auto& rows) {
    for (auto& each : rows) {
      for_each_field(each, [&](std::string_view, auto& field) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, TraceTime>) visit(field);
      });
    }
  };
  for_each_field(trace, [&](std::string_view, auto& field) {
    if constexpr (requires { requires RowRecord<std::remove_cvref_t<decltype(field[0])>>; }) {
      visit_rows(field);
    } else if constexpr (requires { field->begin(); }) {
      if (field) visit_rows(*field);
    }
  });
}

constexpr const char* origin_key = "origin";

}  // namespace

// Times are written relative to the first one, which takes fewer digits.
RecordJson JsonForm<Trace>::write(const Trace& trace) {
  TraceTime origin = TraceTime::max();
  for_each_time(trace, [&](TraceTime time) { origin = std::min(origin, time); });
  if (origin == TraceTime::max()) origin = TraceTime(0);
  Trace from_origin = trace;
  for_each_time(from_origin, [&](TraceTime& time) { time -= origin; });
  RecordJson json = fields_json(from_origin);
  json[origin_key] = record_json(origin);
  return json;
}

void JsonForm<Trace>::read(const RecordJson& json, Trace& trace) {
  read_fields(json, trace);
  const auto found = json.find(origin_key);
  if (found == json.end()) throw WrongRecord::missing(origin_key);
  TraceTime origin{0};
  read_within(origin_key, *found, origin);
  check_number(origin.count(), -largest, largest);
  for_each_field(trace, [check = Check(trace)](std::string_view name, const auto& field) {
    check.field(name, field);
  });
  if (trace.closing_steps < 0 || trace.closing_steps >= trace.steps)
    throw WrongRecord(trace.closing_steps, "is not below the steps").within("closing_steps");
  for_each_time(trace, [&](TraceTime& time) { time += origin; });
}

}  // namespace stepgate
