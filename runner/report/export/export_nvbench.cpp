// SPDX-License-Identifier: MIT
// NVBench's JSON: values are typed strings under tags, samples lie in files of 32-bit floats beside
// it. Its readers find a summary by its tag and read the "data" of it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/export/export_formats.h"
#include "stats/moments.h"
#include "support/seconds.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* axis_name = "Variant";

struct Samples {
  std::vector<double> seconds;
  std::vector<double> hertz;  // as many, or none
};

Samples samples_of(const Measurement& measurement, int variant) {
  Samples samples;
  bool clocks_known = true;
  for (const Round& round : measurement.rounds) {
    for (const Segment& segment : round.segments) {
      if (segment.variant != variant) continue;
      const std::size_t before = samples.seconds.size();
      for (const auto time : segment.step_times) {
        samples.seconds.push_back(static_cast<double>(time.count()) / nanoseconds_per_second);
      }
      if (segment.step_times.empty()) {
        samples.seconds.push_back(static_cast<double>(segment.elapsed.count()) /
                                  static_cast<double>(segment.steps) / nanoseconds_per_second);
      }
      clocks_known = clocks_known && segment.sm_clock_hertz;
      samples.hertz.insert(samples.hertz.end(), samples.seconds.size() - before,
                           segment.sm_clock_hertz.value_or(0));
    }
  }
  if (!clocks_known) samples.hertz.clear();
  return samples;
}

// Little-endian 32-bit floats.
std::string floats_of(const std::vector<double>& values) {
  std::string bytes;
  bytes.reserve(4 * values.size());
  for (const double value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    for (int byte = 0; byte < 4; ++byte) bytes += static_cast<char>(bits >> (8 * byte) & 0xff);
  }
  return bytes;
}

Json value_named(const char* name, const char* type, const std::string& value) {
  return {{"name", name}, {"type", type}, {"value", value}};
}

Json summary(const std::string& tag, const char* name, const char* hint, const char* type,
             const std::string& value) {
  Json data = Json::array();
  data.push_back(value_named("value", type, value));
  return {{"tag", tag}, {"name", name}, {"hint", hint}, {"data", std::move(data)}};
}

Json number(const std::string& tag, const char* name, const char* hint, double value) {
  return summary(tag, name, hint, "float64", fmt::format("{}", value));
}

// Where NVBench's percentiles lie in a sorted sample: the nearest rank, halves rounded up.
double at_percent(const std::vector<double>& sorted, std::size_t percent) {
  return sorted[(percent * (sorted.size() - 1) + 50) / 100];
}

void add_time_summaries(Json& summaries, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const Moments moments = moments_of(seconds);
  const auto count = static_cast<double>(moments.count);
  const double deviation = count > 1 ? std::sqrt(moments.variance * count / (count - 1)) : 0;
  const double first_quartile = at_percent(seconds, 25);
  const double median = at_percent(seconds, 50);
  const double third_quartile = at_percent(seconds, 75);
  const std::string time = "nv/cold/time/gpu/";
  summaries.push_back(summary("nv/cold/sample_size", "Samples", "sample_size", "int64",
                              std::to_string(seconds.size())));
  summaries.push_back(number(time + "min", "Min GPU Time", "duration", seconds.front()));
  summaries.push_back(number(time + "max", "Max GPU Time", "duration", seconds.back()));
  summaries.push_back(number(time + "mean", "GPU Time", "duration", moments.mean));
  summaries.push_back(number(time + "stdev/absolute", "Std GPU Time", "duration", deviation));
  summaries.push_back(
      number(time + "stdev/relative", "Noise", "percentage", deviation / moments.mean));
  summaries.push_back(number(time + "q1", "Q1 GPU Time", "duration", first_quartile));
  summaries.push_back(number(time + "median", "Median GPU Time", "duration", median));
  summaries.push_back(number(time + "q3", "Q3 GPU Time", "duration", third_quartile));
  summaries.push_back(
      number(time + "iqr/absolute", "IQR GPU Time", "duration", third_quartile - first_quartile));
  summaries.push_back(number(time + "iqr/relative", "IQR/Median", "percentage",
                             (third_quartile - first_quartile) / median));
}

class Exporter {
 public:
  explicit Exporter(const std::filesystem::path& file) : file_(file) {}

  void add(const Measurement& measurement) {
    Json states = Json::array();
    Json values = Json::array();
    for (std::size_t variant = 0; variant < measurement.variants.size(); ++variant) {
      const std::string& name = measurement.variants[variant].name;
      values.push_back({{"input_string", name}, {"description", ""}, {"value", name}});
      states.push_back(state_of(measurement, variant));
    }
    Json axes = Json::array();
    axes.push_back(
        {{"name", axis_name}, {"type", "string"}, {"flags", ""}, {"values", std::move(values)}});
    benchmarks_.push_back({{"name", measurement.scenario},
                           {"index", benchmarks_.size()},
                           {"devices", Json::array({0})},
                           {"axes", std::move(axes)},
                           {"states", std::move(states)}});
    device_ = measurement.device;
  }

  std::vector<ExportedFile> files() && {
    const Json version{{"major", 1}, {"minor", 0}, {"patch", 0}, {"string", "1.0.0"}};
    Json devices = Json::array();
    devices.push_back({{"id", 0}, {"name", exported_name(device_)}});
    const Json root{
        {"meta", {{"argv", Json::array({"stepgate"})}, {"version", {{"json", version}}}}},
        {"devices", std::move(devices)},
        {"benchmarks", std::move(benchmarks_)}};
    files_.push_back({file_, root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"});
    return std::move(files_);
  }

 private:
  Json state_of(const Measurement& measurement, std::size_t variant) {
    const std::string& name = measurement.variants[variant].name;
    const Samples samples = samples_of(measurement, static_cast<int>(variant));
    Json summaries = Json::array();
    add_time_summaries(summaries, samples.seconds);
    add_samples(summaries, "nv/json/bin:nv/cold/sample_times", "-bin", samples.seconds);
    if (!samples.hertz.empty()) {
      summaries.push_back(number("nv/cold/sm_clock_rate/mean", "Clock Rate", "frequency",
                                 moments_of(samples.hertz).mean));
      add_samples(summaries, "nv/json/freqs-bin:nv/cold/sample_freqs", "-freqs-bin", samples.hertz);
    }
    ++samples_written_;
    Json axis_values = Json::array();
    axis_values.push_back(value_named(axis_name, "string", name));
    return {{"name", fmt::format("Device=0 {}={}", axis_name, name)},
            {"description", fmt::format("{}={}", axis_name, name)},
            {"device", 0},
            {"axis_values", std::move(axis_values)},
            {"summaries", std::move(summaries)},
            {"is_skipped", false}};
  }

  // Side-cars are named relative to the JSON, so that all may be moved together.
  void add_samples(Json& summaries, const char* tag, const char* suffix,
                   const std::vector<double>& values) {
    const std::filesystem::path folder = file_.filename().string() + suffix;
    const std::filesystem::path name = folder / fmt::format("{}.bin", samples_written_);
    Json data = Json::array();
    data.push_back(value_named("filename", "string", name.generic_string()));
    data.push_back(value_named("size", "int64", std::to_string(values.size())));
    summaries.push_back({{"tag", tag},
                         {"name", "Samples"},
                         {"hint", "file/sample_times"},
                         {"data", std::move(data)}});
    files_.push_back({file_.parent_path() / name, floats_of(values)});
  }

  std::filesystem::path file_;
  DeviceIdentity device_;
  Json benchmarks_ = Json::array();
  std::vector<ExportedFile> files_;
  std::size_t samples_written_ = 0;
};

}  // namespace

std::vector<ExportedFile> export_nvbench(const std::filesystem::path& file,
                                         std::span<const Measurement> measurements) {
  Exporter exporter(file);
  for (const Measurement& measurement : measurements) {
    if (!measurement.rounds.empty()) exporter.add(measurement);
  }
  return std::move(exporter).files();
}

}  // namespace stepgate
