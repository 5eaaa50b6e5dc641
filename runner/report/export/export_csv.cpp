// SPDX-License-Identifier: MIT
// Tables with a header. Names of scenarios, variants and devices are quoted where they need it.
#include <fmt/format.h>

#include <iterator>

#include "report/export/export_formats.h"

namespace stepgate {
namespace {

// RFC 4180.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string in_quotes = "\"";
  for (const char letter : text) {
    if (letter == '"') in_quotes += '"';
    in_quotes += letter;
  }
  return in_quotes + '"';
}

template <class Value>
std::string or_empty(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

// Calls visit(measurement, number of the round, number of the segment in it, segment).
template <class Visit>
void for_each_segment(std::span<const Measurement> measurements, Visit visit) {
  for (const Measurement& measurement : measurements) {
    for (std::size_t round = 0; round < measurement.rounds.size(); ++round) {
      const std::vector<Segment>& segments = measurement.rounds[round].segments;
      for (std::size_t place = 0; place < segments.size(); ++place) {
        visit(measurement, round, place, segments[place]);
      }
    }
  }
}

std::string variant_of(const Measurement& measurement, const Segment& segment) {
  return csv_cell(measurement.variants[static_cast<std::size_t>(segment.variant)].name);
}

}  // namespace

std::vector<ExportedFile> export_csv(const std::filesystem::path& file,
                                     std::span<const Measurement> measurements) {
  std::string text =
      "device,scenario,variant,batch_size,round,place,first_step,steps,elapsed_ns,host_busy_ns,"
      "sm_clock_hz\n";
  for_each_segment(measurements, [&](const Measurement& measurement, std::size_t round,
                                     std::size_t place, const Segment& segment) {
    const auto busy = segment.host_busy ? std::optional(segment.host_busy->count()) : std::nullopt;
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{},{}\n",
                   csv_cell(exported_name(measurement.device)), csv_cell(measurement.scenario),
                   variant_of(measurement, segment),
                   measurement.variants[static_cast<std::size_t>(segment.variant)].batch_size,
                   round, place, segment.first_step, segment.steps, segment.elapsed.count(),
                   or_empty(busy), or_empty(segment.sm_clock_hertz));
  });
  return {{file, std::move(text)}};
}

std::vector<ExportedFile> export_csv_steps(const std::filesystem::path& file,
                                           std::span<const Measurement> measurements) {
  std::string text = "scenario,variant,round,place,step,time_ns\n";
  for_each_segment(measurements, [&](const Measurement& measurement, std::size_t round,
                                     std::size_t place, const Segment& segment) {
    // Which of the steps that ran by turns were scored is not told.
    const bool by_turns = measurement.rounds[round].interleaved;
    std::optional<std::int64_t> step;
    if (!by_turns) step = segment.first_step;
    for (const auto time : segment.step_times) {
      if (step) ++*step;
      fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{}\n",
                     csv_cell(measurement.scenario), variant_of(measurement, segment), round, place,
                     or_empty(step), time.count());
    }
  });
  return {{file, std::move(text)}};
}

}  // namespace stepgate
