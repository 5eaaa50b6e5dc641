// SPDX-License-Identifier: MIT
// Writes a run or a gate as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>

#include "base/record/record_json.h"
#include "base/require.h"
#include "base/text/json_line.h"
#include "compare/worker/kernel_workload.h"
#include "measure/trace/time_breakdown.h"
#include "measure/trace/worst_ranks.h"
#include "plan/compose/step_names.h"
#include "report/json/json_parts.h"
#include "report/writers.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

Json json_of_evidence(const TimedEvidence& timed) {
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
          {"planned_memory", variant.planned ? json_of(*variant.planned) : Json(nullptr)}};
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
          {"summary", separation.summary}};
}

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

Json json_of(const std::vector<ReportedFigure>& figures) {
  Json all = Json::array();
  for (const ReportedFigure& one : figures) {
    Json interval = nullptr;
    if (one.interval) interval = {one.interval->low, one.interval->high};
    all.push_back({{"experiment", one.figure.experiment},
                   {"assertion", one.figure.assertion},
                   {"says", {one.figure.low, one.figure.high}},
                   {"bad", one.bad},
                   {"good", one.good},
                   {"ratio", json_or_null(one.ratio)},
                   {"interval", std::move(interval)},
                   {"answer", in_words(one.answer)}});
  }
  return all;
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

Json json_of(const VariantSummary& variant) {
  Json counts = Json::object();
  for (const auto& [metric, count] : variant.counts)
    counts[std::string(row_of(metric).name)] = count;
  return {{"name", variant.name},
          {"step_seconds_mean", json_or_null(variant.step_seconds_mean)},
          {"step_seconds_p50", json_or_null(variant.step_seconds_p50)},
          {"step_seconds_p95", json_or_null(variant.step_seconds_p95)},
          {"samples_per_second", json_or_null(variant.samples_per_second)},
          {"host_share", json_or_null(variant.host_share)},
          {"sm_clock_hz", json_or_null(variant.sm_clock_hertz)},
          {"cycles_per_step", json_or_null(variant.cycles_per_step)},
          {"peak_bytes", variant.peak_bytes},
          {"counts", std::move(counts)}};
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

Json json_of(const StoredValue& value) {
  Json interval;
  if (value.interval) interval = {value.interval->low, value.interval->high};
  return {
      {"ratio", value.ratio}, {"interval", interval}, {"deviation", json_or_null(value.deviation)}};
}

Json json_of(const StoredEvidence& stored) {
  Json anchor = json_of(stored.anchor);
  anchor["name"] = stored.anchor_name;
  Json raw = json_of(stored.raw);
  raw["then"] = stored.raw_then;
  raw["now"] = stored.raw_now;
  return {{"runs", stored.runs},
          {"unit", in_words(stored.unit)},
          {"runs_of_units", stored.runs_of_units},
          {"new_runs", stored.new_runs},
          {"commits", stored.commits},
          {"newest", stored.newest},
          {"raw", std::move(raw)},
          {"anchor", std::move(anchor)},
          {"normalised", json_of(stored.normalised)},
          {"smallest_shown", json_or_null(stored.smallest_shown)},
          {"stored_contrasts", stored.stored_contrasts},
          {"contrast", stored.contrast},
          {"stored_anchors", stored.stored_anchors},
          {"anchor_contrast", stored.anchor_contrast}};
}

Json json_of(const NotRandomised& level) {
  return {{"typical", level.typical},
          {"range", {level.range.low, level.range.high}},
          {"earlier_rounds", level.earlier_rounds},
          {"contrasts", level.contrasts}};
}

Json json_of(const Estimate& estimate) {
  Json interval;
  if (estimate.interval) interval = {estimate.interval->low, estimate.interval->high};
  return {{"value", estimate.value}, {"interval", interval}, {"limit", estimate.limit}};
}

Json json_of(const AssertionVerdict& assertion) {
  return {{"name", assertion.name},
          {"text", assertion.text},
          {"file", assertion.place.file},
          {"line", assertion.place.line},
          {"evidence", name_of(assertion.evidence)},
          {"outcome", in_words(assertion.outcome)},
          {"left", json_or_null(assertion.left)},
          {"right", json_or_null(assertion.right)},
          {"estimate", assertion.estimate ? json_of(*assertion.estimate) : Json(nullptr)},
          {"timed", assertion.timed ? json_of_evidence(*assertion.timed) : Json(nullptr)},
          {"not_randomised",
           assertion.not_randomised ? json_of(*assertion.not_randomised) : Json(nullptr)},
          {"stored", assertion.stored ? json_of(*assertion.stored) : Json(nullptr)},
          {"in_doubt", assertion.in_doubt},
          {"reason", assertion.reason},
          {"clocks", assertion.clocks ? json_of(*assertion.clocks) : Json(nullptr)}};
}

Json json_of(const KernelChoice& choice) {
  Json json{{"kernel", choice.kernel},
            {"library", choice.library.empty() ? Json(nullptr) : Json(choice.library)},
            {"reason", choice.reason}};
  if (choice.launches > 0) {
    json["own_launches"] = choice.own_launches;
    json["launches"] = choice.launches;
  }
  return json;
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
          {"host_processor_ns",
           segment.host_processor ? Json(segment.host_processor->count()) : Json(nullptr)},
          {"sm_clock_hz", json_or_null(segment.sm_clock_hertz)},
          {"own_steps", segment.own_steps},
          {"own_elapsed_ns", segment.own_elapsed.count()},
          {"step_times_ns", std::move(steps)}};
}

// Lists the libraries of the variants that depend on one or had a choice, with the chosen kernels.
Json libraries_of(const Measurement& measurement) {
  Json libraries = Json::object();
  for (const MeasuredVariant& variant : measurement.variants) {
    if (variant.libraries.empty() && variant.choices.empty()) continue;
    libraries[variant.name] = {{"keys", with_plain_texts(record_json(variant.libraries))},
                               {"kernels", json_of(variant.choices)}};
  }
  return libraries;
}

// Placeholder for the rounds, which are written one by one: a single JSON value of a long run would
// take several times the memory of its measurement.
constexpr const char* place_of_rounds = "\x01";

void write_rounds(std::ostream& out, const Measurement& measurement) {
  const char* separator = "[";
  for (const Round& round : measurement.rounds) {
    Json segments = Json::array();  // in the order of execution
    for (const Segment& segment : round.segments) segments.push_back(json_of(segment, measurement));
    out << separator << json_line(segments);
    separator = ",";
  }
  out << (measurement.rounds.empty() ? "[]" : "]");
}

Json whole_or_not(double number) {
  const auto whole = static_cast<std::int64_t>(number);
  return number == static_cast<double>(whole) ? Json(whole) : Json(number);
}

Json same_step_json(const Measurement& measurement, const std::vector<std::string>& names) {
  const auto name = [&](int variant) { return names[static_cast<std::size_t>(variant)]; };
  const auto names_of = [&](const std::vector<int>& variants) {
    Json list = Json::array();
    for (const int variant : variants) list.push_back(name(variant));
    return list;
  };
  Json compared = Json::array();
  for (const ComparedPair& pair : measurement.compared) {
    compared.push_back({{"variant", name(pair.variant)},
                        {"against", name(pair.against)},
                        {"loss", pair.loss},
                        {"gradient", pair.gradient},
                        {"gradient_bound", pair.gradient_bound},
                        {"parameter", pair.parameter},
                        {"gradients", pair.gradients}});
  }
  Json not_compared = Json::array();
  for (const NotCompared& pairs : measurement.not_compared) {
    not_compared.push_back({{"variants", names_of(pairs.variants)},
                            {"against", names_of(pairs.against)},
                            {"gradients_alone", pairs.gradients_alone},
                            {"reason", pairs.reason}});
  }
  return {{"compared", std::move(compared)}, {"not_compared", std::move(not_compared)}};
}

// Converts everything but the rounds.
Json json_of(const Measurement& measurement) {
  Json environment = Json::array();  // before the first round and after each round
  if (measurement.environment_before) {
    environment.push_back(with_plain_texts(record_json(*measurement.environment_before)));
    for (const Round& round : measurement.rounds)
      environment.push_back(with_plain_texts(record_json(round.environment_after)));
  }
  Json variants = Json::array();  // including anchors, in the order of their indices
  for (const MeasuredVariant& variant : measurement.variants) {
    variants.push_back(
        {{"name", variant.name},
         {"ranks", variant.ranks},
         {"batch_size", variant.batch_size ? whole_or_not(*variant.batch_size) : Json(nullptr)},
         {"tokens", variant.tokens ? whole_or_not(*variant.tokens) : Json(nullptr)},
         {"model_flops", json_or_null(variant.model_flops)},
         {"peak_flops_per_second", json_or_null(variant.peak_flops_per_second)},
         {"wash_out_steps", variant.wash_out_steps},
         {"segment_steps", variant.segment_steps}});
  }
  std::vector<std::string> names;
  for (const MeasuredVariant& variant : measurement.variants) names.push_back(variant.name);
  return {{"warmup_steps", measurement.warmup_steps},
          {"steady", measurement.steady},
          {"interleaved", measurement.segments_because.empty()},
          {"segments_because", measurement.segments_because},
          {"budget_spent", measurement.budget_spent},
          {"record_full", measurement.record_full},
          {"device_ns", measurement.device_time.count()},
          {"wall_ns", measurement.wall_time.count()},
          {"variants", std::move(variants)},
          {"libraries", libraries_of(measurement)},
          {"same_step", same_step_json(measurement, names)},
          {"rounds", place_of_rounds},
          {"environment", std::move(environment)},
          {"traced_rounds",
           measurement.traced ? json_of_traced_rounds(*measurement.traced, names) : Json(nullptr)}};
}

Json json_of(const RunInfo& run) {
  return {{"stepgate", run.stepgate},   {"build", run.build},
          {"commit", run.commit},       {"date", run.date},
          {"host", run.host},           {"seed", fmt::format("{:016x}", run.seed)},
          {"asked_for", run.asked_for}, {"simulated", run.simulated},
          {"gated", run.gated},         {"scenarios", run.scenarios}};
}

Json json_of(const WallTimes& times) {
  Json json = Json::object();
  for (const WallPart part : all_wall_parts())
    json[fmt::format("{}_ns", name_of(part))] = times[part].count();
  return json;
}

void write_line(std::ostream& out, const Json& report) {
  out << json_line(report) << '\n';
}

void write_line(std::ostream& out, const Json& report, const RunInfo& run,
                const Measurement& measurement) {
  const std::string text = json_line(report);
  const std::string place = "\"rounds\":" + json_line(Json(place_of_rounds));
  const std::size_t at = text.find(place);
  require(at != std::string::npos, "a measurement has a place for its rounds");
  out << std::string_view(text).substr(0, at) << "\"rounds\":";
  run.has_rounds ? write_rounds(out, measurement) : void(out << "[]");
  out << std::string_view(text).substr(at + place.size()) << '\n';
}

Json side_json(const std::string& given, const Hello* hello) {
  Json side{{"given", given}};
  if (hello == nullptr) return side;
  side["program"] = hello->program;
  side["version"] = hello->version;
  return side;
}

void add_point_of_workload(Json& line, const std::string& workload, const GateSubject& subject) {
  const auto point = subject.points.find(workload.substr(0, workload.find('/')));
  if (point != subject.points.end()) add_point(line, point->second);
}

Json finding_json(const Finding& finding, const GateSubject& subject) {
  Json line{{"kind", "finding"},
            {"of", name_of(finding.kind)},
            {"severity", name_of(finding.severity)},
            {"workload", finding.workload},
            {"what", finding.what},
            {"base", json_or_null(finding.base)},
            {"head", json_or_null(finding.head)},
            {"words", finding.words},
            {"mechanism", finding.mechanism},
            {"file", finding.place.file},
            {"line", finding.place.line},
            {"accepted", nullptr}};
  if (finding.accepted) {
    line["accepted"] = {{"at_most", finding.accepted->limit_text},
                        {"who", finding.accepted->who},
                        {"why", finding.accepted->why},
                        {"until", finding.accepted->until}};
  }
  add_point_of_workload(line, finding.workload, subject);
  return line;
}

Json workload_json(const WorkloadVerdict& workload, const GateSubject& subject) {
  Json line{{"kind", "workload"},
            {"workload", workload.name},
            {"outcome", in_words(workload.outcome)},
            {"margin", workload.margin},
            {"pairs", workload.pairs},
            {"base_step_seconds", json_or_null(workload.base_step_seconds)},
            {"head_step_seconds", json_or_null(workload.head_step_seconds)}};
  if (const auto kernel = kernel_workload_named(workload.name)) line["kernel"] = kernel->kernel;
  line["timed"] = workload.timed ? json_of_evidence(*workload.timed) : Json(nullptr);
  add_point_of_workload(line, workload.name, subject);
  return line;
}

Json json_of(const SourceLine& line) {
  if (line.line == 0) return nullptr;
  return {{"file", line.file}, {"line", line.line}, {"function", line.function}};
}

Json json_of(const CallCounts& counts) {
  Json all = Json::object();
  for (const CallCountRow& row : call_count_table())
    all[std::string(row.name)] = counts[static_cast<std::size_t>(row.count)];
  return all;
}

Json json_of(const std::vector<CountedProcess>& processes) {
  Json all = Json::array();
  for (const CountedProcess& process : processes) {
    Json one{{"process", process.process},
             {"rank", process.rank},
             {"variant", process.variant},
             {"program", process.program},
             {"problem", process.problem},
             {"marks", process.marks},
             {"first_step", process.first_step},
             {"steps", process.steps},
             {"versions", process.versions},
             {"unknown", Json::object()},
             {"counts", process.problem.empty() ? json_of(process.mean) : Json(nullptr)},
             {"each", Json::array()},
             {"places", Json::array()}};
    for (const auto& [metric, why] : process.unknown) one["unknown"][row_of(metric).name] = why;
    for (const CallCounts& step : process.each) one["each"].push_back(json_of(step));
    for (const CountedPlace& place : process.places) {
      one["places"].push_back({{"count", row_of(place.count).name},
                               {"call", place.call},
                               {"line", json_of(place.place.own)},
                               {"library_line", json_of(place.place.library)},
                               {"range", place.range},
                               {"a_step", place.a_step},
                               {"seen", place.seen},
                               {"bytes", place.bytes}});
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

void write_json(std::ostream& out, const RunInfo& run, const ReportedScenario& scenario,
                const Measurement& measurement, const WallTimes& times) {
  const Verdict& verdict = scenario.decided->verdict;
  Json line{{"schema", report_schema},
            {"run", json_of(run)},
            {"scenario", verdict.scenario},
            {"claim", verdict.claim},
            {"steps", steps_json(verdict.steps)},
            {"fingerprint", fmt::format("{:016x}", measurement.scenario_fingerprint)},
            {"seed", fmt::format("{:016x}", measurement.seed)},
            // Null where no device was used and the plans decided.
            {"device",
             verdict.planned_only ? Json(nullptr) : with_plain_texts(record_json(verdict.device))},
            {"outcome", in_words(verdict.outcome)},
            {"broken", json_or_null(verdict.broken)},
            {"failed", json_or_null(verdict.failed)},
            {"not_run", verdict.not_run},
            {"skipped_because", verdict.skipped_because},
            {"notes", verdict.notes},
            {"environment", verdict.environment},
            {"disturbance", json_or_null(verdict.disturbance)},
            {"alpha", verdict.alpha},
            {"suite_alpha", verdict.suite_alpha},
            {"suite_lines", verdict.suite_lines},
            {"stored_lines", verdict.stored_lines},
            {"earlier", {{"runs", verdict.earlier_runs}, {"rounds", verdict.earlier_rounds}}},
            {"unit_of_evidence", "round: all variants loaded anew, in this process"},
            {"beta", verdict.beta},
            {"confidence", verdict.confidence},
            {"batch_bytes", verdict.batch_bytes},
            {"param_bytes", verdict.param_bytes},
            {"variants", json_of(verdict.variants)},
            {"regime", json_of(verdict.regime)},
            {"expect", json_of(verdict.assertions)},
            {"calibrated", verdict.calibrated ? json_of(*verdict.calibrated) : Json(nullptr)},
            {"mechanism", verdict.mechanism ? json_of(*verdict.mechanism) : Json(nullptr)},
            {"measurement", json_of(measurement)},
            {"wall_times", json_of(times)}};
  add_point(line, verdict.point);
  if (const auto& figures = scenario.decided->figures; !figures.empty())
    line["article"] = json_of(figures);
  if (verdict.program) line["program"] = json_of(*verdict.program);
  if (!verdict.program_base.empty()) line["program_base"] = json_of(verdict.program_base);
  write_line(out, line, run, measurement);
}

void write_json(std::ostream& out, const Report& report, const WallTimes& times,
                std::chrono::nanoseconds whole) {
  const SuiteVerdict& suite = report.suite->verdict;
  write_line(out, {{"schema", report_schema},
                   {"run", json_of(report.run)},
                   {"suite",
                    {{"simulated", report.run.simulated},
                     {"lines", suite.lines},
                     {"alpha", suite.alpha},
                     {"mean_evidence", suite.mean_evidence},
                     {"product_evidence", suite.product_evidence},
                     {"evidence", suite.evidence},
                     {"fails", suite.failed},
                     {"failed_among_others", suite.failed_among_others}}},
                   {"wall_ns", whole.count()},
                   {"wall_times", json_of(times)}});
}

void write_gate_json(std::ostream& out, const Report& report) {
  const RunInfo& run = report.run;
  const GateSubject& subject = report.gate->subject;
  const std::optional<ComparisonVerdict>& comparison = report.gate->looks.comparison;
  const GateVerdict& verdict = report.gate->verdict;
  const Introduction* both = subject.both ? &*subject.both : nullptr;
  Json first{{"schema", "stepgate.gate/2"},
             {"kind", "gate"},
             {"base", side_json(subject.base, both ? &both->base : nullptr)},
             {"head", side_json(subject.head, both ? &both->head : nullptr)},
             {"stepgate", run.stepgate},
             {"commit", run.commit},
             {"date", run.date},
             {"host", run.host},
             {"seed", run.seed},
             {"device", both ? Json(both->base.device) : Json(nullptr)},
             {"simulated", both ? Json(both->base.simulated) : Json(nullptr)},
             {"margin", subject.margin},
             {"only", Json::array()}};
  for (const GatePart part : subject.only) first["only"].push_back(name_of(part));
  if (comparison) {
    first["alpha"] = comparison->settings.alpha;
    first["beta"] = comparison->settings.beta;
  }
  out << json_line(first) << '\n';
  if (comparison) {
    for (const WorkloadVerdict& workload : comparison->workloads)
      out << json_line(workload_json(workload, subject)) << '\n';
  }
  for (const Finding& finding : verdict.findings)
    out << json_line(finding_json(finding, subject)) << '\n';
  for (const std::string& unused : verdict.unused)
    out << json_line<Json>({{"kind", "unused"}, {"words", unused}}) << '\n';
  out << json_line<Json>(
             {{"kind", "end"},
              {"answer", verdict.severity == Severity::note ? std::string_view("passed")
                                                            : name_of(verdict.severity)},
              {"exit_code", status_of(*report.code)}})
      << '\n';
}

}  // namespace stepgate
