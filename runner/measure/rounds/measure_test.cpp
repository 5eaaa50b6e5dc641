// SPDX-License-Identifier: MIT
// Tests budget, warm-up, environment and losses on a fake device. measure_order_test.cpp tests the
// order of segments, and schedule_test.cpp their lengths.
#include "measure/rounds/measure.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>
#include <thread>

#include "base/interruption.h"
#include "base/time_of_scope.h"
#include "measure/testing/fake_request.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(Measure, StopsWhenThereIsEnoughEvidence) {
  Script script{.step_time = always(1ms)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(100);
  request.enough = [](const Measurement& measurement) { return measurement.rounds.size() == 9; };
  std::vector<std::int64_t> progress;
  request.progress = [&](const Progress& done) { progress.push_back(done.rounds); };
  const Measurement measurement = measure(runner, subjects, request);
  EXPECT_EQ(measurement.rounds.size(), 9U);
  EXPECT_FALSE(measurement.budget_spent);
  EXPECT_EQ(progress, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Measure, KnowsNoUnitsOfWorkThatItsSubjectDoesNotKnow) {
  Script script{.step_time = always(1ms)};
  FakeRunner runner(script);
  auto subjects = subjects_named({"a", "b"});
  subjects.back().batch_size.reset();
  const Measurement measurement = measure(runner, subjects, request_for(5));
  EXPECT_EQ(measurement.variants.front().batch_size, 64);
  EXPECT_EQ(measurement.variants.back().batch_size, std::nullopt);
  EXPECT_EQ(measurement.variants.back().model_flops, std::nullopt);
}

// measure() sees the signal in its warm-up and ends with no round.
TEST(Measure, EndsOnASignalBeforeItsFirstRound) {
  Script script{.step_time = always(1ms)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  interrupted = SIGINT;
  const Measurement measurement = measure(runner, subjects, request_for(100));
  interrupted = 0;
  EXPECT_TRUE(measurement.rounds.empty());
  EXPECT_LT(measurement.device_time, 100ms);
}

TEST(Measure, StartsNoRoundThatCannotEndInsideTheBudget) {
  Script script{.step_time = always(1ms)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(100'000);
  request.knobs.max_seconds = 3;
  const Measurement measurement = measure(runner, subjects, request);
  EXPECT_TRUE(measurement.budget_spent);
  EXPECT_LE(measurement.wall_time, 3s);
  EXPECT_GT(measurement.wall_time, 2800ms);
  EXPECT_EQ(measurement.device_time, measurement.wall_time) << "this clock only runs during steps";
}

TEST(Measure, EndsWhenItsRecordIsFullButNotBeforeTheFewestRounds) {
  Script script{.step_time = always(10ns)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(100);
  request.knobs.steps = 400'000;  // four segments of them are 40 MB a round
  request.knobs.warmup_steps = 4;
  const Measurement six = measure(runner, subjects, request);
  EXPECT_TRUE(six.record_full);
  EXPECT_FALSE(six.budget_spent);
  EXPECT_EQ(std::ssize(six.rounds), request.fewest_rounds);
  EXPECT_EQ(six.expected.most_rounds, request.fewest_rounds);
  request.knobs.steps = 100'000;
  const Measurement more = measure(runner, subjects, request);
  EXPECT_TRUE(more.record_full);
  EXPECT_GT(std::ssize(more.rounds), request.fewest_rounds);
  EXPECT_LE(std::ssize(more.rounds), more.expected.most_rounds + 1);
  const std::int64_t kept =
      std::accumulate(more.rounds.begin(), more.rounds.end(), std::int64_t{0},
                      [](std::int64_t sum, const Round& round) { return sum + bytes_kept(round); });
  EXPECT_GE(kept, most_bytes_kept);
  EXPECT_LT(kept - bytes_kept(more.rounds.back()), most_bytes_kept);
}

TEST(Measure, RefusesABudgetWithoutRoomForTheFewestRounds) {
  Script script{.step_time = always(10ms)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(100);
  request.knobs.warmup_steps = 10;
  request.knobs.max_seconds = 1;
  const Measurement refused = measure(runner, subjects, request);
  EXPECT_TRUE(refused.budget_refused);
  EXPECT_TRUE(refused.rounds.empty());
  EXPECT_GT(refused.expected.round, 100ms);
  EXPECT_LT(refused.expected.most_rounds, 6);
  const double enough =
      std::chrono::duration<double>(script.now + refused.expected.round * request.fewest_rounds)
          .count();
  script.now = 0ms;
  request.knobs.max_seconds = enough + 0.001;
  const Measurement measured = measure(runner, subjects, request);
  EXPECT_FALSE(measured.budget_refused);
  EXPECT_GE(measured.rounds.size(), 6U);
}

TEST(Measure, ExpectsWhatARoundThenCosts) {
  Script script{.step_time = always(3ms)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b", "c"});
  const auto before = std::make_shared<nanoseconds>(0);
  const auto cost = std::make_shared<nanoseconds>(0);
  MeasureRequest request = request_for(10);
  request.progress = [=](const Progress& now) {
    if (now.rounds == 2) *cost = now.spent - *before;
    *before = now.spent;
  };
  const Measurement measurement = measure(runner, subjects, request);
  EXPECT_EQ(measurement.expected.round, *cost);
  EXPECT_EQ(measurement.expected.most_rounds, 10);
}

TEST(Measure, ReadsTheEnvironmentBetweenRoundsOnly) {
  Script script{.step_time = always(1ms)};
  std::vector<std::size_t> runs_before;
  script.environment = [&](std::int64_t reading) {
    runs_before.push_back(script.runs.size());
    EnvironmentReading read;
    read.temperature_celsius = static_cast<double>(reading);
    return read;
  };
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b", "c"});
  const Measurement measurement = measure(runner, subjects, request_for(8));
  ASSERT_EQ(runs_before.size(), 9U);
  for (std::size_t reading = 1; reading < runs_before.size(); ++reading) {
    // After every load, each variant runs once unscored before the segments.
    EXPECT_EQ(runs_before[reading] - runs_before[reading - 1],
              3 + measurement.rounds[reading - 1].segments.size());
  }
  EXPECT_EQ(measurement.environment_before.value().temperature_celsius, 0);
  for (std::size_t round = 0; round < 8; ++round) {
    EXPECT_EQ(measurement.rounds[round].environment_after.value().temperature_celsius,
              static_cast<double>(round + 1));
  }
}

TEST(Measure, WarmsUpUntilTheStepTimesAreSteady) {
  Script script{.step_time = [](const std::string&, std::int64_t step) -> nanoseconds {
    return std::chrono::microseconds(1000 + std::max<std::int64_t>(0, 500 - step));
  }};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  const Measurement measurement = measure(runner, subjects, request_for(10));
  EXPECT_TRUE(measurement.steady);
  EXPECT_GE(measurement.warmup_steps, 450);
  EXPECT_LE(measurement.warmup_steps, 600);
}

TEST(Measure, SaysWhenItNeverBecameSteady) {
  Script script;
  script.step_time = [](const std::string&, std::int64_t step) -> nanoseconds {
    return std::chrono::microseconds(1000 + step);
  };
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(8);
  request.knobs.max_seconds = 20;
  const Measurement measurement = measure(runner, subjects, request);
  EXPECT_FALSE(measurement.steady);
  EXPECT_EQ(measurement.rounds.size(), 8U);
}

TEST(Measure, RunsTheStepsOfWarmUpThatTheScenarioGivesAfterEveryLoad) {
  Script script{.step_time = always(1ms)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(8);
  request.knobs.warmup_steps = 33;
  const Measurement measurement = measure(runner, subjects, request);
  EXPECT_EQ(measurement.warmup_steps, 33);
  ASSERT_EQ(measurement.rounds.size(), 8U);
  for (const Round& round : measurement.rounds) {
    EXPECT_EQ(round.segments[0].first_step, 33 + measurement.variants[0].wash_out_steps);
  }
}

TEST(Measure, ScoresNothingWithoutAClockButComparesLosses) {
  Script script;
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  const Measurement agreeing = measure(runner, subjects, request_for(5));
  EXPECT_TRUE(agreeing.rounds.empty());
  EXPECT_FALSE(agreeing.another_step);
  script.loss = [](const std::string& variant, std::int64_t step) {
    return variant == "b" && step == 5 ? 2.0F : 1.0F;
  };
  const Measurement disagreeing = measure(runner, subjects, request_for(5));
  ASSERT_TRUE(disagreeing.another_step);
  EXPECT_EQ(disagreeing.another_step->step, 5);
}

TEST(Measure, EndsAtTheRoundWhoseLossesDisagree) {
  Script script{.step_time = always(1ms)};
  std::int64_t lies_at = -1;
  script.loss = [&](const std::string& variant, std::int64_t step) {
    return variant == "b" && step == lies_at ? 2.0F : 1.0F;
  };
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(100);
  request.progress = [&](const Progress& now) {
    if (now.rounds == 3) lies_at = 10;
  };
  const Measurement measurement = measure(runner, subjects, request);
  ASSERT_TRUE(measurement.another_step);
  EXPECT_EQ(measurement.another_step->step, 10);
  EXPECT_EQ(measurement.rounds.size(), 3U);
}

TEST(Measure, EndsAtTheRoundInWhichAStepChangesLimitsOfTheDevice) {
  Script script{.step_time = always(1ms)};
  std::int64_t changes_from = std::numeric_limits<std::int64_t>::max();
  script.device_changed = [&](const std::string& variant, std::int64_t step) {
    const bool changes = variant == "b" && step >= changes_from;
    return changes ? std::string("persisting L2 was 0 B and is 4194304 B") : std::string();
  };
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(100);
  request.progress = [&](const Progress& now) {
    if (now.rounds == 3) changes_from = 0;
  };
  const Measurement measurement = measure(runner, subjects, request);
  EXPECT_EQ(measurement.rounds.size(), 3U);
  EXPECT_EQ(measurement.broken,
            "variant 'b' may not be compared: while it was loaded, persisting L2 was 0 B and is "
            "4194304 B; a step must leave limits of the device and of its caches alone");
  EXPECT_FALSE(measurement.another_step);
}

TEST(Measure, EndsWhereInterleavedStepsChangeLimitsOfTheDevice) {
  Script script{.step_time = always(1ms)};
  script.device_changed = [](const std::string& variant, std::int64_t step) {
    return variant == "b" && step > 40 ? std::string("heap was 1 B and is 2 B") : std::string();
  };
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(100);
  request.knobs.interleave = Interleave::automatic;
  EXPECT_NE(measure(runner, subjects, request).broken, "");
}

TEST(Measure, AuditsLaunchesOfReplacedKernelsAfterTheRoundsAtStepsOfTheSeed) {
  const auto audited = [](std::uint64_t seed, const std::string& difference) {
    Script script{.step_time = always(1ms)};
    script.audits = [&](const std::string&, std::int64_t step) {
      return std::vector<LaunchAudit>{{.step = step,
                                       .operation = "block 0: norm",
                                       .kernel = "layer_norm",
                                       .difference = difference}};
    };
    FakeRunner runner(script);
    auto subjects = subjects_named({"a", "b"});
    subjects[1].has_replaced_kernels = true;
    MeasureRequest request = request_for(5);
    request.seed = seed;
    Measurement measurement = measure(runner, subjects, request);
    EXPECT_EQ(measurement.rounds.size(), 5U);
    EXPECT_TRUE(measurement.variants[0].audits.empty()) << "no kernel of it is replaced";
    return measurement;
  };
  std::set<std::int64_t> distances;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Measurement measurement = audited(seed, "");
    EXPECT_EQ(measurement.broken, "");
    const std::vector<LaunchAudit>& audits = measurement.variants[1].audits;
    ASSERT_EQ(audits.size(), 2U);
    distances.insert(audits[1].step - audits[0].step);
  }
  EXPECT_GT(distances.size(), 5U) << "a kernel cannot know them";
  const std::string words = audited(1, "'y': 3 of 9 numbers are off").broken;
  EXPECT_TRUE(words.starts_with("variant 'b' does not compute its step: in step ")) << words;
  EXPECT_TRUE(words.ends_with(
      ", 'block 0: norm' leaves other numbers than stepgate's own layer_norm: 'y': 3 of 9 numbers "
      "are off"))
      << words;
}

// A faulty kernel may compute correctly only while the first steps are compared.
TEST(Measure, BeginsTheFirstStepsAgainAfterTheRoundsWithoutANewLoad) {
  Script script{.step_time = always(1ms)};
  bool lies = false;
  script.loss = [&](const std::string& variant, std::int64_t) {
    return lies && variant == "b" ? 2.0F : 1.0F;
  };
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(5);
  EXPECT_FALSE(measure(runner, subjects, request).another_step);
  std::size_t loads = 0;
  request.progress = [&](const Progress& now) {
    lies = now.rounds == 5;
    loads = script.draws.size();
  };
  const Measurement measurement = measure(runner, subjects, request);
  EXPECT_EQ(measurement.rounds.size(), 5U);
  ASSERT_TRUE(measurement.another_step);
  EXPECT_TRUE(measurement.another_step->after_the_rounds);
  EXPECT_EQ(script.draws.size(), loads);
  EXPECT_TRUE(script.runs.back().second.gradients);
}

TEST(Measure, LoadsAnewWhatCannotBeginAgain) {
  Script script{.step_time = always(1ms)};
  script.restarts = false;
  bool lies = false;
  script.loss = [&](const std::string& variant, std::int64_t) {
    return lies && variant == "b" ? 2.0F : 1.0F;
  };
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  MeasureRequest request = request_for(5);
  std::size_t loads = 0;
  request.progress = [&](const Progress& now) {
    lies = now.rounds == 5;
    loads = script.draws.size();
  };
  const Measurement measurement = measure(runner, subjects, request);
  ASSERT_TRUE(measurement.another_step);
  EXPECT_TRUE(measurement.another_step->after_the_rounds);
  ASSERT_EQ(script.draws.size(), loads + 2);
  EXPECT_EQ(script.draws.back().first_step, script.draws[loads - 1].first_step);
}

// A fault that all variants share is found by comparing each variant with its own first steps.
TEST(Measure, ComparesEachVariantWithItsOwnFirstSteps) {
  Script script{.step_time = always(1ms)};
  float value = 1;
  script.gradients = [&](const std::string&, std::int64_t) {
    std::vector<GradientSketch> sketches(1);
    const std::vector<float> values(100, value);
    add_part({.elements = 100}, values.data(), DType::fp32, sketches[0]);
    return sketches;
  };
  FakeRunner runner(script);
  auto subjects = subjects_named({"a", "b"});
  for (Subject& subject : subjects) subject.arithmetic->parameters = {"weight"};
  MeasureRequest request = request_for(5);
  EXPECT_FALSE(measure(runner, subjects, request).another_step);
  request.progress = [&](const Progress& now) { value = now.rounds == 5 ? 2 : 1; };
  const Measurement measurement = measure(runner, subjects, request);
  ASSERT_TRUE(measurement.another_step);
  EXPECT_EQ(measurement.another_step->variant, measurement.another_step->against);
  EXPECT_TRUE(measurement.another_step->after_the_rounds);
}

// A device that takes 3 ms of this machine's time for a load.
class SlowDevice : public FakeDevice {
 public:
  using FakeDevice::FakeDevice;
  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    const TimeOfScope loading(time_loading_);
    std::this_thread::sleep_for(3ms);
    return FakeDevice::load(plan, draw);
  }
};

TEST(Measure, SaysWhatTheComparisonOfFirstStepsCostsApart) {
  Script script{.step_time = always(1ms)};
  script.restarts = false;
  script.gradients = [](const std::string&, std::int64_t) {
    std::this_thread::sleep_for(1ms);
    return std::vector<GradientSketch>();
  };
  SlowDevice device(script);
  const auto plans = steps_named({"a", "b"});
  const auto begin = std::chrono::steady_clock::now();
  const Measurement measurement = measure(device, plans, request_for(5));
  const WallTimes& times = measurement.wall_times;
  EXPECT_LE(times.sum(), std::chrono::steady_clock::now() - begin);
  const auto loads = static_cast<std::int64_t>(script.draws.size());
  EXPECT_GE(times[WallPart::same_step], 8 * 1ms + 2 * 3ms) << "steps, and loads after the rounds";
  EXPECT_GE(times[WallPart::loads], (loads - 2) * 3ms);
  EXPECT_GE(times[WallPart::loads] + times[WallPart::same_step], device.time_loading() + 8 * 1ms);
  for (const WallPart part : all_wall_parts()) EXPECT_GE(times[part].count(), 0) << name_of(part);
}

// With four variants, the trials are not used as a round, and their load is discarded.
TEST(Measure, ComparesTheLossesOfEveryLoad) {
  Script script{.step_time = always(1ms)};
  script.loss = [&](const std::string& variant, std::int64_t) {
    return script.draws.size() == 8 && variant == "b" ? 2.0F : 1.0F;
  };
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b", "c", "d"});
  MeasureRequest request = request_for(5);
  request.knobs.interleave = Interleave::automatic;
  EXPECT_TRUE(measure(runner, subjects, request).another_step);
}

}  // namespace
}  // namespace stepgate
