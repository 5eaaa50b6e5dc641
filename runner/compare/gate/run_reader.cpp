// SPDX-License-Identifier: MIT
#include "compare/gate/run_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/process/child.h"
#include "base/text/json_nesting.h"
#include "base/text/units.h"
#include "device/device.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t most_lines = 100'000'000;  // of a file with assertions
// Limit in bytes for all assertions together, including their overhead, since every report copies
// them.
constexpr std::int64_t most_assertion_bytes = 4 << 20;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string()
             ? printable(found->get_ref<const std::string&>(), longest_text_of_run)
             : std::string();
}

void read_device(const Json& line, RunOfProgram& run) {
  const auto device = line.find("device");
  if (device == line.end() || !device->is_object()) return;
  run.simulated = text_of(*device, "kind") == name_of(DeviceKind::simulated);
  run.device = run.simulated ? "a simulated " + text_of(*device, "name") + " (no measurement)"
                             : text_of(*device, "name") + ", driver " + text_of(*device, "driver");
}

// Returns whether a comparison had enough rounds to estimate the missing ones, and these are too
// many.
bool is_out_of_reach(const Json& assertion) {
  const auto timed = assertion.find("timed");
  if (timed == assertion.end() || !timed->is_object()) return false;
  const auto seen = timed->find("smallest_seen");
  if (seen == timed->end() || !seen->is_number()) return false;
  const auto missing = timed->find("rounds_missing");
  return missing == timed->end() || !missing->is_number() ||
         missing->get<double>() > most_within_reach;
}

std::optional<double> number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// nullopt where the assertion is not about stored times, or does not say how much they grew.
std::optional<GrowthSinceStored> since_stored(const Json& assertion) {
  const auto stored = assertion.find("stored");
  if (stored == assertion.end() || !stored->is_object()) return std::nullopt;
  const auto raw = stored->find("raw");
  const auto anchor = stored->find("anchor");
  if (raw == stored->end() || !raw->is_object() || anchor == stored->end() || !anchor->is_object())
    return std::nullopt;
  const auto step = number_of(*raw, "ratio");
  const auto anchor_growth = number_of(*anchor, "ratio");
  if (!step || !anchor_growth) return std::nullopt;
  GrowthSinceStored growth{.step = *step,
                           .anchor = text_of(*anchor, "name"),
                           .anchor_growth = *anchor_growth,
                           .most_anchor_growth = *anchor_growth};
  const auto interval = anchor->find("interval");
  if (interval != anchor->end() && interval->is_array() && interval->size() == 2 &&
      interval->back().is_number())
    growth.most_anchor_growth = interval->back().get<double>();
  return growth;
}

std::int64_t bytes_of(const HeadAssertion& assertion) {
  return static_cast<std::int64_t>(
      sizeof assertion + assertion.scenario.size() + assertion.name.size() +
      assertion.reason.size() + assertion.place.file.size() +
      (assertion.since_stored ? assertion.since_stored->anchor.size() : 0));
}

// Assertions of a broken scenario do not count. Stops at the limit in bytes.
void read_scenario_line(const Json& line, RunOfProgram& run, std::int64_t& bytes) {
  const std::string scenario = text_of(line, "scenario");
  if (scenario.empty()) {
    const auto suite = line.find("suite");
    const bool has = suite != line.end() && suite->is_object();
    const auto failed =
        has ? suite->find(suite->contains("fails") ? "fails" : "refuted") : line.end();
    if (has && failed != suite->end() && failed->is_boolean())
      run.suite_failed = failed->get<bool>();
    return;
  }
  ++run.scenarios;
  read_device(line, run);
  if (const std::string broken = text_of(line, "broken"); !broken.empty()) {
    run.assertions.push_back({scenario, "scenario", std::nullopt, broken});
    bytes += bytes_of(run.assertions.back());
    return;
  }
  const auto expect = line.find("expect");
  if (expect == line.end() || !expect->is_array()) return;
  for (const Json& assertion : *expect) {
    if (bytes > most_assertion_bytes) return;
    if (!assertion.is_object()) continue;
    const auto number = assertion.find("line");
    const bool has_line = number != assertion.end() && number->is_number_unsigned() &&
                          number->get<std::uint64_t>() <= most_lines;
    const auto outcome = outcome_in(text_of(assertion, "outcome"));
    run.assertions.push_back(
        {.scenario = scenario,
         .name = text_of(assertion, "name"),
         .outcome = outcome,
         .reason = outcome ? text_of(assertion, "reason") : "its outcome is none",
         .place = {text_of(assertion, "file"), has_line ? number->get<int>() : 0, 1},
         .out_of_reach = outcome == Outcome::undecided && is_out_of_reach(assertion),
         .since_stored = since_stored(assertion)});
    bytes += bytes_of(run.assertions.back());
  }
}

}  // namespace

std::optional<std::string> RunReader::take(std::string_view line) {
  const Json parsed = nests_too_deep(line) ? Json() : Json::parse(line, nullptr, false);
  if (parsed.is_object()) {
    read_scenario_line(parsed, run_, bytes_);
  } else {
    run_.failure = "wrote a line that is no JSON";
  }
  if (bytes_ <= most_assertion_bytes) return std::nullopt;
  return "wrote more than " + bytes_text(most_assertion_bytes) + " of assertions";
}

}  // namespace stepgate
