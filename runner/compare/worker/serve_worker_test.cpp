// SPDX-License-Identifier: MIT
#include "compare/worker/serve_worker.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "compare/worker/kernel_workload.h"
#include "device/profile.h"
#include "device/simulated/simulated_device.h"
#include "measure/testing/fake_device.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

class ServeWorker : public testing::Test {
 protected:
  // Returns the answers to these request lines.
  std::vector<std::string> answers(const std::string& requests) {
    std::istringstream in(requests);
    std::ostringstream out;
    FakeDevice device(script);
    serve_worker(in, out, device, {.timed = plans, .counts = counts, .cpu_draw = cpu_draw},
                 "1.2.3");
    std::vector<std::string> lines;
    std::istringstream written(out.str());
    for (std::string line; std::getline(written, line);) lines.push_back(line);
    return lines;
  }

  Script script{.step_time = [](const std::string&, std::int64_t) {
    return std::chrono::nanoseconds(std::chrono::milliseconds(1));
  }};
  std::vector<PlannedStep> plans = steps_named({"baseline", "fix"});
  std::optional<std::uint64_t> cpu_draw;
  bool counts = false;
};

int processors_allowed() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

TEST_F(ServeWorker, SaysWhatItIsAndWhatItCanRun) {
  const auto said = answers("{\"do\":\"hello\",\"protocol\":1}\n");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("\"program\":\"stepgate\",\"version\":\"1.2.3\""), std::string::npos)
      << said[0];
  EXPECT_NE(said[0].find("\"works\":[\"scripted/baseline\",\"scripted/fix\"]"), std::string::npos)
      << said[0];
}

TEST_F(ServeWorker, RunsWhatIsLoadedAndSaysHowLongTheScoredStepsTook) {
  const auto said = answers(
      "{\"do\":\"load\",\"work\":\"scripted/fix\"}\n"
      "{\"do\":\"run\",\"steps\":5,\"wash_out\":2}\n{\"do\":\"quit\"}\n{\"do\":\"unload\"}\n");
  ASSERT_EQ(said.size(), 2u) << "nothing is answered after quit";
  EXPECT_EQ(said[1], "{\"steps\":5,\"elapsed_ns\":5000000}");
  EXPECT_EQ(script.runs.back().first, "fix");
  EXPECT_EQ(script.runs.back().second.wash_out_steps, 2);
}

TEST_F(ServeWorker, TellsNoTimeOfAStepThatChangesTheDevice) {
  script.device_changed = [](const std::string&, std::int64_t step) {
    return step > 10 ? std::string("heap was 1 B and is 2 B") : std::string();
  };
  const auto said =
      answers("{\"do\":\"load\",\"work\":\"scripted/fix\"}\n{\"do\":\"run\",\"steps\":50}\n");
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[1], "{\"error\":\"its step changed the device: heap was 1 B and is 2 B\"}");
}

TEST_F(ServeWorker, AnswersEveryWrongRequestWithAnErrorAndGoesOn) {
  const auto said = answers(
      "nonsense\n\n[1]\n{}\n{\"do\":7}\n{\"do\":\"fly\"}\n{\"do\":\"hello\",\"protocol\":2}\n"
      "{\"do\":\"load\"}\n{\"do\":\"load\",\"work\":\"scripted/fxi\"}\n"
      "{\"do\":\"run\",\"steps\":1}\n{\"do\":\"load\",\"work\":\"scripted/fix\"}\n"
      "{\"do\":\"run\"}\n{\"do\":\"run\",\"steps\":-1}\n{\"do\":\"run\",\"steps\":1.5}\n"
      "{\"do\":\"run\",\"steps\":1e30}\n{\"do\":\"run\",\"steps\":3}\n");
  ASSERT_EQ(said.size(), 16u);
  for (std::size_t line = 0; line < said.size(); ++line) {
    const bool right = line == 10 || line == 15;
    EXPECT_EQ(said[line].find("{\"error\":") == 0, !right) << said[line];
  }
  EXPECT_NE(said[8].find("did you mean 'scripted/fix'?"), std::string::npos) << said[8];
}

TEST_F(ServeWorker, IssuesTimedStepsFromOneProcessorWhereItIsToldAndLoadsFromAny) {
  const int all = processors_allowed();
  std::vector<int> seen;
  script.step_time = [&](const std::string&, std::int64_t) {
    seen.push_back(processors_allowed());
    return std::chrono::nanoseconds(std::chrono::milliseconds(1));
  };
  const std::string requests =
      "{\"do\":\"load\",\"work\":\"scripted/fix\"}\n{\"do\":\"run\",\"steps\":5}\n";
  answers(requests);
  EXPECT_EQ(std::ranges::count(seen, all), std::ssize(seen));
  seen.clear();
  cpu_draw = 5;
  answers(requests);
  EXPECT_EQ(seen.front(), all) << "what is loaded may start threads";
  EXPECT_EQ(seen.back(), 1);
  EXPECT_EQ(script.runs.back().second.cpu_draw, 5U) << "for the processes of ranks";
  EXPECT_EQ(processors_allowed(), all);
  seen.clear();
  counts = true;
  answers("{\"do\":\"count\",\"work\":\"scripted/fix\"}\n");
  EXPECT_EQ(std::ranges::count(seen, 1), std::ssize(seen));
  EXPECT_FALSE(seen.empty());
}

TEST_F(ServeWorker, LooksAtFewStepsWhereTheyAreLong) {
  const auto steps_of_a_load = [&](std::chrono::nanoseconds step) {
    script.step_time = [step](const std::string&, std::int64_t) { return step; };
    script.runs.clear();
    answers("{\"do\":\"load\",\"work\":\"scripted/fix\"}\n");
    std::int64_t steps = 0;
    for (const auto& [name, run] : script.runs) steps += run.steps;
    return steps;
  };
  EXPECT_EQ(steps_of_a_load(std::chrono::microseconds(100)), 8);
  EXPECT_EQ(steps_of_a_load(std::chrono::milliseconds(1)), 3);
  EXPECT_EQ(steps_of_a_load(std::chrono::milliseconds(20)), 2);
}

// A step of two kernels of 200 us, whose loss is another kernel.
TEST(ServeKernels, ARunTellsTheTimeOfTheKernelAndNotOfTheStep) {
  const Scenario scenario = parse_scenario(
      "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 2, kernel_us = 200 }\n"
      "[variant.step]\n[expect]\nfew = \"step.kernel_us(spin) <= 9 ms\"\n",
      "s.toml");
  DeviceProfile profile = read_profile(STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/device.toml");
  profile.noise = {};
  const auto device = make_simulated_device(profile, {.seed = 1});
  WorkerSubject subject{.timed = with_facts(build_step_plans(scenario, 1)),
                        .kernels = kernel_workloads_of(scenario)};
  std::istringstream in(
      "{\"do\":\"hello\",\"protocol\":1}\n"
      "{\"do\":\"load\",\"work\":\"s/step.kernel_us(spin)\"}\n{\"do\":\"run\",\"steps\":8}\n"
      "{\"do\":\"load\",\"work\":\"s/step\"}\n{\"do\":\"run\",\"steps\":8}\n"
      "{\"do\":\"load\",\"work\":\"s/step.kernel_us(sgd)\"}\n");
  std::ostringstream out;
  serve_worker(in, out, *device, subject, "1");
  std::istringstream answers(out.str());
  const auto next = [&] {
    std::string line;
    std::getline(answers, line);
    return line;
  };
  EXPECT_EQ(std::get<Hello>(read_hello(next())).kernels,
            std::vector<std::string>{"s/step.kernel_us(spin)"});
  EXPECT_EQ(std::get<Loaded>(read_loaded(next())).period_steps, 1);
  const auto of_kernel = std::get<Ran>(read_ran(next()));
  EXPECT_EQ(of_kernel.steps, 8);
  EXPECT_NEAR(static_cast<double>(of_kernel.elapsed.count()), 8 * 400e3, 8 * 5e3);
  (void)next();
  EXPECT_GT(std::get<Ran>(read_ran(next())).elapsed, of_kernel.elapsed) << "a step has more";
  EXPECT_TRUE(std::holds_alternative<WorkerSays>(read_loaded(next()))) << "nobody asked for it";
}

TEST_F(ServeWorker, CannotTimeOnADeviceWithoutTime) {
  script.step_time = nullptr;
  const auto said = answers("{\"do\":\"load\",\"work\":\"scripted/fix\"}\n");
  EXPECT_EQ(said.at(0), "{\"error\":\"this device has no notion of time\"}");
}

}  // namespace
}  // namespace stepgate
