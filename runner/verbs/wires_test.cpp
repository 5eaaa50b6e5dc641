// SPDX-License-Identifier: MIT
// Tests every protocol between processes of stepgate in one table: each message carries all its
// fields, and a damaged one is refused.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/testing/planted_record.h"
#include "base/text/diagnostic.h"
#include "base/text/json_line.h"
#include "compare/worker/protocol.h"
#include "device/ranked/rank_protocol.h"
#include "ledger/baseline/baseline_record.h"
#include "line/job.h"
#include "measure/trace/traced_file.h"
#include "tests/sanitized.h"

namespace stepgate {

// A planted trace needs at least one step.
template <>
struct Planted<Trace> {
  static void plant(Trace& value, int&) { value = Trace{.first_step = 3, .steps = 2}; }
};

namespace {

struct Wire {
  std::string name;
  std::string text;  // a message with a value in every field
  // Reads a message and writes it again; nullopt where it is refused.
  std::function<std::optional<std::string>(const std::string&)> again;
};

template <class Variant, class Visit>
void for_each_alternative(const Visit& visit) {
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (visit(planted_record<std::variant_alternative_t<index, Variant>>()), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>());
}

std::optional<std::string> request_again(const std::string& text) {
  const auto read = read_request(text);
  const auto* request = std::get_if<Request>(&read);
  return request == nullptr ? std::nullopt : std::optional(to_line(*request));
}

template <class Value, auto read>
std::optional<std::string> answer_again(const std::string& text) {
  const Answer<Value> answer = read(text);
  const auto* value = std::get_if<Value>(&answer);
  return value == nullptr ? std::nullopt : std::optional(to_line(*value));
}

std::optional<std::string> traces_again(const std::string& text) {
  const TracedOrDamaged read = read_traced_text(text);
  const auto* traced = std::get_if<Traced>(&read);
  return traced == nullptr ? std::nullopt : std::optional(traced_text(*traced));
}

std::vector<Wire> every_wire() {
  std::vector<Wire> wires;
  for_each_alternative<Task>([&](const auto& task) {
    Job job = planted_record<Job>();
    job.task = task;
    wires.push_back(
        {"a job", to_line(job), [](const auto& text) { return to_line(read_job(text)); }});
  });
  for_each_alternative<RankRequest>([&](const RankRequest& request) {
    wires.push_back({"to a rank", message_of(request),
                     [](const auto& text) { return message_of(read_rank_request(text)); }});
  });
  for_each_alternative<RankValue>([&](const RankValue& value) {
    wires.push_back({"of a rank", message_of(RankAnswer{.value = value, .now = {}}),
                     [](const auto& text) { return message_of(read_rank_answer(text)); }});
  });
  for_each_alternative<Request>([&](const Request& request) {
    wires.push_back({"to a worker", to_line(request), request_again});
  });
  wires.push_back({"a hello", to_line(planted_record<Hello>()), answer_again<Hello, read_hello>});
  wires.push_back({"a load", to_line(planted_record<Loaded>()), answer_again<Loaded, read_loaded>});
  wires.push_back({"a run", to_line(planted_record<Ran>()), answer_again<Ran, read_ran>});
  auto counts = planted_record<StepCounts>();
  counts.gradient_bound = counts.loss_bound = 0.5;
  wires.push_back({"counts", to_line(counts), answer_again<StepCounts, read_counts>});
  Traced traced;
  traced.unavailable = "why";
  wires.push_back({"traces", traced_text(traced), traces_again});
  return wires;
}

std::optional<std::string> again(const Wire& wire, const std::string& text) {
  try {
    return wire.again(text);
  } catch (const RequestError&) {
  } catch (const RankProtocolError&) {
  }
  return std::nullopt;
}

// Distance between damaged places of the text.
std::size_t apart(const Wire& wire) {
  return 1 + wire.text.size() / (sanitized ? 100 : 300);
}

TEST(Wires, CarryEveryField) {
  for (const Wire& wire : every_wire()) EXPECT_EQ(again(wire, wire.text), wire.text) << wire.name;
}

TEST(Wires, RefuseWhatIsCutOff) {
  for (const Wire& wire : every_wire()) {
    for (std::size_t length = 0; length < wire.text.size(); length += apart(wire)) {
      const std::string begun = wire.text.substr(0, length);
      EXPECT_EQ(again(wire, begun), std::nullopt) << wire.name << ": " << begun;
    }
  }
}

// A changed letter gives another message, or one that is refused, and never ends the process.
TEST(Wires, ReadAChangedLetterAsItIsWrittenOrNotAtAll) {
  for (const Wire& wire : every_wire()) {
    for (std::size_t at = 0; at < wire.text.size(); at += apart(wire)) {
      for (const char letter : {'"', '}', '-', '9', 'x'}) {
        std::string changed = wire.text;
        changed[at] = letter;
        const auto read = again(wire, changed);
        if (read) {
          EXPECT_EQ(again(wire, *read), read) << wire.name << ": " << changed;
        }
      }
    }
  }
}

// Calls `check` with the text of `whole` once for each key in `part` of it, with this key twice.
template <class Check>
void for_each_repeated_key(RecordJson& part, const RecordJson& whole, const Check& check) {
  if (part.is_object()) {
    auto& members = part.get_ref<RecordJson::object_t&>();
    for (std::size_t index = 0; index < members.size(); ++index) {
      members.push_back(members.begin()[static_cast<std::ptrdiff_t>(index)]);
      check(json_line(whole));
      members.pop_back();
    }
  }
  for (RecordJson& inner : part) {
    if (inner.is_structured()) for_each_repeated_key(inner, whole, check);
  }
}

TEST(Wires, RefuseAKeyThatIsThereTwice) {
  for (const Wire& wire : every_wire()) {
    if (wire.name == "traces") continue;  // the text's digest refuses them all
    RecordJson json = RecordJson::parse(wire.text);
    int refused = 0;
    for_each_repeated_key(json, json, [&](const std::string& text) {
      EXPECT_EQ(again(wire, text), std::nullopt) << wire.name << ": " << text;
      ++refused;
    });
    EXPECT_GT(refused, 0) << wire.name;
  }
}

// Two machines that differ in any one key must be distinguished wherever their times are compared.
TEST(Wires, CarryEveryKeyOfADevice) {
  const std::vector<std::string> names{"ecc", "mig", "vbios", "cublas", "highest sm clock"};
  auto device = planted_record<DeviceIdentity>();
  device.keys.clear();
  for (const std::string& name : names) device.keys.push_back({name, "planted " + name});
  RankHello hello = planted_record<RankHello>();
  hello.identity = device;
  StoredRun run;
  run.environment = environment_of(device);
  for (const std::string& text : {message_of(RankAnswer{.value = hello, .now = {}}),
                                  baseline_text({.file = {}, .scenario = "s", .runs = {run}})}) {
    for (const std::string& name : names)
      EXPECT_NE(text.find("\"planted " + name + '"'), std::string::npos) << name << ": " << text;
  }
}

}  // namespace
}  // namespace stepgate
