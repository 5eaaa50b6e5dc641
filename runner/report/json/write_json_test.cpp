// SPDX-License-Identifier: MIT
// Tests the content of the JSON. ci/recompute.py shows that it suffices to recompute the verdict.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "judge/testing/fake_scenario.h"
#include "report/testing/reports.h"
#include "report/writers.h"

namespace stepgate {
namespace {

nlohmann::json written(const Judged& judged) {
  std::ostringstream out;
  write_json(out,
             {.stepgate = "0.1.0",
              .build = "00ff",
              .commit = "0123abc",
              .date = "2026-11-22T10:00:00Z",
              .host = "runner-7"},
             reported(judged.verdict), judged.measurement, {});
  return nlohmann::json::parse(out.str());
}

Judged judged_run(double fix_ratio) {
  Script script;
  script.step_time = noisy(fix_ratio, 9);
  return measure_and_judge(
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)}), script,
      9);
}

TEST(WriteJson, KeepsSixtyFourBitNumbersAndUnknownValues) {
  Judged judged = judged_run(1);
  judged.measurement.seed = 0xfedcba9876543210;
  judged.measurement.rounds[0].segments[0].host_busy.reset();
  const nlohmann::json report = written(judged);
  EXPECT_EQ(report["schema"], report_schema);
  EXPECT_EQ(report["seed"], "fedcba9876543210");
  EXPECT_EQ(report["fingerprint"], "0000000000001234");
  EXPECT_TRUE(report["broken"].is_null());
  EXPECT_TRUE(report["measurement"]["rounds"][0][0]["host_busy_ns"].is_null());
  EXPECT_EQ(report["device"]["kind"], "simulated");
  EXPECT_EQ(report["measurement"]["variants"][1]["name"], "fix");
  EXPECT_EQ(report["measurement"]["variants"][1]["batch_size"], 64);
  EXPECT_EQ(report["batch_bytes"], 1 << 20);
  EXPECT_EQ(report["run"]["commit"], "0123abc");
  EXPECT_EQ(report["run"]["host"], "runner-7");
}

TEST(WriteJson, SaysWhatEachRankCommunicatesWith) {
  Judged judged = judged_run(1);
  EXPECT_EQ(written(judged)["device"]["ranks"].size(), 0U);
  RankIdentity rank{.host = "node-1", .uuid = "GPU-a", .communication = {.library = "NCCL 2.28.9"}};
  rank.communication.file = "/lib/libnccl.so.2";
  rank.communication.settings = {{"NCCL_ALGO", "Ring"}};
  rank.communication.links = {"", "NVLink"};
  judged.verdict.device.ranks = {rank, rank};
  judged.verdict.device.launcher = "torchrun";
  const nlohmann::json device = written(judged)["device"];
  EXPECT_EQ(device["launcher"], "torchrun");
  ASSERT_EQ(device["ranks"].size(), 2U);
  const nlohmann::json& first = device["ranks"][0];
  EXPECT_EQ(first["host"], "node-1");
  EXPECT_EQ(first["uuid"], "GPU-a");
  const nlohmann::json& with = first["communication"];
  EXPECT_EQ(with["library"], "NCCL 2.28.9");
  EXPECT_EQ(with["file"], "/lib/libnccl.so.2");
  EXPECT_EQ(with["settings"]["NCCL_ALGO"], "Ring");
  EXPECT_EQ(with["links"][1], "NVLink");
}

TEST(WriteJson, HasEveryReadingOfTheEnvironmentAndTheClocks) {
  Script script;
  script.step_time = noisy(0.8, 9);
  script.sm_clock_hertz = [](const std::string&) { return 1.98e9; };
  script.environment = [](std::int64_t reading) {
    EnvironmentReading read;
    if (reading == 1) {
      read.unavailable = "the driver went away";
      return read;
    }
    read.sm_clock_hertz = 1.98e9;
    read.active = {ClockEvent::software_power_cap};
    read.times = {{ClockEvent::software_power_cap, std::chrono::nanoseconds(1500)}};
    read.processes = ComputeProcesses{.others = {{4711, {}}}, .self_is_listed = false};
    return read;
  };
  Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  // Segments are used so that each variant has its own clock rate.
  scenario.measure.interleave = Interleave::segments;
  const nlohmann::json report = written(measure_and_judge(scenario, script, 9));
  const nlohmann::json& readings = report["measurement"]["environment"];
  ASSERT_EQ(readings.size(), report["measurement"]["rounds"].size() + 1);
  EXPECT_EQ(readings[1]["unavailable"], "the driver went away");
  EXPECT_EQ(readings[0], nlohmann::json::parse(R"({
    "unavailable": "", "sm_clock_hertz": 1.98e9, "memory_clock_hertz": null,
    "active": ["software_power_cap"], "times": {"software_power_cap": 1500},
    "temperature_celsius": null, "power_watts": null, "power_limit_watts": null,
    "processes": {"self_is_listed": false, "others": [{"pid": 4711, "memory_bytes": null}]}})"));
  EXPECT_EQ(report["measurement"]["rounds"][0][0]["sm_clock_hz"], 1.98e9);
  EXPECT_NEAR(report["variants"][0]["sm_clock_hz"].get<double>(), 1.98e9, 1);
  EXPECT_EQ(report["expect"][0]["clocks"]["clock_ratio"], 1);
  EXPECT_TRUE(report["disturbance"].is_null());
}

TEST(WriteJson, HasTheMechanismAndWhatTracedAssertionsAreMadeOf) {
  Script script;
  script.step_time = noisy(0.8, 9);
  const Scenario scenario = scenario_of(
      {assertion("idle", {{of("baseline", Metric::gpu_idle)}}, Relation::at_most, {{0.5}})});
  const nlohmann::json report = written(measure_and_judge(scenario, script, 9));
  const nlohmann::json& mechanism = report["mechanism"];
  EXPECT_TRUE(mechanism["unavailable"].is_null());
  EXPECT_EQ(mechanism["rounds"], 7);
  EXPECT_EQ(mechanism["variants"][0]["bound_by"], "idle after waits");
  EXPECT_EQ(mechanism["variants"][0]["class"], "host");
  EXPECT_NEAR(mechanism["variants"][0]["work"]["matmul"]["seconds"].get<double>(), 1.2e-3, 1e-12);
  EXPECT_NEAR(mechanism["variants"][0]["time"]["idle_after_wait"].get<double>(), 4e-4, 1e-12);
  EXPECT_EQ(mechanism["variants"][0]["phases"]["sync"]["host_waits"], 1);
  EXPECT_EQ(mechanism["separations"][0]["counts"][0]["metric"], "host_waits_per_step");
  const nlohmann::json& contrasts = report["expect"][0]["not_randomised"]["contrasts"];
  ASSERT_EQ(contrasts.size(), report["measurement"]["traced_rounds"].size());
  for (std::size_t round = 0; round < contrasts.size(); ++round) {
    const double idle =
        report["measurement"]["traced_rounds"][round]["baseline"]["values"]["gpu_idle"];
    EXPECT_NEAR(contrasts[round].get<double>(), std::log(idle / 0.5), 1e-9);
  }
  const nlohmann::json untraced = written(measure_and_judge(scenario, script, 9, std::nullopt));
  EXPECT_TRUE(untraced["mechanism"].is_null());
  EXPECT_TRUE(untraced["measurement"]["traced_rounds"].is_null());
}

TEST(WriteJson, HasTheLibrariesOfTheVariantsThatDependOnOne) {
  Script script;
  script.step_time = noisy(0.8, 9);
  std::vector<Subject> subjects = counted_by_script();
  subjects[1].libraries = {{"cuDNN", "9.14.0"}};
  script.choices = [](const std::string& variant, int) {
    if (variant != "fix") return std::vector<KernelChoice>{};
    return std::vector<KernelChoice>{{"attention", "cuDNN 9.14.0", ""},
                                     {"attention_gradient", "", "there is no workspace"}};
  };
  const nlohmann::json report = written(measure_and_judge(
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)}), script,
      9, traced_by_script(), subjects));
  EXPECT_EQ(report["measurement"]["libraries"], nlohmann::json::parse(R"({"fix": {
    "keys": {"cuDNN": "9.14.0"},
    "kernels": [{"kernel": "attention", "library": "cuDNN 9.14.0", "reason": ""},
                {"kernel": "attention_gradient", "library": null,
                 "reason": "there is no workspace"}]}})"));
  EXPECT_EQ(report["notes"][0],
            "in 'fix', attention is cuDNN 9.14.0's; attention_gradient is stepgate's own: there is "
            "no workspace");
  EXPECT_TRUE(written(judged_run(1))["measurement"]["libraries"].empty());
}

TEST(WriteJson, SaysThatNothingIsKnownOfAnEnvironment) {
  const nlohmann::json report = written(judged_run(1));
  EXPECT_TRUE(report["measurement"]["environment"].empty());
  EXPECT_TRUE(report["expect"][0]["clocks"].is_null());
  EXPECT_TRUE(report["measurement"]["rounds"][0][0]["sm_clock_hz"].is_null());
}

}  // namespace
}  // namespace stepgate
