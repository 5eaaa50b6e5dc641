// SPDX-License-Identifier: MIT
#include "report/json/json_parts.h"

#include "judge/verdict/words.h"
#include "measure/trace/time_breakdown.h"
#include "measure/trace/worst_ranks.h"
#include "plan/compose/step_names.h"

namespace stepgate {

nlohmann::ordered_json json_of_evidence(const TimedEvidence& timed) {
  nlohmann::ordered_json interval;
  if (timed.interval) interval = {timed.interval->low, timed.interval->high};
  return {{"ratio", timed.ratio},
          {"interval", interval},
          {"evidence_for", timed.evidence_for},
          {"evidence_against", timed.evidence_against},
          {"total_ratio", json_or_null(timed.total_ratio)},
          {"held_back_by_total", timed.held_back_by_total},
          {"smallest_seen", json_or_null(timed.smallest_seen)},
          {"rounds_missing", json_or_null(timed.rounds_missing)},
          {"earlier_rounds", timed.earlier_rounds},
          {"earlier_times", timed.earlier_times},
          {"contrasts", timed.contrasts}};
}

nlohmann::ordered_json steps_json(const std::vector<DescribedStep>& steps) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const DescribedStep& step : steps) {
    nlohmann::ordered_json words{{"variant", step.variant}};
    for (std::size_t at = 0; at < five_things.size(); ++at)
      words[std::string(five_things[at])] = step.words[at];
    words[std::string(other_things)] = step.other;
    all.push_back(std::move(words));
  }
  return all;
}

namespace {

using Json = nlohmann::ordered_json;

Json name_or_null(std::optional<Phase> phase) {
  return phase ? Json(name_of(*phase)) : Json(nullptr);
}

Json name_or_null(std::optional<TimePart> part) {
  return part ? Json(in_words(*part)) : Json(nullptr);
}

Json json_of(const std::map<Metric, double>& values) {
  Json object = Json::object();
  for (const auto& [metric, value] : values) object[std::string(row_of(metric).name)] = value;
  return object;
}

Json json_of(const TimeBreakdown& time) {
  Json object = Json::object();
  for (const auto& [part, seconds] : named_parts(time)) object[std::string(part)] = seconds;
  return object;
}

Json json_of(const std::array<PhaseSplit, phase_count>& phases) {
  Json object = Json::object();
  for (std::size_t index = 0; index < phase_count; ++index) {
    object[std::string(name_of(static_cast<Phase>(index)))] = {
        {"host_blocked", phases[index].host_blocked},
        {"device_busy", phases[index].device_busy},
        {"host_waits", phases[index].host_waits}};
  }
  return object;
}

Json json_of(const MemoryUse& use) {
  Json by_purpose = Json::object();
  for (std::size_t index = 0; index < purpose_count; ++index) {
    by_purpose[std::string(name_of(static_cast<Purpose>(index)))] = use.allocated_bytes[index];
  }
  return {{"by_purpose", std::move(by_purpose)},
          {"peak_allocated", use.peak_allocated_bytes},
          {"peak_reserved", use.peak_reserved_bytes},
          {"pinned_host", use.pinned_bytes}};
}

Json json_of(const WorkTimes& work) {
  Json object = Json::object();
  for (const auto& [name, time] : work)
    object[name] = {{"times", time.times}, {"seconds", time.seconds}};
  return object;
}

Json json_of(const WorstRanks& ranks) {
  Json metrics = Json::object();
  for (const auto& [metric, rank] : ranks.metrics) metrics[std::string(row_of(metric).name)] = rank;
  Json kernels = Json::object();
  for (const auto& [kernel, rank] : ranks.kernels) kernels[kernel] = rank;
  return {{"shown", ranks.shown}, {"values", std::move(metrics)}, {"work", std::move(kernels)}};
}

Json json_of(const VariantMechanism& variant) {
  return {{"name", variant.variant},
          {"bound_by", name_or_null(variant.bound_by)},
          {"class", name_of(variant.bound_class)},
          {"diagnosis", variant.diagnosis},
          {"time", json_of(variant.time)},
          {"phases", json_of(variant.phases)},
          {"values", json_of(variant.values)},
          {"work", json_of(variant.work)},
          {"ranks", variant.ranks ? json_of(*variant.ranks) : Json(nullptr)},
          {"slowdown", json_or_null(variant.slowdown)},
          {"memory", json_of(variant.memory)},
          {"planned_memory", json_of(variant.planned)}};
}

Json json_of(const TracedStep& step) {
  return {
      {"values", json_of(step.values)}, {"time", json_of(step.time)}, {"work", json_of(step.work)}};
}

Json json_of(const Separation& separation) {
  Json counts = Json::array();
  for (const CountDifference& count : separation.counts) {
    counts.push_back({{"metric", row_of(count.metric).name},
                      {"first", count.first},
                      {"other", count.other},
                      {"phase", name_or_null(count.phase)}});
  }
  return {{"first", separation.first},
          {"other", separation.other},
          {"counts", std::move(counts)},
          {"part", name_or_null(separation.part)},
          {"phase", name_or_null(separation.phase)},
          {"sentence", separation.sentence}};
}

}  // namespace

Json json_of(const Mechanism& mechanism) {
  Json variants = Json::array();
  for (const VariantMechanism& variant : mechanism.variants) variants.push_back(json_of(variant));
  Json separations = Json::array();
  for (const Separation& one : mechanism.separations) separations.push_back(json_of(one));
  return {
      {"unavailable", mechanism.unavailable.empty() ? Json(nullptr) : Json(mechanism.unavailable)},
      {"rounds", mechanism.rounds},
      {"steps", mechanism.steps},
      {"wall_ns", mechanism.wall_time.count()},
      {"variants", std::move(variants)},
      {"separations", std::move(separations)}};
}

Json json_of(const Calibrated& found) {
  return {{"knob", found.knob},
          {"value", found.value},
          {"aim", found.aim},
          {"metric", found.metric},
          {"trials", found.trials}};
}

Json json_of_traced_rounds(const Traced& traced, const std::vector<std::string>& names) {
  Json rounds = Json::array();
  for (const TracedRound& round : traced.rounds) {
    Json variants = Json::object();
    for (std::size_t index = 0; index < std::min(names.size(), round.variants.size()); ++index) {
      Json traced_step = json_of(round.variants[index]);
      const std::span<const TracedStep> ranks = ranks_of(round, index);
      if (ranks.size() > 1) {
        Json& all = traced_step["ranks"] = Json::object();
        for (const TracedStep& rank : ranks) all[std::to_string(rank.rank)] = json_of(rank);
      }
      variants[names[index]] = std::move(traced_step);
    }
    rounds.push_back(std::move(variants));
  }
  return rounds;
}

}  // namespace stepgate
