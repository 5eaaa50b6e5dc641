// SPDX-License-Identifier: MIT
#include "history/certificate/gate_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "device/identity_json.h"
#include "judge/verdict/words.h"
#include "support/text/diagnostic.h"
#include "support/text/json_line.h"
#include "support/text/json_nesting.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

// What is wrong with an answer, in words that go on after "which ".
class WrongAnswer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class Choice, std::size_t count, class Name>
Choice choice_from(const Json& json, const std::array<Choice, count>& choices, Name&& name) {
  const std::string text = json.get<std::string>();
  for (const Choice choice : choices) {
    if (name(choice) == text) return choice;
  }
  throw WrongAnswer(fmt::format("knows no '{}'", printable(text)));
}

double at_least(double least, const Json& json, const char* key) {
  const double value = json.at(key).get<double>();  // null, which is what NaN becomes, throws
  if (value >= least) return value;
  throw WrongAnswer(fmt::format("has '{}' {}, which is less than {}", key, value, least));
}

GateIntroduction introduction_from(const Json& json) {
  const Json& device = json.at("device");
  const auto text = [&](const char* key) { return device.at(key).get<std::string>(); };
  constexpr std::array kinds{DeviceKind::cuda, DeviceKind::simulated, DeviceKind::reference};
  GateIntroduction introduction;
  introduction.note = json.at("note").get<std::string>();
  introduction.device = {
      .kind = choice_from(device.at("kind"), kinds, [](DeviceKind kind) { return name_of(kind); }),
      .name = text("name"),
      .driver = text("driver"),
      .runtime = text("runtime"),
      .compute_capability = at_least(0, device, "compute_capability"),
      .memory_bytes = device.at("memory_bytes").get<std::int64_t>(),
      .uuid = text("uuid"),
      .cpu = text("cpu"),
      .power_limit = text("power_limit"),
      .pcie = text("pcie")};
  return introduction;
}

GateResult gate_from(const Json& json) {
  constexpr std::array outcomes{Outcome::holds, Outcome::refuted, Outcome::undecided};
  constexpr std::array sites{InjectionKind::device_spin, InjectionKind::host_delay};
  GateResult gate;
  gate.outcome =
      choice_from(json.at("outcome"), outcomes, [](Outcome outcome) { return in_words(outcome); });
  gate.rounds = static_cast<std::int64_t>(at_least(2, json, "rounds"));
  gate.gpu_seconds = at_least(0, json, "gpu_seconds");
  gate.round_seconds = at_least(0, json, "round_seconds");
  gate.estimate = json.at("estimate").get<double>();
  gate.standard_error = at_least(0, json, "standard_error");
  if (!json.at("seen").is_null()) gate.seen = at_least(-1, json, "seen");
  gate.site.kind =
      choice_from(json.at("site"), sites, [](InjectionKind kind) { return name_of(kind); });
  gate.site.step_time =
      std::chrono::nanoseconds(static_cast<std::int64_t>(at_least(1, json, "step_ns")));
  return gate;
}

template <class From>
auto ask(ChildRequest request, std::string_view question, From&& from) {
  const std::string name = request.name;
  Child child(std::move(request));
  const std::string line = child.exchange(question);
  std::string wrong;
  try {
    if (nests_too_deep(line)) throw WrongAnswer("nests too deep");
    const Json json = Json::parse(line);
    if (json.contains("refused")) throw RequestError(json.at("refused").get<std::string>(), "");
    if (json.contains("failed"))
      throw DeviceError(fmt::format("{}: {}", name, json.at("failed").get<std::string>()));
    auto answer = from(json);
    child.finish("");
    return answer;
  } catch (const WrongAnswer& error) {
    wrong = error.what();
  } catch (const Json::exception&) {
    wrong = "is not in the form of this stepgate";
  }
  child.fail(fmt::format("answered `{}`, which {}", printable(line), wrong));
}

}  // namespace

std::string to_line(const GateIntroduction& introduction) {
  return json_line({{"device", json_of(introduction.device)}, {"note", introduction.note}});
}

std::string to_line(const GateResult& gate) {
  return json_line({{"outcome", in_words(gate.outcome)},
                    {"rounds", gate.rounds},
                    {"gpu_seconds", gate.gpu_seconds},
                    {"round_seconds", gate.round_seconds},
                    {"estimate", gate.estimate},
                    {"standard_error", gate.standard_error},
                    {"seen", gate.seen ? Json(*gate.seen) : Json(nullptr)},
                    {"site", name_of(gate.site.kind)},
                    {"step_ns", gate.site.step_time.count()}});
}

std::string refused_line(const std::string& why) {
  return json_line({{"refused", why}});
}

std::string failed_line(const std::string& why) {
  return json_line({{"failed", why}});
}

GateIntroduction introduce_gates(ChildRequest request) {
  return ask(std::move(request), introduction_question, introduction_from);
}

GateResult run_gate_process(ChildRequest request) {
  return ask(std::move(request), gate_question, gate_from);
}

}  // namespace stepgate
