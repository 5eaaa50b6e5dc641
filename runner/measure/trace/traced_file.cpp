// SPDX-License-Identifier: MIT
#include "measure/trace/traced_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "measure/trace/timeline_json.h"
#include "measure/trace/worst_ranks.h"
#include "support/fnv1a.h"
#include "support/text/json_line.h"
#include "support/text/json_nesting.h"

namespace stepgate {
namespace {

constexpr std::string_view first_words = "stepgate traces 1 ";  // 1: the format

// The members of TimeBreakdown and PhaseSplit in the order in which they are written.
constexpr double TimeBreakdown::*time_parts[] = {&TimeBreakdown::step,
                                                 &TimeBreakdown::math,
                                                 &TimeBreakdown::memory,
                                                 &TimeBreakdown::latency,
                                                 &TimeBreakdown::copies,
                                                 &TimeBreakdown::communication,
                                                 &TimeBreakdown::idle_after_wait,
                                                 &TimeBreakdown::idle_for_data,
                                                 &TimeBreakdown::idle_for_host,
                                                 &TimeBreakdown::idle_in_queue};
constexpr double PhaseSplit::*phase_parts[] = {&PhaseSplit::host_blocked, &PhaseSplit::device_busy,
                                               &PhaseSplit::host_waits, &PhaseSplit::copying};

template <class Split, std::size_t count>
TraceJson json_of_parts(const Split& split, double Split::*const (&parts)[count]) {
  TraceJson json = TraceJson::array();
  for (const auto part : parts) json.push_back(split.*part);
  return json;
}

template <class Split, std::size_t count>
Split split_from(const TraceJson& json, double Split::*const (&parts)[count]) {
  if (!json.is_array() || json.size() != count) throw WrongTrace("has times of the wrong number");
  Split split;
  for (std::size_t index = 0; index < count; ++index) {
    split.*parts[index] = json.at(index).get<double>();
  }
  return split;
}

TraceJson json_of(const WorkTime& time) {
  return {time.times, time.seconds};
}

WorkTime work_time_from(const TraceJson& json) {
  if (json.size() != 2) throw WrongTrace("has work without its time");
  return {.times = json.at(0).get<double>(), .seconds = json.at(1).get<double>()};
}

TraceJson json_of(const TracedStep& step) {
  TraceJson values = TraceJson::object();
  for (const auto& [metric, value] : step.values) values[std::string(row_of(metric).name)] = value;
  TraceJson phases = TraceJson::array();
  for (const PhaseSplit& phase : step.phases) phases.push_back(json_of_parts(phase, phase_parts));
  TraceJson copies = TraceJson::array();
  for (const CopyTally& tally : step.copies) {
    copies.push_back(
        {static_cast<int>(tally.from), static_cast<int>(tally.to), tally.copies, tally.bytes});
  }
  TraceJson work = TraceJson::object();
  for (const auto& [name, time] : step.work) work[name] = json_of(time);
  TraceJson unsteady = TraceJson::array();
  for (const auto& [kind, times] : step.unsteady) {
    unsteady.push_back({static_cast<int>(kind), times});
  }
  TraceJson json = {{"rank", step.rank},
                    {"values", std::move(values)},
                    {"time", json_of_parts(step.time, time_parts)},
                    {"phases", std::move(phases)},
                    {"copies", std::move(copies)},
                    {"work", std::move(work)},
                    {"memory", json_of(step.memory)},
                    {"unsteady", std::move(unsteady)}};
  if (step.library) json["library"] = json_of(*step.library);
  return json;
}

CopyTally copies_from(const TraceJson& json) {
  TraceRow row(json, 4);
  CopyTally tally;
  tally.from = row.choice<CopyEnd>(copy_end_count);
  tally.to = row.choice<CopyEnd>(copy_end_count);
  tally.copies = json.at(2).get<double>();
  tally.bytes = json.at(3).get<double>();
  return tally;
}

TracedStep step_from(const TraceJson& json) {
  TracedStep step;
  step.rank = rank_from(json.at("rank"));
  for (const auto& [name, value] : json.at("values").items()) {
    const auto metric = metric_named(name);
    if (!metric) throw WrongTrace(fmt::format("has a metric '{}' that does not exist", name));
    step.values[*metric] = value.get<double>();
  }
  step.time = split_from<TimeBreakdown>(json.at("time"), time_parts);
  const TraceJson& phases = json.at("phases");
  if (phases.size() != step.phases.size()) throw WrongTrace("has phases of the wrong number");
  for (std::size_t index = 0; index < step.phases.size(); ++index) {
    step.phases[index] = split_from<PhaseSplit>(phases.at(index), phase_parts);
  }
  for (const TraceJson& copies : json.at("copies")) step.copies.push_back(copies_from(copies));
  for (const auto& [name, time] : json.at("work").items()) step.work[name] = work_time_from(time);
  step.memory = memory_from(json.at("memory"));
  for (const TraceJson& counted : json.at("unsteady")) {
    TraceRow row(counted, 2);
    const auto kind = row.choice<UnsteadyKind>(unsteady_kind_count);
    step.unsteady[kind] = row.number();
  }
  if (json.contains("library")) step.library = library_record_from(json.at("library"));
  return step;
}

TraceJson json_of(const Calibrated& found) {
  return {{"knob", found.knob},
          {"value", found.value},
          {"aim", found.aim},
          {"metric", found.metric},
          {"unit", static_cast<int>(found.unit)},
          {"trials", found.trials},
          {"failure", found.failure}};
}

Calibrated calibrated_from(const TraceJson& json) {
  return {.knob = json.at("knob").get<std::string>(),
          .value = json.at("value").get<std::string>(),
          .aim = json.at("aim").get<std::string>(),
          .metric = json.at("metric").get<double>(),
          .unit = static_cast<MetricUnit>(json.at("unit").get<int>()),
          .trials = whole_number(json.at("trials")),
          .failure = json.at("failure").get<std::string>()};
}

TraceJson json_of(const WallTimes& times) {
  TraceJson json = TraceJson::array();
  for (const WallPart part : all_wall_parts()) json.push_back(times[part].count());
  return json;
}

WallTimes wall_times_from(const TraceJson& json) {
  if (json.size() != WallTimes::parts) throw WrongTrace("has wall times of the wrong number");
  WallTimes times;
  for (const WallPart part : all_wall_parts())
    times[part] = std::chrono::nanoseconds(whole_number(json.at(static_cast<std::size_t>(part))));
  return times;
}

std::vector<TracedStep> ranks_from(const TraceJson& json) {
  std::vector<TracedStep> ranks;
  for (const TraceJson& rank : json) ranks.push_back(step_from(rank));
  if (ranks.empty()) throw WrongTrace("has a round without all ranks");
  return ranks;
}

std::vector<Trace> timelines_from(const TraceJson& json) {
  std::vector<Trace> ranks;
  for (const TraceJson& rank : json) {
    Trace& trace = ranks.emplace_back(trace_from(rank));
    if (ranks.size() > 1 && trace.rank <= ranks[ranks.size() - 2].rank)
      throw WrongTrace("has timelines that are not by rank");
  }
  if (ranks.empty()) throw WrongTrace("has a variant without a timeline");
  return ranks;
}

bool same_ranks(const TracedRound& one, const TracedRound& other) {
  return std::ranges::equal(one.ranks, other.ranks, [](const auto& these, const auto& those) {
    return std::ranges::equal(these, those, {}, &TracedStep::rank, &TracedStep::rank);
  });
}

Traced traced_from(const TraceJson& json) {
  Traced traced;
  if (json.contains("calibrated")) traced.calibrated = calibrated_from(json.at("calibrated"));
  traced.unavailable = json.at("unavailable").get<std::string>();
  traced.steps = whole_number(json.at("steps"));
  traced.wall_time = std::chrono::nanoseconds(whole_number(json.at("wall_nanoseconds")));
  traced.wall_times = wall_times_from(json.at("wall_times"));
  for (const TraceJson& ranks : json.at("timelines"))
    traced.timelines.push_back(timelines_from(ranks));
  for (const TraceJson& variants : json.at("rounds")) {
    TracedRound round;
    for (const TraceJson& ranks : variants) round.ranks.push_back(ranks_from(ranks));
    if (!traced.timelines.empty() && round.ranks.size() != traced.timelines.size())
      throw WrongTrace("has a round without all variants");
    if (!traced.rounds.empty() && !same_ranks(round, traced.rounds.front()))
      throw WrongTrace("has rounds of other ranks");
    round.variants.resize(round.ranks.size());
    traced.rounds.push_back(std::move(round));
  }
  take_worst_ranks(traced);
  return traced;
}

std::string header_of(std::string_view body) {
  return fmt::format("{}{} {:016x}\n", first_words, body.size(), fnv1a(body));
}

// Why the text is not the one that was written.
std::string damage_of(std::string_view text, std::string_view body) {
  if (!text.starts_with(first_words)) return "does not begin as traces of this stepgate do";
  std::size_t written = 0;
  const std::string_view rest = text.substr(first_words.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), written);
  if (body.size() < written)
    return fmt::format("is cut off after {} of {} bytes", body.size(), written);
  return "was changed after it was written";
}

}  // namespace

std::string traced_text(const Traced& traced) {
  TraceJson rounds = TraceJson::array();
  for (const TracedRound& round : traced.rounds) {
    TraceJson variants = TraceJson::array();
    for (std::size_t variant = 0; variant < round.variants.size(); ++variant) {
      TraceJson ranks = TraceJson::array();
      for (const TracedStep& step : ranks_of(round, variant)) ranks.push_back(json_of(step));
      variants.push_back(std::move(ranks));
    }
    rounds.push_back(std::move(variants));
  }
  TraceJson timelines = TraceJson::array();
  for (const std::vector<Trace>& ranks : traced.timelines) {
    TraceJson of_variant = TraceJson::array();
    for (const Trace& rank : ranks) of_variant.push_back(json_of(rank));
    timelines.push_back(std::move(of_variant));
  }
  TraceJson json = {{"unavailable", traced.unavailable},
                    {"steps", traced.steps},
                    {"wall_nanoseconds", traced.wall_time.count()},
                    {"wall_times", json_of(traced.wall_times)},
                    {"rounds", std::move(rounds)},
                    {"timelines", std::move(timelines)}};
  if (traced.calibrated) json["calibrated"] = json_of(*traced.calibrated);
  const std::string body = json_line(json) + "\n";
  return header_of(body) + body;
}

TracedOrDamaged read_traced_text(std::string_view text) {
  const std::size_t line = text.find('\n');
  const std::string_view body =
      line == std::string_view::npos ? std::string_view() : text.substr(line + 1);
  if (text.substr(0, text.size() - body.size()) != header_of(body))
    return DamagedTrace{damage_of(text, body)};
  if (nests_too_deep(body)) return DamagedTrace{"nests too deep"};
  try {
    return traced_from(TraceJson::parse(body));
  } catch (const WrongTrace& wrong) {
    return DamagedTrace{wrong.what()};
  } catch (const TraceJson::exception& wrong) {
    return DamagedTrace{fmt::format("is not in the form of this stepgate: {}", wrong.what())};
  }
}

void write_traced(const std::filesystem::path& file, const Traced& traced) {
  std::ofstream(file, std::ios::binary) << traced_text(traced);
}

TracedOrDamaged read_traced(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return DamagedTrace{"was not written"};
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return DamagedTrace{"cannot be read"};
  return read_traced_text(text);
}

}  // namespace stepgate
