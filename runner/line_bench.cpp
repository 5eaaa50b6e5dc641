// SPDX-License-Identifier: MIT
// Benchmarks of host costs: reading and planning a scenario file, and deciding one on the simulated
// device.
#include <benchmark/benchmark.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "device/profile.h"
#include "device/simulated/simulated_device.h"
#include "judge/judge.h"
#include "measure/planned_subject.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

std::vector<std::filesystem::path> suite() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(STEPGATE_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  return files;
}

void check_and_plan_a_file(benchmark::State& state) {
  const std::vector<std::filesystem::path> files = suite();
  std::size_t next = 0;
  for ([[maybe_unused]] auto once : state) {
    const Scenario scenario = read_scenario(files[next++ % files.size()]);
    benchmark::DoNotOptimize(build_step_plans(scenario, 1));
  }
}
BENCHMARK(check_and_plan_a_file)->Unit(benchmark::kMicrosecond);

void decide_the_suite_simulated(benchmark::State& state) {
  const DeviceProfile profile =
      read_profile(STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/device.toml");
  for ([[maybe_unused]] auto once : state) {
    for (const std::filesystem::path& file : suite()) {
      const Scenario scenario = read_scenario(file);
      if (is_planned_only(scenario)) continue;
      const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, 1));
      const auto device = make_simulated_device(profile, {.seed = 1});
      const JudgeSettings settings;
      MeasureRequest request;
      request.knobs = scenario.measure;
      request.enough = enough_evidence(scenario, subjects_of(plans), settings);
      const Measurement measurement = measure(*device, plans, request);
      benchmark::DoNotOptimize(judge(scenario, subjects_of(plans), measurement, settings));
    }
  }
}
BENCHMARK(decide_the_suite_simulated)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepgate

BENCHMARK_MAIN();
