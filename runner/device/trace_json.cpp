// SPDX-License-Identifier: MIT
#include "device/trace_json.h"

#include <fmt/format.h>

namespace stepgate {
namespace {

// Numbers up to this one can be added to each other without an overflow.
constexpr std::int64_t largest = std::int64_t{1} << 62;

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
    } else if constexpr (std::is_same_v<Value, std::vector<int>>) {
      for (const int rank : value) check_number(rank, 0, most_ranks - 1);
    } else if constexpr (Record<Value>) {
      for_each_field(value, [&](std::string_view part, const auto& of) { field(part, of); });
    } else if constexpr (requires { value.has_value(); }) {
      if (value) check(name, *value);
    } else if constexpr (requires { requires Record<typename Value::value_type>; }) {
      for (std::size_t index = 0; index < value.size(); ++index)
        field('[' + std::to_string(index) + ']', value[index]);
    }
  }

  std::int64_t spans_;
};

}  // namespace

RecordJson JsonForm<Trace>::write(const Trace& trace) {
  return fields_json(trace);
}

void JsonForm<Trace>::read(const RecordJson& json, Trace& trace) {
  read_fields(json, trace);
  for_each_field(trace, [check = Check(trace)](std::string_view name, const auto& field) {
    check.field(name, field);
  });
}

}  // namespace stepgate
