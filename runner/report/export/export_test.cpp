// SPDX-License-Identifier: MIT
// Exports of a fake measurement, read back as the tools that they are for read them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "judge/testing/fake_scenario.h"
#include "report/export/export_formats.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

std::vector<Measurement> measurements(bool with_clocks = true) {
  Script script;
  script.step_time = noisy(0.8, 4);
  if (with_clocks) {
    script.sm_clock_hertz = [](const std::string& variant) {
      return variant == "fix" ? 1.5e9 : 2e9;
    };
  }
  Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  scenario.measure.interleave = Interleave::segments;
  return {measure_and_judge(scenario, script, 4).measurement};
}

std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
    if (line.ends_with(',')) rows.back().emplace_back();
  }
  return rows;
}

TEST(ExportCsv, HasARowForEverySegmentInTheOrderOfTheRun) {
  const auto all = measurements();
  const auto files = export_csv("out/s.csv", all);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].path, "out/s.csv");
  const auto rows = rows_of(files[0].content);
  ASSERT_EQ(rows.size(), 1 + 4 * all[0].rounds.size());
  const Segment& second = all[0].rounds[0].segments[1];
  EXPECT_EQ(rows[2][2], all[0].variants[static_cast<std::size_t>(second.variant)].name);
  EXPECT_EQ(rows[2][5], "1");
  EXPECT_EQ(rows[2][8], std::to_string(second.elapsed.count()));
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
}

// Scored steps by turns have others in between.
TEST(ExportCsv, NumbersTheStepsOfLongSegmentsOnly) {
  auto all = measurements();
  all[0].rounds[0].interleaved = true;
  for (const auto& row : rows_of(export_csv_steps("s.csv", all)[0].content)) {
    if (row[2] == "round") continue;
    EXPECT_EQ(row[4].empty(), row[2] == "0");
    EXPECT_FALSE(row[5].empty());
  }
}

TEST(ExportCsv, LeavesEmptyWhatIsNotKnownAndQuotesNames) {
  auto all = measurements(false);
  all[0].device.name = "a \"GPU\", sort of";
  const std::string text = export_csv("s.csv", all)[0].content;
  EXPECT_NE(text.find("\n\"simulated a \"\"GPU\"\", sort of\",scripted,"), std::string::npos)
      << text.substr(0, 300);
  EXPECT_EQ(text.substr(text.size() - 2), ",\n") << "no clock";
}

TEST(ExportCsv, HasARowForEverySingleStep) {
  const auto all = measurements();
  std::size_t steps = 0;
  for (const Round& round : all[0].rounds) {
    for (const Segment& segment : round.segments) steps += segment.step_times.size();
  }
  const auto rows = rows_of(export_csv_steps("t.csv", all)[0].content);
  ASSERT_EQ(rows.size(), 1 + steps);
  const Segment& first = all[0].rounds[0].segments[0];
  EXPECT_EQ(rows[1][4], std::to_string(first.first_step + 1));
  EXPECT_EQ(rows[1][5], std::to_string(first.step_times[0].count()));
}

TEST(ExportGoogleBenchmark, HasARepetitionForEveryRoundAndVariant) {
  const auto all = measurements();
  const Json root = Json::parse(export_google_benchmark("b.json", all)[0].content);
  const std::size_t rounds = all[0].rounds.size();
  ASSERT_EQ(root["benchmarks"].size(), 2 * rounds);
  const Json& run = root["benchmarks"][rounds + 2];  // of the second variant
  EXPECT_EQ(run["name"], "scripted/fix");
  EXPECT_EQ(run["repetition_index"], 2);
  EXPECT_EQ(run["repetitions"], rounds);
  EXPECT_NEAR(run["real_time"].get<double>(), 800'000, 80'000);
  EXPECT_NEAR(run["cpu_time"].get<double>() / run["real_time"].get<double>(), 0.25, 1e-3);
  EXPECT_NEAR(run["items_per_second"].get<double>() * run["real_time"].get<double>(), 64e9, 1);
  EXPECT_EQ(root["context"]["device"], "simulated scripted");
}

TEST(Export, WritesNothingOfAScenarioThatWasNotMeasured) {
  const std::vector<Measurement> skipped(1);
  EXPECT_TRUE(Json::parse(export_google_benchmark("b", skipped)[0].content)["benchmarks"].empty());
  EXPECT_TRUE(Json::parse(export_nvbench("n", skipped)[0].content)["benchmarks"].empty());
  EXPECT_EQ(rows_of(export_csv("s", skipped)[0].content).size(), 1U);
}

// --- as NVBench's scripts read it
// ---------------------------------------------------------------------------

// The field of a summary that has the tag, of the type that the readers insist on.
std::string field(const Json& state, const std::string& tag, const std::string& name,
                  const std::string& type) {
  for (const Json& summary : state["summaries"]) {
    if (summary["tag"] != tag) continue;
    for (const Json& data : summary["data"]) {
      if (data["name"] != name) continue;
      EXPECT_EQ(data["type"], type) << tag;
      return data["value"];
    }
  }
  return {};
}

double value(const Json& state, const std::string& tag) {
  const std::string text = field(state, tag, "value", "float64");
  return text.empty() ? std::nan("") : std::stod(text);
}

std::vector<float> floats(const std::vector<ExportedFile>& files, const Json& state,
                          const std::string& tag, const std::filesystem::path& json) {
  const std::string name = field(state, tag, "filename", "string");
  for (const ExportedFile& file : files) {
    if (file.path != json.parent_path() / name) continue;
    std::vector<float> numbers(file.content.size() / 4);
    std::memcpy(numbers.data(), file.content.data(), file.content.size());
    EXPECT_EQ(std::to_string(numbers.size()), field(state, tag, "size", "int64"));
    return numbers;
  }
  ADD_FAILURE() << "no side-car '" << name << "'";
  return {};
}

struct ReadBack {
  std::vector<ExportedFile> files;
  Json root;
};

ReadBack exported(const std::vector<Measurement>& all) {
  ReadBack read{export_nvbench("out/n.json", all), {}};
  EXPECT_EQ(read.files.back().path, "out/n.json");
  read.root = Json::parse(read.files.back().content);
  return read;
}

TEST(ExportNvbench, HasWhatTheReadersLookUp) {
  const Json root = exported(measurements()).root;
  EXPECT_EQ(root["meta"]["version"]["json"]["string"], "1.0.0");
  EXPECT_EQ(root["devices"][0]["id"], 0);
  const Json& bench = root["benchmarks"][0];
  EXPECT_EQ(bench["name"], "scripted");
  EXPECT_EQ(bench["devices"], Json::array({0}));
  EXPECT_EQ(bench["axes"][0]["type"], "string");
  ASSERT_EQ(bench["states"].size(), 2U);
  const Json& state = bench["states"][1];
  EXPECT_EQ(state["name"], "Device=0 Variant=fix");
  EXPECT_EQ(state["device"], 0);
  EXPECT_EQ(state["axis_values"][0]["name"], bench["axes"][0]["name"]);
  EXPECT_EQ(state["axis_values"][0]["value"], "fix");
  EXPECT_EQ(state["is_skipped"], false);
}

TEST(ExportNvbench, HasSamplesBesideItThatAgreeWithTheSummaries) {
  const ReadBack read = exported(measurements());
  ASSERT_EQ(read.files.size(), 5U);  // times and frequencies of two variants, and the JSON
  for (const Json& state : read.root["benchmarks"][0]["states"]) {
    std::vector<float> times =
        floats(read.files, state, "nv/json/bin:nv/cold/sample_times", "out/n.json");
    ASSERT_GT(times.size(), 50U);
    double sum = 0;
    for (const float time : times) sum += time;
    EXPECT_NEAR(value(state, "nv/cold/time/gpu/mean"), sum / static_cast<double>(times.size()),
                1e-9);
    std::sort(times.begin(), times.end());
    const double q1 = value(state, "nv/cold/time/gpu/q1");
    const double median = value(state, "nv/cold/time/gpu/median");
    const double q3 = value(state, "nv/cold/time/gpu/q3");
    EXPECT_FLOAT_EQ(static_cast<float>(value(state, "nv/cold/time/gpu/min")), times.front());
    EXPECT_FLOAT_EQ(static_cast<float>(value(state, "nv/cold/time/gpu/max")), times.back());
    // The readers refuse an interval in another order.
    EXPECT_LE(value(state, "nv/cold/time/gpu/min"), q1);
    EXPECT_LE(q1, median);
    EXPECT_LE(median, q3);
    EXPECT_NEAR(value(state, "nv/cold/time/gpu/iqr/absolute"), q3 - q1, 1e-12);
    EXPECT_NEAR(value(state, "nv/cold/time/gpu/iqr/relative"), (q3 - q1) / median, 1e-9);
    EXPECT_NEAR(
        value(state, "nv/cold/time/gpu/stdev/relative"),
        value(state, "nv/cold/time/gpu/stdev/absolute") / value(state, "nv/cold/time/gpu/mean"),
        1e-9);
  }
}

TEST(ExportNvbench, HasAClockForEverySampleOrForNone) {
  const ReadBack read = exported(measurements());
  const Json& fix = read.root["benchmarks"][0]["states"][1];
  const auto hertz =
      floats(read.files, fix, "nv/json/freqs-bin:nv/cold/sample_freqs", "out/n.json");
  EXPECT_EQ(hertz.size(),
            floats(read.files, fix, "nv/json/bin:nv/cold/sample_times", "out/n.json").size());
  for (const float one : hertz) ASSERT_FLOAT_EQ(one, 1.5e9F);
  EXPECT_NEAR(value(fix, "nv/cold/sm_clock_rate/mean"), 1.5e9, 1);

  auto all = measurements();
  all[0].rounds[1].segments[0].sm_clock_hertz.reset();
  const ReadBack partly = exported(all);
  EXPECT_EQ(partly.files.size(), 4U) << "one of the variants lost its clock";
}

TEST(ExportNvbench, TakesSegmentsWhereSingleStepsAreNotTimed) {
  auto all = measurements();
  for (Round& round : all[0].rounds) {
    for (Segment& segment : round.segments) segment.step_times.clear();
  }
  const ReadBack read = exported(all);
  const auto times = floats(read.files, read.root["benchmarks"][0]["states"][0],
                            "nv/json/bin:nv/cold/sample_times", "out/n.json");
  EXPECT_EQ(times.size(), 2 * all[0].rounds.size());
  for (const float time : times) EXPECT_NEAR(time, 1e-3, 1e-3);
}

}  // namespace
}  // namespace stepgate
