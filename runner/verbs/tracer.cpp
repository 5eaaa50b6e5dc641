// SPDX-License-Identifier: MIT
// `stepgate tracer`: the other end of trace_all. A line on standard input names the file for the
// next scenario's traces, a line on standard output says that it is there.
#include <iostream>
#include <string>

#include "judge/decide_by_rounds.h"
#include "measure/trace/trace_rounds.h"
#include "measure/trace/traced_file.h"
#include "scenario/read/read_scenario.h"
#include "verbs/calibrate_planned.h"
#include "verbs/fit_to_device.h"
#include "verbs/planned.h"
#include "verbs/trace_all.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// Beyond the fewest that can decide a traced sentence, which decide only where every round agrees;
// made while one is open.
constexpr std::int64_t spare_rounds = 8;
// That tell whether counts are the same every time.
constexpr std::int64_t rounds_of_counts = 2;
constexpr double most_seconds = 2;

TraceRequest request_for(std::int64_t rounds, std::int64_t enough, std::uint64_t seed) {
  return {.rounds = rounds, .enough_rounds = enough, .max_seconds = most_seconds, .seed = seed};
}

Traced traced(Device& device, const Arguments& arguments, const Planned& planned,
              const JudgeSettings& settings, std::uint64_t seed) {
  Traced result;
  if (is_planned_only(planned.scenario)) return result;
  result.unavailable = device.reason_against_tracing();
  if (!result.unavailable.empty()) return result;
  std::optional<Calibrated> found;
  std::vector<PlannedStep> found_plans;
  if (planned.scenario.calibrate) {
    found = calibrate_planned(device, arguments, planned, seed);
    found_plans =
        plans_on(device.identity(), with_knob(planned, arguments, found->knob, found->value), seed);
  }
  const std::vector<PlannedStep>& plans = found ? found_plans : planned.plans;
  const std::int64_t fewest = fewest_traced_rounds(planned.scenario, settings);
  const std::int64_t spare = fewest > rounds_of_counts ? spare_rounds : 0;
  TraceRequest request = request_for(fewest + spare, fewest, seed_of(planned.scenario, seed));
  request.nothing_open = [&](const Traced& so_far) {
    return std::ssize(so_far.rounds) >= fewest_traced_rounds_to_hold(planned.scenario, settings) &&
           traced_rounds_decide(planned.scenario, plans, so_far, settings);
  };
  result = trace_rounds(device, plans, request);
  result.calibrated = found;
  return result;
}

}  // namespace

int trace_for_run(const Arguments& arguments) {
  const std::uint64_t seed = seed_of(arguments);
  std::vector<Planned> all = plan_all(arguments, seed);
  DeviceChoice choice = arguments.device;
  choice.seed = seed;
  choice.tracing = true;
  const OpenedDevice opened = open_device(choice);
  fit_to_device(all, opened.device->identity(), seed);
  const JudgeSettings settings = settings_for(all);
  std::string file;
  for (const std::size_t index : tracing_order(all)) {
    const Planned& planned = all[index];
    if (!std::getline(std::cin, file) || file.empty()) break;
    Traced result;
    bool is_lost = false;
    try {
      result = traced(*opened.device, arguments, planned, settings, seed);
    } catch (const DeviceLost& error) {
      result.unavailable = error.what();
      is_lost = true;
    } catch (const DeviceError& error) {
      result.unavailable = error.what();
    }
    write_traced(file, result);
    std::cout << (is_lost ? tracer_lost_its_device : "traced") << std::endl;
  }
  return 0;
}

}  // namespace stepgate
