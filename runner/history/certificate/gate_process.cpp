// SPDX-License-Identifier: MIT
#include "history/certificate/gate_process.h"

#include <fmt/format.h>

#include <cmath>

#include "support/record/record_json.h"
#include "support/text/diagnostic.h"
#include "support/text/json_line.h"
#include "support/text/json_nesting.h"

namespace stepgate {
namespace {

using Json = RecordJson;

// Refuses a field of `json`.
void refuse(const Json& json, std::string_view field, std::string_view fact) {
  throw WrongRecord(json.at(std::string(field)), fact).within(field);
}

template <class Number>
void at_least(Number least, Number value, const Json& json, std::string_view field) {
  if (!(value >= least)) refuse(json, field, fmt::format("is less than {}", least));
}

GateIntroduction introduction_from(const Json& json) {
  return record_from<GateIntroduction>(json);
}

GateResult gate_from(const Json& json) {
  const auto gate = record_from<GateResult>(json);
  if (gate.outcome > Outcome::undecided) refuse(json, "outcome", "no gate ends with");
  at_least<std::int64_t>(2, gate.rounds, json, "rounds");
  at_least(0.0, gate.gpu_seconds, json, "gpu_seconds");
  at_least(0.0, gate.round_seconds, json, "round_seconds");
  at_least(0.0, gate.standard_error, json, "standard_error");
  if (!std::isfinite(gate.estimate)) refuse(json, "estimate", "is no share");
  if (gate.seen) at_least(-1.0, *gate.seen, json, "seen");
  const Json& site = json.at("site");
  if (gate.site.kind > InjectionKind::host_delay) refuse(site, "kind", "is no site of a gate");
  at_least<std::int64_t>(1, gate.site.step_time.count(), site, "step_time");
  return gate;
}

template <class From>
auto ask(ChildRequest request, std::string_view question, From&& from) {
  const std::string name = request.name;
  Child child(std::move(request));
  const std::string line = child.exchange(question);
  std::string wrong;
  try {
    if (nests_too_deep(line)) child.fail("answered what nests too deep");
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded())
      child.fail(fmt::format("answered `{}`, which is not JSON", printable(line)));
    if (json.contains("refused")) throw RequestError(text_from(json.at("refused")), "");
    if (json.contains("failed"))
      throw DeviceError(fmt::format("{}: {}", name, text_from(json.at("failed"))));
    auto answer = from(json);
    child.finish("");
    return answer;
  } catch (const WrongRecord& error) {
    wrong = error.what();
  }
  child.fail(fmt::format("answered `{}`, which {}", printable(line), wrong));
}

}  // namespace

std::string to_line(const GateIntroduction& introduction) {
  return json_line(record_json(introduction));
}

std::string to_line(const GateResult& gate) {
  return json_line(record_json(gate));
}

std::string refused_line(const std::string& why) {
  return json_line(Json{{"refused", json_of_text(why)}});
}

std::string failed_line(const std::string& why) {
  return json_line(Json{{"failed", json_of_text(why)}});
}

GateIntroduction introduce_gates(ChildRequest request) {
  return ask(std::move(request), introduction_question, introduction_from);
}

GateResult run_gate_process(ChildRequest request) {
  return ask(std::move(request), gate_question, gate_from);
}

}  // namespace stepgate
