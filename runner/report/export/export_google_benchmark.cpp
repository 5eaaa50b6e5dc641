// SPDX-License-Identifier: MIT
// The fields of google/benchmark's JSON reporter that mean something here.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/export/export_formats.h"
#include "support/seconds.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

// One variant's steps and times in one round.
struct Repetition {
  std::int64_t steps = 0;
  double elapsed_nanoseconds = 0;
  double busy_nanoseconds = 0;
};

Repetition repetition_of(const Round& round, int variant) {
  Repetition all;
  for (const Segment& segment : round.segments) {
    if (segment.variant != variant) continue;
    all.steps += segment.steps;
    all.elapsed_nanoseconds += static_cast<double>(segment.elapsed.count());
    if (segment.host_busy) all.busy_nanoseconds += static_cast<double>(segment.host_busy->count());
  }
  return all;
}

Json run_of(const Measurement& measurement, std::size_t family, std::size_t variant,
            std::size_t round) {
  const VariantSubject& subject = measurement.variants[variant];
  const std::string name = fmt::format("{}/{}", measurement.scenario, subject.name);
  const Repetition all = repetition_of(measurement.rounds[round], static_cast<int>(variant));
  const auto steps = static_cast<double>(all.steps);
  return {{"name", name},
          {"family_index", family},
          {"per_family_instance_index", variant},
          {"run_name", name},
          {"run_type", "iteration"},
          {"repetitions", measurement.rounds.size()},
          {"repetition_index", round},
          {"threads", 1},
          {"iterations", all.steps},
          {"real_time", all.elapsed_nanoseconds / steps},
          {"cpu_time", all.busy_nanoseconds / steps},
          {"time_unit", "ns"},
          {"items_per_second",
           subject.batch_size * steps * nanoseconds_per_second / all.elapsed_nanoseconds}};
}

}  // namespace

std::vector<ExportedFile> export_google_benchmark(const std::filesystem::path& file,
                                                  std::span<const Measurement> measurements) {
  Json context{{"executable", "stepgate"}, {"library_build_type", "release"}};
  Json benchmarks = Json::array();
  for (std::size_t family = 0; family < measurements.size(); ++family) {
    const Measurement& measurement = measurements[family];
    context["device"] = exported_name(measurement.device);
    context["driver"] = measurement.device.driver;
    for (std::size_t variant = 0; variant < measurement.variants.size(); ++variant) {
      for (std::size_t round = 0; round < measurement.rounds.size(); ++round) {
        benchmarks.push_back(run_of(measurement, family, variant, round));
      }
    }
  }
  const Json root{{"context", std::move(context)}, {"benchmarks", std::move(benchmarks)}};
  return {{file, root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"}};
}

}  // namespace stepgate
