// SPDX-License-Identifier: MIT
// The fields of the report.
#include "report/write_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "judge/words.h"
#include "report/environment_json.h"
#include "report/json_of_evidence.h"
#include "report/mechanism_json.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::plan:
      return "plan";
    case Evidence::exact:
      return "exact";
    case Evidence::timed:
      return "timed";
    case Evidence::traced:
      return "traced";
  }
  return {};
}

Json json_of(const std::vector<DeviceKey>& keys) {
  Json object = Json::object();
  for (const DeviceKey& key : keys) object[key.name] = key.value;
  return object;
}

Json json_of(const DeviceIdentity& device) {
  return {{"kind", name_of(device.kind)},
          {"name", device.name},
          {"driver", device.driver},
          {"runtime", device.runtime},
          {"compute_capability", device.compute_capability},
          {"memory_bytes", device.memory_bytes},
          {"uuid", device.uuid},
          {"keys", json_of(device.keys)}};
}

Json json_of(const VariantSummary& variant) {
  return {{"name", variant.name},
          {"step_seconds_mean", json_or_null(variant.step_seconds_mean)},
          {"step_seconds_p50", json_or_null(variant.step_seconds_p50)},
          {"step_seconds_p95", json_or_null(variant.step_seconds_p95)},
          {"samples_per_second", json_or_null(variant.samples_per_second)},
          {"host_share", json_or_null(variant.host_share)},
          {"sm_clock_hz", json_or_null(variant.sm_clock_hertz)},
          {"cycles_per_step", json_or_null(variant.cycles_per_step)},
          {"peak_bytes", variant.peak_bytes}};
}

Json json_of(const ClockSplit& split) {
  return {{"left", split.left},
          {"right", split.right},
          {"time_ratio", split.time_ratio},
          {"cycle_ratio", split.cycle_ratio},
          {"clock_ratio", split.clock_ratio},
          {"left_hz", split.left_hertz},
          {"right_hz", split.right_hertz}};
}

Json json_of(const StoredEvidence& stored) {
  Json interval;
  if (stored.interval) interval = {stored.interval->low, stored.interval->high};
  return {{"runs", stored.runs},
          {"ratio", stored.ratio},
          {"interval", interval},
          {"deviation", json_or_null(stored.deviation)},
          {"smallest_shown", json_or_null(stored.smallest_shown)},
          {"stored_contrasts", stored.stored_contrasts},
          {"contrast", stored.contrast}};
}

Json json_of(const SentenceVerdict& sentence) {
  return {{"name", sentence.name},
          {"text", sentence.text},
          {"file", sentence.place.file},
          {"line", sentence.place.line},
          {"evidence", name_of(sentence.evidence)},
          {"outcome", in_words(sentence.outcome)},
          {"left", json_or_null(sentence.left)},
          {"right", json_or_null(sentence.right)},
          {"timed", sentence.timed ? json_of_evidence(*sentence.timed) : Json(nullptr)},
          {"stored", sentence.stored ? json_of(*sentence.stored) : Json(nullptr)},
          {"reason", sentence.reason},
          {"clocks", sentence.clocks ? json_of(*sentence.clocks) : Json(nullptr)}};
}

Json json_of(const CitedCertificate& cited) {
  const FalseAlarms alarms = false_alarms(cited.certificate);
  return {{"file", cited.file},
          {"variant", cited.certificate.variant},
          {"date", cited.certificate.date},
          {"reason_against", json_or_null(cited.reason_against)},
          {"gates", alarms.gates},
          {"wrongly_refuted", alarms.refuted},
          {"keeps_its_word", keeps_its_word(cited.certificate)}};
}

Json json_of(const KernelChoice& choice) {
  return {{"kernel", choice.kernel},
          {"library", choice.library.empty() ? Json(nullptr) : Json(choice.library)},
          {"reason", choice.reason}};
}

template <class Item>
Json json_of(const std::vector<Item>& items) {
  Json array = Json::array();
  for (const Item& item : items) array.push_back(json_of(item));
  return array;
}

Json json_of(const Segment& segment, const Measurement& measurement) {
  Json steps = Json::array();
  for (const auto time : segment.step_times) steps.push_back(time.count());
  return {{"variant", measurement.variants[static_cast<std::size_t>(segment.variant)].name},
          {"slot", segment.slot},
          {"first_step", segment.first_step},
          {"steps", segment.steps},
          {"elapsed_ns", segment.elapsed.count()},
          {"host_busy_ns", segment.host_busy ? Json(segment.host_busy->count()) : Json(nullptr)},
          {"sm_clock_hz", json_or_null(segment.sm_clock_hertz)},
          {"step_times_ns", std::move(steps)}};
}

Json json_of(const Pilot& pilot) {
  return {{"segment_steps", pilot.segment_steps},   {"disagreement", pilot.disagreement},
          {"standard_error", pilot.standard_error}, {"agrees", pilot.agrees},
          {"deviation", pilot.deviation},           {"orders_per_pass", pilot.orders_per_pass}};
}

// Of the variants that depend on a library or could choose: on which, and whose kernels they got.
Json libraries_of(const Measurement& measurement) {
  Json libraries = Json::object();
  for (const VariantSubject& variant : measurement.variants) {
    if (variant.libraries.empty() && variant.choices.empty()) continue;
    libraries[variant.name] = {{"keys", json_of(variant.libraries)},
                               {"kernels", json_of(variant.choices)}};
  }
  return libraries;
}

Json json_of(const Measurement& measurement) {
  Json rounds = Json::array();
  for (const Round& round : measurement.rounds) {
    Json segments = Json::array();  // in the order in which they ran
    for (const Segment& segment : round.segments) segments.push_back(json_of(segment, measurement));
    rounds.push_back(std::move(segments));
  }
  Json environment = Json::array();  // before the first round, then after each
  if (measurement.environment_before) {
    environment.push_back(json_of(*measurement.environment_before));
    for (const Round& round : measurement.rounds) {
      environment.push_back(round.environment_after ? json_of(*round.environment_after)
                                                    : Json(nullptr));
    }
  }
  Json batch_sizes = Json::object();
  for (const VariantSubject& variant : measurement.variants) {
    const auto whole = static_cast<std::int64_t>(variant.batch_size);
    batch_sizes[variant.name] =
        variant.batch_size == static_cast<double>(whole) ? Json(whole) : Json(variant.batch_size);
  }
  std::vector<std::string> names;
  for (const VariantSubject& variant : measurement.variants) names.push_back(variant.name);
  return {{"warmup_steps", measurement.warmup_steps},
          {"steady", measurement.steady},
          {"settle_steps", measurement.settle_steps},
          {"pilot", json_of(measurement.pilot)},
          {"wash_out_steps", measurement.wash_out_steps},
          {"budget_spent", measurement.budget_spent},
          {"device_ns", measurement.device_time.count()},
          {"wall_ns", measurement.wall_time.count()},
          {"batch_sizes", std::move(batch_sizes)},
          {"libraries", libraries_of(measurement)},
          {"rounds", std::move(rounds)},
          {"environment", std::move(environment)},
          {"traced_rounds",
           measurement.traced ? json_of_traced_rounds(*measurement.traced, names) : Json(nullptr)}};
}

}  // namespace

void write_json(std::ostream& out, const Verdict& verdict, const Measurement& measurement) {
  const Json report{
      {"schema", report_schema},
      {"scenario", verdict.scenario},
      {"claim", verdict.claim},
      {"fingerprint", fmt::format("{:016x}", measurement.scenario_fingerprint)},
      {"seed", fmt::format("{:016x}", measurement.seed)},
      // Null where no device took part: the plans decided.
      {"device", verdict.planned_only ? Json(nullptr) : json_of(verdict.device)},
      {"outcome", in_words(verdict.outcome)},
      {"broken", json_or_null(verdict.broken)},
      {"skipped_because", verdict.skipped_because},
      {"notes", verdict.notes},
      {"certificates", json_of(verdict.certificates)},
      {"environment", verdict.environment},
      {"disturbance", json_or_null(verdict.disturbance)},
      {"alpha", verdict.alpha},
      {"suite_alpha", verdict.suite_alpha},
      {"suite_lines", verdict.suite_lines},
      {"earlier", {{"runs", verdict.earlier_runs}, {"rounds", verdict.earlier_rounds}}},
      {"unit_of_evidence", "round of loads, every variant in every slot once"},
      {"beta", verdict.beta},
      {"confidence", verdict.confidence},
      {"variants", json_of(verdict.variants)},
      {"regime", json_of(verdict.regime)},
      {"expect", json_of(verdict.sentences)},
      {"calibrated", verdict.calibrated ? json_of(*verdict.calibrated) : Json(nullptr)},
      {"mechanism", verdict.mechanism ? json_of(*verdict.mechanism) : Json(nullptr)},
      {"measurement", json_of(measurement)}};
  // A name that is not UTF-8 must not lose the whole report.
  constexpr int on_one_line = -1;
  out << report.dump(on_one_line, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace stepgate
