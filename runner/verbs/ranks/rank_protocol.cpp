// SPDX-License-Identifier: MIT
// JSON, and every way in which it can be wrong.
#include "verbs/ranks/rank_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <span>

#include "device/identity_json.h"
#include "measure/trace/timeline_json.h"
#include "support/process/child.h"
#include "support/text/json_line.h"
#include "support/text/json_nesting.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;
using std::chrono::nanoseconds;

constexpr std::size_t most_of_a_line = 1 << 18;
static_assert(most_of_a_line < longest_line_bytes);
constexpr char goes_on = '+';
constexpr char is_last = '=';

// --- values of the standard library, by their members
// -----------------------------------------------------------

Json of(nanoseconds time) {
  return time.count();
}
Json of(std::int64_t number) {
  return number;
}
Json of(double number) {
  return std::bit_cast<std::uint64_t>(number);  // no digit is lost
}
Json of(float number) {
  return std::bit_cast<std::uint32_t>(number);
}
template <class Enum>
requires std::is_enum_v<Enum> Json of(Enum choice) {
  return static_cast<int>(choice);
}
Json of(const std::string& text) {
  return text;
}
Json of(const Tensor&);
Json of(const GradientSketch&);
Json of(const KernelChoice&);
Json of(const DeviceKey&);
Json of(const ClockEventTime&);
Json of(const ComputeProcess&);
Json of(const ComputeProcesses&);
Json of(const EnvironmentReading&);
Json of(const StepResult&);
Json of(const NamedPlan&);

template <class Value>
Json of(const std::vector<Value>&);

template <class List>
Json list_of(const List& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(of(value));
  return list;
}
template <class Value>
Json of(const std::vector<Value>& values) {
  return list_of(values);
}
template <class Value>
Json of(const std::optional<Value>& value) {
  return value ? of(*value) : Json();
}

Json of(const Tensor& tensor) {
  return {{"name", tensor.name}, {"values", of(tensor.values)}};
}
Json of(const GradientSketch& sketch) {
  return {{"elements", sketch.elements},
          {"squares", of(sketch.squares)},
          {"projections", list_of(sketch.projections)}};
}
Json of(const KernelChoice& choice) {
  return {{"kernel", choice.kernel}, {"library", choice.library}, {"reason", choice.reason}};
}
Json of(const DeviceKey& key) {
  return {{"name", key.name}, {"value", key.value}};
}
Json of(const NamedPlan& plan) {
  return {{"scenario", plan.scenario}, {"variant", plan.variant}, {"digest", plan.digest}};
}
Json of(const Communication& with) {
  return {{"library", with.library},
          {"file", with.file},
          {"settings", of(with.settings)},
          {"links", of(with.links)}};
}
Json of(const ClockEventTime& time) {
  return {{"event", of(time.event)}, {"total", of(time.total)}};
}
Json of(const ComputeProcess& process) {
  return {{"pid", process.pid}, {"memory", of(process.memory_bytes)}};
}
Json of(const ComputeProcesses& processes) {
  return {{"others", of(processes.others)}, {"self_is_listed", processes.self_is_listed}};
}
Json of(const EnvironmentReading& reading) {
  return {{"unavailable", reading.unavailable},
          {"sm_clock", of(reading.sm_clock_hertz)},
          {"memory_clock", of(reading.memory_clock_hertz)},
          {"active", of(reading.active)},
          {"times", of(reading.times)},
          {"temperature", of(reading.temperature_celsius)},
          {"power", of(reading.power_watts)},
          {"power_limit", of(reading.power_limit_watts)},
          {"processes", of(reading.processes)}};
}
Json of(const StepResult& result) {
  Json json = {{"first_step", result.first_step},
               {"steps", result.steps},
               {"elapsed", of(result.elapsed)},
               {"sm_clock", of(result.sm_clock_hertz)},
               {"host_busy", of(result.host_busy)},
               {"host_processor", of(result.host_processor)},
               {"step_times", of(result.step_times)},
               {"losses", of(result.losses)},
               {"tensors", of(result.tensors)},
               {"gradients", of(result.gradients)},
               {"other_gradients", of(result.other_gradients)}};
  if (result.trace) json["trace"] = json_of(*result.trace);
  for (const Trace& trace : result.other_traces) json["other_traces"].push_back(json_of(trace));
  return json;
}

// --- and back; throw nlohmann's exceptions and RankProtocolError
// -------------------------------------------------

std::int64_t whole(const Json& json) {
  if (!json.is_number_integer()) throw RankProtocolError("has no whole number where one belongs");
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX)
    throw RankProtocolError("has a number that is too large");
  return json.get<std::int64_t>();
}

void read(const Json& json, std::int64_t& number) {
  number = whole(json);
}
void read(const Json& json, int& number) {
  const std::int64_t wide = whole(json);
  if (wide != static_cast<int>(wide)) throw RankProtocolError("has a number that is too large");
  number = static_cast<int>(wide);
}
void read(const Json& json, std::uint64_t& number) {
  if (!json.is_number_unsigned())
    throw RankProtocolError("has no whole number of at least 0 where one belongs");
  number = json.get<std::uint64_t>();
}
void read(const Json& json, nanoseconds& time) {
  time = nanoseconds(whole(json));
}
void read(const Json& json, double& number) {
  std::uint64_t bits = 0;
  read(json, bits);
  number = std::bit_cast<double>(bits);
}
void read(const Json& json, float& number) {
  std::uint64_t bits = 0;
  read(json, bits);
  if (bits > UINT32_MAX) throw RankProtocolError("has a number that is too large");
  number = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}
void read(const Json& json, bool& flag) {
  flag = json.get<bool>();
}
void read(const Json& json, std::string& text) {
  text = json.get_ref<const std::string&>();
}
template <class Enum>
void read_choice(const Json& json, Enum& choice, Enum last) {
  int number = 0;
  read(json, number);
  if (number < 0 || number > static_cast<int>(last))
    throw RankProtocolError("has a choice that there is not");
  choice = static_cast<Enum>(number);
}
void read(const Json& json, ClockEvent& event) {
  read_choice(json, event, ClockEvent::display_clocks);
}
void read(const Json& json, Tensor& tensor);
void read(const Json& json, GradientSketch& sketch);
void read(const Json& json, KernelChoice& choice);
void read(const Json& json, DeviceKey& key);
void read(const Json& json, NamedPlan& plan);
void read(const Json& json, ClockEventTime& time);
void read(const Json& json, ComputeProcess& process);
void read(const Json& json, ComputeProcesses& processes);
void read(const Json& json, EnvironmentReading& reading);
void read(const Json& json, StepResult& result);

template <class Value>
void read(const Json& json, std::vector<Value>& values) {
  if (!json.is_array()) throw RankProtocolError("has no list where one belongs");
  values.clear();
  for (const Json& each : json) read(each, values.emplace_back());
}
template <class Value>
void read(const Json& json, std::optional<Value>& value) {
  value.reset();
  if (!json.is_null()) read(json, value.emplace());
}
void read(const Json& json, Tensor& tensor) {
  read(json.at("name"), tensor.name);
  read(json.at("values"), tensor.values);
}
void read(const Json& json, GradientSketch& sketch) {
  read(json.at("elements"), sketch.elements);
  read(json.at("squares"), sketch.squares);
  std::vector<double> projections;
  read(json.at("projections"), projections);
  if (projections.size() != sketch.projections.size())
    throw RankProtocolError("has another number of projections");
  std::ranges::copy(projections, sketch.projections.begin());
}
void read(const Json& json, KernelChoice& choice) {
  read(json.at("kernel"), choice.kernel);
  read(json.at("library"), choice.library);
  read(json.at("reason"), choice.reason);
}
void read(const Json& json, DeviceKey& key) {
  read(json.at("name"), key.name);
  read(json.at("value"), key.value);
}
void read(const Json& json, Communication& with) {
  read(json.at("library"), with.library);
  read(json.at("file"), with.file);
  read(json.at("settings"), with.settings);
  read(json.at("links"), with.links);
}
void read(const Json& json, NamedPlan& plan) {
  read(json.at("scenario"), plan.scenario);
  read(json.at("variant"), plan.variant);
  read(json.at("digest"), plan.digest);
}
void read(const Json& json, ClockEventTime& time) {
  read(json.at("event"), time.event);
  read(json.at("total"), time.total);
}
void read(const Json& json, ComputeProcess& process) {
  read(json.at("pid"), process.pid);
  read(json.at("memory"), process.memory_bytes);
}
void read(const Json& json, ComputeProcesses& processes) {
  read(json.at("others"), processes.others);
  read(json.at("self_is_listed"), processes.self_is_listed);
}
void read(const Json& json, EnvironmentReading& reading) {
  read(json.at("unavailable"), reading.unavailable);
  read(json.at("sm_clock"), reading.sm_clock_hertz);
  read(json.at("memory_clock"), reading.memory_clock_hertz);
  read(json.at("active"), reading.active);
  read(json.at("times"), reading.times);
  read(json.at("temperature"), reading.temperature_celsius);
  read(json.at("power"), reading.power_watts);
  read(json.at("power_limit"), reading.power_limit_watts);
  read(json.at("processes"), reading.processes);
}
void read(const Json& json, StepResult& result) {
  read(json.at("first_step"), result.first_step);
  read(json.at("steps"), result.steps);
  read(json.at("elapsed"), result.elapsed);
  read(json.at("sm_clock"), result.sm_clock_hertz);
  read(json.at("host_busy"), result.host_busy);
  read(json.at("host_processor"), result.host_processor);
  read(json.at("step_times"), result.step_times);
  read(json.at("losses"), result.losses);
  read(json.at("tensors"), result.tensors);
  read(json.at("gradients"), result.gradients);
  read(json.at("other_gradients"), result.other_gradients);
  if (json.contains("trace")) result.trace = trace_from(json.at("trace"));
  result.other_traces.clear();
  if (!json.contains("other_traces")) return;
  for (const Json& trace : json.at("other_traces"))
    result.other_traces.push_back(trace_from(trace));
}

// All of it, where reports leave some out (identity_json.h).
Json whole_of(const DeviceIdentity& identity) {
  return {{"kind", of(identity.kind)},
          {"name", identity.name},
          {"driver", identity.driver},
          {"runtime", identity.runtime},
          {"compute", of(identity.compute_capability)},
          {"copy_engines", identity.copy_engines},
          {"memory", identity.memory_bytes},
          {"free_memory", identity.free_memory_bytes},
          {"uuid", identity.uuid},
          {"cpu", identity.cpu},
          {"power_limit", identity.power_limit},
          {"pcie", identity.pcie},
          {"link", identity.link},
          {"keys", of(identity.keys)},
          {"multiprocessors", identity.multiprocessors}};
}
void read(const Json& json, DeviceIdentity& identity) {
  read_choice(json.at("kind"), identity.kind, DeviceKind::reference);
  read(json.at("name"), identity.name);
  read(json.at("driver"), identity.driver);
  read(json.at("runtime"), identity.runtime);
  read(json.at("compute"), identity.compute_capability);
  read(json.at("copy_engines"), identity.copy_engines);
  read(json.at("memory"), identity.memory_bytes);
  read(json.at("free_memory"), identity.free_memory_bytes);
  read(json.at("uuid"), identity.uuid);
  read(json.at("cpu"), identity.cpu);
  read(json.at("power_limit"), identity.power_limit);
  read(json.at("pcie"), identity.pcie);
  read(json.at("link"), identity.link);
  read(json.at("keys"), identity.keys);
  read(json.at("multiprocessors"), identity.multiprocessors);
}

Json parsed(std::string_view message) {
  if (nests_too_deep(message)) throw RankProtocolError("nests too deep");
  Json json = Json::parse(message, nullptr, false);
  if (json.is_discarded()) throw RankProtocolError("is not JSON");
  if (!json.is_object()) throw RankProtocolError("is not a JSON object");
  return json;
}

// What a reader meets in something damaged, as one kind of error.
template <class Function>
auto reading(const Function& function) {
  try {
    return function();
  } catch (const Json::exception& error) {
    throw RankProtocolError(fmt::format("is none: {}", error.what()));
  } catch (const WrongTrace& error) {
    throw RankProtocolError(fmt::format("has a trace that {}", error.what()));
  }
}

// --- each request: its name, its members, and back
// -----------------------------------------------------------------

Json members(const ask::Hello&) {
  return Json::object();
}
Json members(const ask::MakeRendezvous&) {
  return Json::object();
}
Json members(const ask::Join& join) {
  return {{"rank", join.membership.rank},
          {"count", join.membership.count},
          {"rendezvous", hexadecimal_of(join.membership.rendezvous)}};
}
Json members(const ask::Libraries& libraries) {
  return {{"digest", libraries.digest}};
}
Json members(const ask::Load& load) {
  return {{"step", load.step},         {"slot", load.slot},
          {"digest", load.digest},     {"scenario", load.scenario},
          {"variant", load.variant},   {"first_step", load.draw.first_step},
          {"loader", load.draw.loader}};
}
Json members(const ask::Run& run) {
  return {{"step", run.step},           {"wash_out_steps", run.observe.wash_out_steps},
          {"steps", run.observe.steps}, {"tensors", run.observe.tensors},
          {"trace", run.observe.trace}, {"gradients", run.observe.gradients}};
}
Json members(const ask::RunInterleaved& run) {
  return {{"loaded", of(run.steps)},
          {"order", run.how.order},
          {"unscored", run.how.unscored},
          {"wash_out_steps", run.how.wash_out_steps},
          {"steps", run.how.steps}};
}
Json members(const ask::Unload& unload) {
  return {{"step", unload.step}};
}
Json members(const ask::Restart& restart) {
  return {{"step", restart.step}};
}
Json members(const ask::Environment&) {
  return Json::object();
}
Json members(const ask::End&) {
  return Json::object();
}
Json members(const ask::CommunicatesWith& with) {
  return {{"uuids", of(with.uuids)}};
}

void read(const Json&, ask::Hello&) {}
void read(const Json&, ask::MakeRendezvous&) {}
void read(const Json& json, ask::Join& join) {
  read(json.at("rank"), join.membership.rank);
  read(json.at("count"), join.membership.count);
  join.membership.rendezvous =
      bytes_of_hexadecimal(json.at("rendezvous").get_ref<const std::string&>());
}
void read(const Json& json, ask::Libraries& libraries) {
  read(json.at("digest"), libraries.digest);
}
void read(const Json& json, ask::Load& load) {
  read(json.at("step"), load.step);
  read(json.at("slot"), load.slot);
  read(json.at("digest"), load.digest);
  read(json.at("scenario"), load.scenario);
  read(json.at("variant"), load.variant);
  read(json.at("first_step"), load.draw.first_step);
  read(json.at("loader"), load.draw.loader);
}
void read(const Json& json, ask::Run& run) {
  read(json.at("step"), run.step);
  read(json.at("wash_out_steps"), run.observe.wash_out_steps);
  read(json.at("steps"), run.observe.steps);
  read(json.at("tensors"), run.observe.tensors);
  read(json.at("trace"), run.observe.trace);
  read(json.at("gradients"), run.observe.gradients);
}
void read(const Json& json, ask::RunInterleaved& run) {
  read(json.at("loaded"), run.steps);
  read(json.at("order"), run.how.order);
  read(json.at("unscored"), run.how.unscored);
  read(json.at("wash_out_steps"), run.how.wash_out_steps);
  read(json.at("steps"), run.how.steps);
}
void read(const Json& json, ask::Unload& unload) {
  read(json.at("step"), unload.step);
}
void read(const Json& json, ask::Restart& restart) {
  read(json.at("step"), restart.step);
}
void read(const Json&, ask::Environment&) {}
void read(const Json&, ask::End&) {}
void read(const Json& json, ask::CommunicatesWith& with) {
  read(json.at("uuids"), with.uuids);
}

// In the order of RankRequest.
constexpr std::array<std::string_view, std::variant_size_v<RankRequest>> request_names{
    "hello",      "rendezvous", "join",        "libraries", "load",          "run",
    "interleave", "unload",     "environment", "end",       "communication", "restart"};

// --- each answer
// ---------------------------------------------------------------------------------------------------

// In the order of RankValue.
constexpr std::array<std::string_view, std::variant_size_v<RankValue>> answer_names{
    "done", "error",       "hello",       "rendezvous",    "libraries", "loaded",
    "ran",  "interleaved", "environment", "communication", "restarted"};

Json value_of(const Done&) {
  return true;
}
Json value_of(const Restarted& restarted) {
  return restarted.in_place;
}
Json value_of(const RankError& error) {
  return {{"fault", of(error.fault)}, {"message", error.message}};
}
Json value_of(const RankHello& hello) {
  return {{"rank", hello.rank},
          {"build", hello.build},
          {"host", hello.host},
          {"process", hello.process},
          {"identity", whole_of(hello.identity)},
          {"reason_against_tracing", hello.reason_against_tracing},
          {"plans", of(hello.plans)}};
}
Json value_of(const Rendezvous& rendezvous) {
  return hexadecimal_of(rendezvous.bytes);
}
Json value_of(const RankRan& ran) {
  return {{"result", of(ran.result)}, {"weights", ran.weights ? Json(*ran.weights) : Json()}};
}
template <class Value>
Json value_of(const Value& value) {
  return of(value);
}

void read(const Json&, Done&) {}
void read(const Json& json, Restarted& restarted) {
  read(json, restarted.in_place);
}
void read(const Json& json, RankError& error) {
  read_choice(json.at("fault"), error.fault, RankFault::host_memory);
  read(json.at("message"), error.message);
}
void read(const Json& json, RankHello& hello) {
  read(json.at("rank"), hello.rank);
  read(json.at("build"), hello.build);
  read(json.at("host"), hello.host);
  read(json.at("process"), hello.process);
  read(json.at("identity"), hello.identity);
  read(json.at("reason_against_tracing"), hello.reason_against_tracing);
  read(json.at("plans"), hello.plans);
}
void read(const Json& json, Rendezvous& rendezvous) {
  rendezvous.bytes = bytes_of_hexadecimal(json.get_ref<const std::string&>());
}
void read(const Json& json, RankRan& ran) {
  read(json.at("result"), ran.result);
  read(json.at("weights"), ran.weights);
}

// The alternative of that number, read from its members.
template <class Variant, std::size_t... Index>
Variant read_alternative(std::size_t wanted, const Json& json, std::index_sequence<Index...>) {
  Variant value;
  (void)((Index == wanted ? (read(json, value.template emplace<Index>()), true) : false) || ...);
  return value;
}
template <class Variant>
Variant read_alternative(std::size_t wanted, const Json& json) {
  return read_alternative<Variant>(wanted, json,
                                   std::make_index_sequence<std::variant_size_v<Variant>>());
}

std::size_t place_of(std::string_view name, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw RankProtocolError(fmt::format("is '{}', which nobody says", name));
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
  begun_ += line.substr(1);
  if (mark == goes_on) return std::nullopt;
  return std::exchange(begun_, {});
}

std::string_view name_of(const RankRequest& request) {
  return request_names[request.index()];
}

std::string message_of(const RankRequest& request) {
  Json json = std::visit([](const auto& asked) { return members(asked); }, request);
  json["do"] = name_of(request);
  return json_line(json);
}

RankRequest read_rank_request(std::string_view message) {
  return reading([&] {
    const Json json = parsed(message);
    const std::size_t which = place_of(json.at("do").get_ref<const std::string&>(), request_names);
    return read_alternative<RankRequest>(which, json);
  });
}

std::string message_of(const RankAnswer& answer) {
  const Json value = std::visit([](const auto& given) { return value_of(given); }, answer.value);
  return json_line(
      Json{{"is", answer_names[answer.value.index()]}, {"value", value}, {"now", of(answer.now)}});
}

RankAnswer read_rank_answer(std::string_view message) {
  return reading([&] {
    const Json json = parsed(message);
    RankAnswer answer;
    const std::size_t which = place_of(json.at("is").get_ref<const std::string&>(), answer_names);
    answer.value = read_alternative<RankValue>(which, json.at("value"));
    read(json.at("now"), answer.now);
    return answer;
  });
}

std::string hexadecimal_of(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

std::string bytes_of_hexadecimal(std::string_view digits) {
  constexpr std::string_view known = "0123456789abcdef";
  if (digits.size() % 2 != 0) throw RankProtocolError("has half a byte");
  std::string bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    const std::size_t high = known.find(digits[at]);
    const std::size_t low = known.find(digits[at + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos)
      throw RankProtocolError("has a digit that is none");
    bytes += static_cast<char>(high * known.size() + low);
  }
  return bytes;
}

}  // namespace stepgate
