// SPDX-License-Identifier: MIT
// Reads and writes the JSON of messages, and refuses invalid lines.
#include "compare/worker/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/json_line.h"

namespace stepgate {
namespace {

// The names are in the order of Request's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Request>> request_names{
    "hello", "load", "run", "unload", "count", "quit"};

template <class Value, class Form = JsonForm<Value>>
Value member(const RecordJson& json, std::string_view key, const Form& form = {}) {
  const auto found = json.find(key);
  if (found == json.end()) throw WrongRecord::missing(key);
  Value value{};
  read_within(key, *found, value, form);
  return value;
}

// `members` come before the fields of the record.
std::string line_of(RecordJson members, const auto& record) {
  members.update(record_json(record));
  return json_line(members);
}

void check_true(const RecordJson& json, std::string_view key) {
  if (!member<bool>(json, key)) throw WrongRecord::of_text(fmt::format("has '{}' false", key));
}

// Calls `check` before reading the fields.
template <class Value, class Check>
Answer<Value> read_answer(std::string_view line, const Check& check) {
  try {
    const RecordJson json = parsed_object(line);
    if (json.contains("error")) {
      return WorkerSays{
          .error = member<std::string>(json, "error", Text{}),
          .is_comparable = !json.contains("comparable") || member<bool>(json, "comparable")};
    }
    check(json);
    return record_from<Value>(json);
  } catch (const WrongRecord& wrong) {
    return Problem{wrong.what()};
  }
}

Request request_in(const RecordJson& json) {
  const auto what = member<std::string>(json, "do", worker_wire::name);
  const auto name = std::ranges::find(request_names, what);
  if (name == request_names.end()) {
    throw WrongRecord::of_text(
        fmt::format("has 'do' \"{}\"; say hello, load, run, unload, count or quit", what));
  }
  if (what == "hello")
    member<std::int64_t>(json, "protocol", Whole{protocol_version, protocol_version});
  return read_alternative<Request>(static_cast<std::size_t>(name - request_names.begin()), json);
}

}  // namespace

std::string to_line(const Request& request) {
  RecordJson json{{"do", request_names[request.index()]}};
  if (std::holds_alternative<SayHello>(request)) json["protocol"] = protocol_version;
  return std::visit([&](const auto& asked) { return line_of(json, asked); }, request);
}

std::string to_line(const Hello& hello) {
  return line_of({{"protocol", protocol_version}}, hello);
}

std::string to_line(const StepCounts& counts) {
  return json_line(record_json(counts));
}

std::string to_line(const Loaded& loaded) {
  return line_of({{"loaded", true}}, loaded);
}

std::string to_line(const Ran& ran) {
  return json_line(record_json(ran));
}

std::string unloaded_line() {
  return json_line({{"unloaded", true}});
}

std::string error_line(const std::string& message, bool is_comparable) {
  RecordJson json{{"error", message}};
  if (!is_comparable) json["comparable"] = false;
  return json_line(json);
}

std::variant<Request, Problem> read_request(std::string_view line) {
  try {
    return request_in(parsed_object(line));
  } catch (const WrongRecord& wrong) {
    return Problem{wrong.what()};
  }
}

Answer<Hello> read_hello(std::string_view line) {
  return read_answer<Hello>(line, [](const RecordJson& json) {
    const auto version = member<std::int64_t>(json, "protocol", Whole{1, 1'000'000});
    if (version != protocol_version) {
      throw WrongRecord::of_text(
          fmt::format("speaks version {} of the worker protocol; this stepgate speaks {}", version,
                      protocol_version));
    }
    const auto workloads = json.find("works");
    if (workloads != json.end() && workloads->is_array() && workloads->empty() &&
        !json.contains("planned"))
      throw WrongRecord(*workloads,
                        fmt::format("is not a list of 1 to {} names", worker_wire::most_workloads))
          .within("works");
  });
}

Answer<Loaded> read_loaded(std::string_view line) {
  return read_answer<Loaded>(line, [](const RecordJson& json) { check_true(json, "loaded"); });
}

Answer<Ran> read_ran(std::string_view line) {
  return read_answer<Ran>(line, [](const RecordJson&) {});
}

Answer<UnloadWork> read_unloaded(std::string_view line) {
  return read_answer<UnloadWork>(line,
                                 [](const RecordJson& json) { check_true(json, "unloaded"); });
}

Answer<StepCounts> read_counts(std::string_view line) {
  return read_answer<StepCounts>(line, [](const RecordJson&) {});
}

}  // namespace stepgate
