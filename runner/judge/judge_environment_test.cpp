// SPDX-License-Identifier: MIT
// Tests with handwritten readings which events disturb a measurement, and what follows.
#include "judge/judge_environment.h"

#include <gtest/gtest.h>

#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

EnvironmentReading calm() {
  EnvironmentReading reading;
  reading.sm_clock_hertz = 1.98e9;
  reading.active = std::vector<ClockEvent>{};
  reading.times = {{ClockEvent::software_power_cap, 5s},
                   {ClockEvent::hardware_thermal, 7s},
                   {ClockEvent::sync_boost, 0s}};
  reading.temperature_celsius = 41;
  reading.power_watts = 312;
  reading.power_limit_watts = 700;
  reading.processes = ComputeProcesses{};
  return reading;
}

EnvironmentReading with_event(ClockEvent event) {
  EnvironmentReading reading = calm();
  reading.active = {event};
  return reading;
}

EnvironmentReading with_processes(std::vector<std::int64_t> pids, bool self_is_listed) {
  EnvironmentReading reading = calm();
  reading.processes->self_is_listed = self_is_listed;
  for (const std::int64_t pid : pids) reading.processes->others.push_back({pid, 512 << 20});
  return reading;
}

EnvironmentLog log_of(const std::vector<EnvironmentReading>& readings) {
  EnvironmentLog log;
  for (const EnvironmentReading& reading : readings) log.add(reading);
  return log;
}

std::string disturbance_in(const std::vector<EnvironmentReading>& readings) {
  return log_of(readings).disturbance().value_or("none");
}

std::string lines_of(const std::vector<EnvironmentReading>& readings) {
  std::string text;
  for (const std::string& line : log_of(readings).in_words()) text += line + "\n";
  return text;
}

TEST(Environment, IsDisturbedByHeatThePowerBrakeAndTheHardware) {
  for (const ClockEvent event : {ClockEvent::hardware_thermal, ClockEvent::software_thermal,
                                 ClockEvent::hardware_power_brake}) {
    EXPECT_NE(disturbance_in({calm(), with_event(event)}).find("at 1 of 2 readings"),
              std::string::npos);
  }
  const EnvironmentReading slowed = with_event(ClockEvent::hardware_slowdown);
  EXPECT_EQ(disturbance_in({calm(), slowed, slowed}),
            "a hardware slowdown held the clocks down at 2 of 3 readings");
}

TEST(Environment, TakesOneHardwareSlowdownForAChangeOfTheClock) {
  EXPECT_EQ(disturbance_in({calm(), with_event(ClockEvent::hardware_slowdown), calm()}), "none");
}

TEST(Environment, IsNotDisturbedByAPowerCapOrByChosenClocks) {
  for (const ClockEvent event :
       {ClockEvent::idle, ClockEvent::applications_clocks, ClockEvent::software_power_cap,
        ClockEvent::sync_boost, ClockEvent::display_clocks}) {
    EXPECT_EQ(disturbance_in({with_event(event), with_event(event)}), "none");
  }
  EnvironmentReading capped = calm();
  capped.times[0].total += 120ms;
  EXPECT_EQ(disturbance_in({calm(), capped}), "none");
  EXPECT_NE(lines_of({calm(), capped}).find("the power limit held the clocks down for 120 ms"),
            std::string::npos);
}

TEST(Environment, SeesThrottlingBetweenTwoReadings) {
  EnvironmentReading hot = calm();
  hot.times[1].total += 12300us;
  hot.temperature_celsius = 91;
  EXPECT_EQ(disturbance_in({calm(), hot, calm()}), "none") << "counters that started again";
  EXPECT_EQ(disturbance_in({calm(), hot}),
            "thermal throttling by the hardware held the clocks down for 12.3 ms, at up to 91 C");
}

TEST(Environment, SeesANeighbour) {
  EXPECT_EQ(disturbance_in({calm(), with_processes({4711}, true), calm()}),
            "process 4711 (512 MiB) had the GPU open too");
  EXPECT_EQ(disturbance_in({with_processes({1, 2, 3, 4, 5}, true)}),
            "process 1 (512 MiB), process 2 (512 MiB), process 3 (512 MiB) and 2 more had the GPU "
            "open too");
}

TEST(Environment, DoesNotTakeAProcessThatMayBeThisOneForANeighbour) {
  EXPECT_EQ(disturbance_in({with_processes({4711}, false), with_processes({4711}, false)}), "none");
  EXPECT_NE(lines_of({with_processes({4711}, false)}).find("is not known"), std::string::npos);
  EXPECT_NE(lines_of({with_processes({}, false)}).find("is not known"), std::string::npos);
  EXPECT_NE(lines_of({calm()}).find("no other process had the GPU open"), std::string::npos);
}

TEST(Environment, KnowsThatOfTwoHiddenProcessesOneIsANeighbour) {
  EXPECT_NE(disturbance_in({with_processes({4711, 4712}, false)}).find("1 of process 4711"),
            std::string::npos);
}

TEST(Environment, SeesAHiddenNeighbourThatComesLater) {
  EXPECT_NE(disturbance_in({with_processes({}, false), with_processes({4711}, false)}), "none");
}

TEST(Environment, SaysWhatIsNotKnown) {
  EnvironmentReading nothing;
  nothing.unavailable = "libnvidia-ml.so.1: cannot open shared object file";
  EXPECT_EQ(disturbance_in({nothing, nothing}), "none");
  EXPECT_EQ(lines_of({nothing}), "not known: libnvidia-ml.so.1: cannot open shared object file\n");
  EXPECT_EQ(lines_of({}), "");
}

TEST(Environment, IsDescribedInOneLineEach) {
  EnvironmentReading later = calm();
  later.sm_clock_hertz = 1.935e9;
  later.temperature_celsius = 44;
  EXPECT_EQ(lines_of({calm(), later}),
            "SM clock 1935 to 1980 MHz, 41 to 44 C, 312 W of 700 W, at 2 readings between the "
            "rounds\nno other process had the GPU open\n");
}

Scenario scenario_with_a_count() {
  return scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05),
                      assertion("no_waits", {{of("fix", Metric::host_waits_per_step)}},
                                Relation::equal, {{0.0}})});
}

Judged judged_with(double fix_ratio, std::function<EnvironmentReading(std::int64_t)> environment) {
  Script script;
  script.step_time = noisy(fix_ratio, 3);
  script.environment = std::move(environment);
  return measure_and_judge(scenario_with_a_count(), script, 3);
}

TEST(JudgeEnvironment, LeavesTimedAssertionsUndecidedAndCountedOnesAlone) {
  for (const double fix_ratio : {0.7, 1.3}) {
    const Judged judged = judged_with(
        fix_ratio, [](std::int64_t) { return with_event(ClockEvent::hardware_power_brake); });
    const AssertionVerdict& timed = judged.verdict.assertions[0];
    EXPECT_EQ(timed.outcome, Outcome::undecided);
    EXPECT_EQ(timed.reason.find("environment: the power brake held the clocks down"), 0U)
        << timed.reason;
    EXPECT_EQ(judged.verdict.assertions[1].outcome, Outcome::passes);
    EXPECT_EQ(judged.verdict.outcome, Outcome::undecided);
  }
}

TEST(JudgeEnvironment, LeavesAClassUndecided) {
  Script script;
  script.step_time = noisy(1, 3);
  script.environment = [](std::int64_t) { return with_event(ClockEvent::hardware_power_brake); };
  const Scenario scenario = scenario_of(
      {assertion("class", {{of("fix", Metric::bound)}}, Relation::equal, {{BoundClass::compute}})});
  const AssertionVerdict verdict =
      measure_and_judge(scenario, script, 3).verdict.assertions.front();
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_TRUE(verdict.in_doubt);
  EXPECT_NE(verdict.reason.find("measured, but not to be trusted: compute in 7 traced rounds"),
            std::string::npos)
      << verdict.reason;
}

TEST(JudgeEnvironment, StopsMeasuringOnceDisturbed) {
  const Judged judged = judged_with(1 / 1.05, [](std::int64_t reading) {
    return with_processes(
        reading >= 3 ? std::vector<std::int64_t>{4711} : std::vector<std::int64_t>{}, true);
  });
  EXPECT_EQ(judged.verdict.rounds, 3);
  EXPECT_FALSE(judged.measurement.budget_spent);
}

TEST(JudgeEnvironment, DecidesUnderASoftwarePowerCap) {
  const Judged judged =
      judged_with(0.7, [](std::int64_t) { return with_event(ClockEvent::software_power_cap); });
  EXPECT_EQ(judged.verdict.outcome, Outcome::passes);
  EXPECT_FALSE(judged.verdict.disturbance);
}

TEST(JudgeEnvironment, ReadsOnceBeforeTheRoundsAndOnceAfterEach) {
  std::int64_t readings = 0;
  const Judged judged = judged_with(0.7, [&](std::int64_t reading) {
    readings = reading + 1;
    return calm();
  });
  EXPECT_EQ(readings, judged.verdict.rounds + 1);
  EXPECT_TRUE(judged.measurement.environment_before);
  for (const Round& round : judged.measurement.rounds) EXPECT_TRUE(round.environment_after);
}

}  // namespace
}  // namespace stepgate
