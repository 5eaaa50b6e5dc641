// SPDX-License-Identifier: MIT
#include "compare/results/compare_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/process/child.h"
#include "base/stats/prediction_interval.h"
#include "base/text/diagnostic.h"
#include "base/text/json_nesting.h"
#include "base/text/number_words.h"
#include "scenario/assertions/metric.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;
using Texts = std::map<std::string, std::string>;

constexpr std::size_t longest_text = 2000;
constexpr std::streamsize most_bytes = std::streamsize{256} << 20;
constexpr double confidence = 0.95;
// The bounds of a step's time and of a log-ratio of two. A value beyond them is left out as zero
// is, so that no ratio and no interval overflows.
constexpr double least_seconds = 1e-12;
constexpr double most_seconds = 1e6;
constexpr double most_contrast = 20;

// Name of the file, knob and value.
using SweptValue = std::tuple<std::string, std::string, double>;
// Maps a point to its scenario's name in the first result that has it. The other result may spell
// the value otherwise.
using NamesOfPoints = std::map<SweptValue, std::string>;

struct Result {
  std::string kind;
  Texts provenance;
  Texts facts;
  std::map<std::string, std::vector<double>> logs;  // of times, a round or pair each, by workload
  std::map<std::string, double> means;              // where there are no rounds
  std::map<SweptValue, SweepPoint> points;
  std::map<std::string, SweepPoint> point_of;  // of facts and workloads that are of a point
};

std::string in_words(const Json& value) {
  if (value.is_string()) return printable(value.get_ref<const std::string&>(), longest_text);
  if (value.is_number_float()) return number_in_words(value.get<double>(), 6);
  return value.is_null() ? "" : printable(value.dump(), longest_text);
}

// Null where the key is missing or this is no object.
const Json& at(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::optional<double> positive(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) && number > 0 ? std::optional(number) : std::nullopt;
}

bool is_time_of_a_step(double seconds) {
  return seconds >= least_seconds && seconds <= most_seconds;
}

std::optional<SweepPoint> point_of(const Json& line) {
  const Json& point = at(line, "point");
  if (!point.is_object() || point.size() != 1) return std::nullopt;
  const auto swept = point.items().begin();
  if (!swept.value().is_number()) return std::nullopt;
  const double value = swept.value().get<double>();
  if (!std::isfinite(value)) return std::nullopt;
  return SweepPoint{.knob = printable(swept.key(), longest_text),
                    .value = number_in_words(value, 6),
                    .number = value,
                    .is_whole = swept.value().is_number_integer()};
}

// The name of a scenario or a workload by which both results have it, "graphs@batch.size=8/fix".
std::string common_name(const Json& line, const char* key, Result& result, NamesOfPoints& names) {
  const std::string name = in_words(at(line, key));
  const auto point = point_of(line);
  if (!point) return name;
  const std::size_t end = std::min(name.find('/'), name.size());
  const std::string scenario = name.substr(0, end);
  const SweptValue swept{scenario.substr(0, scenario.find('@')), point->knob, point->number};
  result.points.emplace(swept, *point);
  return names.try_emplace(swept, scenario).first->second + name.substr(end);
}

// Adds what one line says to what the lines before it said.
void take(Result line, const std::optional<SweepPoint>& point, Result& result) {
  for (auto& [what, words] : line.facts) {
    if (point) result.point_of[what] = *point;
    result.facts[what] = std::move(words);
  }
  for (const auto& [workload, logs] : line.logs) {
    if (point) result.point_of[workload] = *point;
    auto& all = result.logs[workload];
    all.insert(all.end(), logs.begin(), logs.end());
  }
  for (const auto& [workload, mean] : line.means) result.means[workload] = mean;
}

// The mean time of a step of each variant in a round, whose runs of it are several.
void add_round(const Json& round, const std::string& scenario, Result& result) {
  std::map<std::string, std::pair<double, double>> sums;  // nanoseconds and steps
  for (const Json& segment : round) {
    const auto elapsed = positive(at(segment, "elapsed_ns"));
    const auto steps = positive(at(segment, "steps"));
    if (!elapsed || !steps) continue;
    auto& [time, count] = sums[in_words(at(segment, "variant"))];
    time += *elapsed;
    count += *steps;
  }
  for (const auto& [variant, sum] : sums) {
    const double nanoseconds = sum.first / sum.second;
    if (is_time_of_a_step(nanoseconds * 1e-9))
      result.logs[scenario + "/" + variant].push_back(std::log(nanoseconds));
  }
}

void add_variant(const Json& variant, const std::string& scenario, Result& result) {
  const std::string name = scenario + "/" + in_words(at(variant, "name"));
  result.facts[name] = "measured";
  if (!at(variant, "peak_bytes").is_null())
    result.facts[name + ".peak_bytes"] = in_words(at(variant, "peak_bytes"));
  const auto mean = positive(at(variant, "step_seconds_mean"));
  if (mean && is_time_of_a_step(*mean)) result.means[name] = *mean;
  for (const auto& [key, value] : at(variant, "counts").items())
    result.facts[name + "." + printable(key, longest_text)] = in_words(value);
}

void add_traced_counts(const Json& variant, const std::string& scenario, Result& result) {
  for (const auto& [key, value] : at(variant, "values").items()) {
    const auto metric = metric_named(key);
    const auto evidence = metric ? row_of(*metric).evidence : Evidence::timed;
    if (evidence == Evidence::plan || evidence == Evidence::exact)
      result.facts[scenario + "/" + in_words(at(variant, "name")) + "." + key] = in_words(value);
  }
}

void add_run_line(const Json& line, Result& result, NamesOfPoints& names) {
  for (const char* key : {"stepgate", "build", "commit", "simulated"})
    result.provenance[key] = in_words(at(at(line, "run"), key));
  const std::string scenario = common_name(line, "scenario", result, names);
  if (scenario.empty()) return;
  for (const char* key : {"kind", "name", "driver", "runtime", "power_limit", "cpu"}) {
    const std::string words = in_words(at(at(line, "device"), key));
    if (!words.empty()) result.provenance[std::string("device ") + key] = words;
  }
  Result own;
  own.facts[scenario + " (step)"] = in_words(at(line, "fingerprint"));
  own.facts[scenario] = in_words(at(line, "outcome"));
  for (const char* fault : {"broken", "failed"}) {
    if (!at(line, fault).is_null()) own.facts[scenario] += ", " + std::string(fault);
  }
  for (const Json& variant : at(line, "variants")) add_variant(variant, scenario, own);
  for (const Json& variant : at(at(line, "mechanism"), "variants"))
    add_traced_counts(variant, scenario, own);
  for (const Json& assertion : at(line, "expect"))
    own.facts[scenario + "." + in_words(at(assertion, "name"))] =
        in_words(at(assertion, "outcome"));
  for (const Json& round : at(at(line, "measurement"), "rounds")) add_round(round, scenario, own);
  take(std::move(own), point_of(line), result);
}

void add_gate_line(const Json& line, Result& result, NamesOfPoints& names) {
  Result own;
  const std::string kind = in_words(at(line, "kind"));
  if (kind == "gate") {
    for (const char* key : {"stepgate", "commit", "device", "simulated", "margin"})
      result.provenance[key] = in_words(at(line, key));
    for (const char* side : {"base", "head"})
      result.provenance[side] = in_words(at(at(line, side), "version"));
  } else if (kind == "workload") {
    const std::string name = common_name(line, "workload", result, names);
    own.facts[name] = in_words(at(line, "outcome"));
    for (const Json& contrast : at(at(line, "timed"), "contrasts")) {
      if (contrast.is_number() && std::abs(contrast.get<double>()) <= most_contrast)
        own.logs[name].push_back(contrast.get<double>());
    }
  } else if (kind == "finding") {
    own.facts[fmt::format("{} {} {}", in_words(at(line, "of")),
                          common_name(line, "workload", result, names),
                          in_words(at(line, "what")))] = in_words(at(line, "severity"));
  } else if (kind == "end") {
    own.facts["answer"] = in_words(at(line, "answer"));
  }
  take(std::move(own), point_of(line), result);
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw RequestError({{file.string(), 0, 0},
                      "is no result of a run or a gate: " + why,
                      "give what `stepgate run --json` or `gate --json` wrote"});
}

void add_line(const std::filesystem::path& file, const std::string& text, Result& result,
              NamesOfPoints& names) {
  if (nests_too_deep(text)) refuse(file, "it nests too deep");
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) refuse(file, "it has a line that is no JSON object");
  const Json& schema = at(line, "schema");
  if (result.kind.empty()) {
    const bool is_gate = schema.is_string() && in_words(schema).starts_with("stepgate.gate/");
    if (!is_gate && !(schema.is_number_integer() && at(line, "run").is_object()))
      refuse(file, "its first line says no schema of them");
    result.kind = is_gate ? "gate" : "run";
  }
  (result.kind == "gate" ? add_gate_line : add_run_line)(line, result, names);
}

Result read_result(const std::filesystem::path& file, NamesOfPoints& names) {
  if (!std::filesystem::is_regular_file(file)) refuse(file, "it is no file");
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse(file, "it cannot be read");
  if (static_cast<std::streamsize>(std::filesystem::file_size(file)) > most_bytes)
    refuse(file, "it is larger than 256 MiB");
  Result result;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) add_line(file, line, result, names);
  }
  if (result.kind.empty()) refuse(file, "it is empty");
  if (result.facts.empty()) refuse(file, "it has no scenario and no workload");
  return result;
}

std::vector<ResultDifference> differences(const Texts& before, const Texts& after) {
  std::vector<ResultDifference> found;
  for (const auto& [what, words] : before) {
    const auto other = after.find(what);
    const std::string now = other == after.end() ? "" : other->second;
    if (now != words) found.push_back({.what = what, .before = words, .after = now});
  }
  for (const auto& [what, words] : after) {
    if (!before.contains(what) && !words.empty())
      found.push_back({.what = what, .before = "", .after = words});
  }
  return found;
}

std::optional<SweepPoint> point_of(const std::string& what, const Result& before,
                                   const Result& after) {
  for (const Result* result : {&before, &after}) {
    const auto point = result->point_of.find(what);
    if (point != result->point_of.end()) return point->second;
  }
  return std::nullopt;
}

std::vector<MatchedPoints> matched_points(const Result& before, const Result& after) {
  std::map<SweptValue, SweepPoint> all = before.points;
  all.insert(after.points.begin(), after.points.end());
  std::vector<MatchedPoints> sweeps;
  for (const auto& [swept, point] : all) {
    const auto& [scenario, knob, value] = swept;
    if (sweeps.empty() || sweeps.back().scenario != scenario || sweeps.back().knob != knob)
      sweeps.push_back({.scenario = scenario, .knob = knob});
    MatchedPoints& sweep = sweeps.back();
    const bool is_in_both = before.points.contains(swept) && after.points.contains(swept);
    (is_in_both                      ? sweep.both
     : before.points.contains(swept) ? sweep.before
                                     : sweep.after)
        .push_back(point);
  }
  return sweeps;
}

// An interval needs two rounds.
bool has_rounds(const std::string& workload, const Result& result) {
  const auto logs = result.logs.find(workload);
  return logs != result.logs.end() && logs->second.size() > 1;
}

TimeOfBoth time_of(const std::string& workload, const Result& before, const Result& after) {
  if (!has_rounds(workload, before) || !has_rounds(workload, after))
    return {.workload = workload, .ratio = after.means.at(workload) / before.means.at(workload)};
  const UnpairedDifference found =
      unpaired_difference(before.logs.at(workload), after.logs.at(workload), confidence);
  return {.workload = workload,
          .ratio = std::exp(found.mean),
          .low = std::exp(found.low),
          .high = std::exp(found.high),
          .has_interval = true};
}

}  // namespace

ComparedResults compare_results(const std::filesystem::path& first,
                                const std::filesystem::path& second) {
  NamesOfPoints names;
  const Result before = read_result(first, names);
  const Result after = read_result(second, names);
  if (before.kind != after.kind)
    throw RequestError(fmt::format("{} is of a {} and {} of a {}", first.string(), before.kind,
                                   second.string(), after.kind),
                       "give two of the same verb");
  ComparedResults both{.kind = before.kind,
                       .first = first.string(),
                       .second = second.string(),
                       .provenance = differences(before.provenance, after.provenance),
                       .facts = differences(before.facts, after.facts),
                       .times = {},
                       .sweeps = matched_points(before, after)};
  for (ResultDifference& each : both.facts) each.point = point_of(each.what, before, after);
  for (const ResultDifference& each : both.provenance) {
    if (each.what.starts_with("device") || each.what == "simulated") both.same_device = false;
  }
  std::map<std::string, bool> workloads;
  for (const auto& [workload, logs] : before.logs) workloads[workload] = true;
  for (const auto& [workload, mean] : before.means) workloads[workload] = true;
  for (const auto& [workload, is_there] : workloads) {
    const bool has_means = before.means.contains(workload) && after.means.contains(workload);
    if (has_means || (has_rounds(workload, before) && has_rounds(workload, after)))
      both.times.push_back(time_of(workload, before, after));
  }
  for (TimeOfBoth& time : both.times) time.point = point_of(time.workload, before, after);
  return both;
}

}  // namespace stepgate
