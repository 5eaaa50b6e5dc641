// SPDX-License-Identifier: MIT
#include "device/ranked/rank_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/process/child.h"
#include "base/record/record_json.h"
#include "base/text/json_line.h"
#include "device/ranked/rank_bounds.h"
#include "device/trace_json.h"

namespace stepgate {

namespace {

using Json = RecordJson;

// The bytes of a message in one line, which has a mark besides.
constexpr std::size_t most_of_a_line = longest_rank_line - 1;
static_assert(longest_rank_line <= longest_line_bytes);
constexpr char goes_on = '+';
constexpr char is_last = '=';

// The names are in the order of RankRequest's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<RankRequest>> request_names{
    "hello",      "rendezvous", "join",        "libraries", "load",          "run",
    "interleave", "unload",     "environment", "end",       "communication", "restart"};

// The names are in the order of RankValue's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<RankValue>> answer_names{
    "done", "error",       "hello",       "rendezvous",    "libraries", "loaded",
    "ran",  "interleaved", "environment", "communication", "restarted"};

// Converts all errors of reading a damaged message to RankProtocolError.
template <class Function>
auto reading(const Function& function) {
  try {
    return function();
  } catch (const WrongRecord& wrong) {
    throw RankProtocolError(wrong.what());
  }
}

const Json& member(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) throw WrongRecord::missing(name);
  return *found;
}

// Returns the index of the name in `json` among the known names.
std::size_t named_in(const Json& json, const char* key, std::span<const std::string_view> names) {
  std::string name;
  read_within(key, member(json, key), name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw RankProtocolError(fmt::format("is '{}', which nobody says", printable(name)));
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

std::vector<std::string> lines_of(std::string_view message) {
  std::vector<std::string> lines;
  for (; message.size() > most_of_a_line; message.remove_prefix(most_of_a_line))
    lines.push_back(goes_on + std::string(message.substr(0, most_of_a_line)));
  lines.push_back(is_last + std::string(message));
  return lines;
}

std::optional<std::string> MessageReader::take(std::string_view line) {
  const char mark = line.empty() ? ' ' : line.front();
  if (mark != goes_on && mark != is_last)
    throw RankProtocolError(
        fmt::format("said `{}`, which is no part of a message", printable(line)));
  if (line.size() - 1 > most_bytes_ - begun_.size())
    throw RankProtocolError(fmt::format("said more than {} bytes in one message", most_bytes_));
  begun_ += line.substr(1);
  if (mark == goes_on) return std::nullopt;
  return std::exchange(begun_, {});
}

std::string_view name_of(const RankRequest& request) {
  return request_names[request.index()];
}

std::string message_of(const RankRequest& request) {
  Json json = std::visit([](const auto& asked) { return record_json(asked); }, request);
  json["do"] = name_of(request);
  return json_line(json);
}

RankRequest read_rank_request(std::string_view message) {
  return reading([&] {
    const Json json = parsed_object(message);
    auto request = read_alternative<RankRequest>(named_in(json, "do", request_names), json);
    check_bounds(request);
    return request;
  });
}

std::string message_of(const RankAnswer& answer) {
  return json_line(Json{
      {"is", answer_names[answer.value.index()]},
      {"value", std::visit([](const auto& given) { return record_json(given); }, answer.value)},
      {"now", record_json(answer.now)}});
}

RankAnswer read_rank_answer(std::string_view message) {
  return reading([&] {
    const Json json = parsed_object(message);
    RankAnswer answer;
    const std::size_t which = named_in(json, "is", answer_names);
    answer.value = read_alternative<RankValue>(which, member(json, "value"));
    read_within("now", member(json, "now"), answer.now);
    check_bounds(answer);
    return answer;
  });
}

}  // namespace stepgate
