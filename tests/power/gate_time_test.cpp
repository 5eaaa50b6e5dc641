// SPDX-License-Identifier: MIT
// Measures how long a gate of the whole suite takes on the clock of the simulated H200, and how the
// time is spent. The start of a process and a first load, which no simulated device models, take
// about as long as on H200s. Every seed is fixed, so the numbers are reproducible.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/random.h"
#include "base/seconds.h"
#include "compare/gate/gate_timing.h"
#include "compare/gate/judge_comparison.h"
#include "compare/worker/count_step.h"
#include "compare/worker/serve_worker.h"
#include "device/simulated/simulated_device.h"
#include "judge/judge.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// Seconds of host work of one process while all others wait, and seconds that may overlap with
// other processes.
struct HostTime {
  double alone = 0;
  double at_once = 0;
};
constexpr HostTime start_of_a_process{0.1, 1.3};
constexpr HostTime first_load{0.015, 0.04};  // in addition to the simulated device's time
constexpr HostTime unload_of_a_workload{0.001, 0.004};
constexpr HostTime end_of_a_process{0.02, 0.08};

// Standard deviations of a workload's contrasts from one pair of launches to the next, in percent.
// They are every fifth of the 100 workloads of the gate in
// baselines/nvidia-h200/gate/2026-11-23.suite.jsonl. The last workloads have their own margins.
constexpr std::array recorded_scatter{0.04, 0.09, 0.2,  0.26, 0.33, 0.39, 0.51, 0.54, 0.66, 0.73,
                                      0.81, 1.09, 1.29, 1.39, 1.62, 1.83, 2.13, 2.45, 2.92};
constexpr double scatter_beside_wide_margins = 7.74;
// Shares of the variance that belong to a launch, which more superblocks do not reduce.
constexpr std::array launch_shares{0.0, 0.3, 0.8};

struct Noise {
  double of_launches = 0;  // standard deviation of log step time
  double of_segments = 0;
};

// Gives every workload one of these scatters, and one of these shares of launches.
Noise noise_of(std::size_t workload, bool wide) {
  const double scatter = (wide ? scatter_beside_wide_margins
                               : recorded_scatter[workload * 7 % recorded_scatter.size()]) /
                         100;
  const double launches = launch_shares[workload % launch_shares.size()];
  return {.of_launches = scatter * std::sqrt(launches / 2),
          .of_segments = scatter * std::sqrt(1 - launches)};
}

struct Suite {
  std::vector<std::string> workloads;
  std::map<std::string, PlannedStep> steps;
  std::map<std::string, Noise> noise;
  std::map<std::string, double> wider;  // workloads with their own margins
};

// Returns all workloads of the suite that a GPU times, except those that each run calibrates.
Suite whole_suite(const DeviceProfile& profile) {
  Suite suite;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(STEPGATE_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const auto& file : files) {
    const Scenario scenario = read_scenario(file, {});
    if (is_planned_only(scenario) || lacks_a_value(scenario)) continue;
    for (const Variant& variant : scenario.variants) {
      if (variant.gate.margin)
        suite.wider[fmt::format("{}/{}", scenario.name, variant.name)] = *variant.gate.margin;
    }
    for (const PlannedStep& step :
         with_facts(build_step_plans(scenario, 1, profile.memory_bytes))) {
      const std::string workload = workload_name(step);
      suite.noise[workload] = noise_of(suite.workloads.size(), suite.wider.contains(workload));
      suite.workloads.push_back(workload);
      suite.steps.emplace(workload, step);
    }
  }
  return suite;
}

std::vector<CountedPair> counted_of(const Suite& suite) {
  std::vector<CountedPair> pairs;
  for (const auto& [workload, step] : suite.steps)
    pairs.push_back(
        {.workload = workload, .base = planned_counts(step), .head = planned_counts(step)});
  return pairs;
}

struct Spent {
  double now = 0;  // the total time so far
  double starting = 0;
  double loading = 0;
  double pilots = 0;
  double washing_out = 0;
  double scoring = 0;
  double ending = 0;
};

class TimedWorker : public Worker {
 public:
  TimedWorker(const Suite& suite, const DeviceProfile& profile, Spent& spent, double factor,
              std::uint64_t seed)
      : suite_(suite),
        spent_(spent),
        factor_(factor),
        random_(seed),
        device_(make_simulated_device(profile, {.seed = seed})),
        asked_at_(spent.now) {
    hello_ = {.program = "simulated",
              .simulated = true,
              .workloads = suite.workloads,
              .memory_bytes = profile.memory_bytes};
  }

  void ask_ahead(const Request&) override { asked_at_ = spent_.now; }
  const Hello& hello() override {
    answer(start_of_a_process, spent_.starting);
    return hello_;
  }

  Loaded load(const std::string& workload) override {
    work_ = workload;
    device_now_ = device_->now();
    const PlannedStep& step = suite_.steps.at(workload);
    LoadedForTiming loaded = load_for_timing(*device_, step, step);
    step_ = std::move(loaded.step);
    spend(time_of_device(), spent_.pilots);
    answer(first_load, spent_.loading);
    of_launch_ = std::exp(suite_.noise.at(workload).of_launches * random_.normal());
    return loaded.says;
  }

  Ran run(const RunSteps& run) override {
    device_now_ = device_->now();
    const StepResult result =
        step_->run({.wash_out_steps = run.wash_out_steps, .steps = run.steps});
    const double factor =
        factor_ * of_launch_ * std::exp(suite_.noise.at(work_).of_segments * random_.normal());
    const double scored = factor * seconds(*result.elapsed);
    spend(scored, spent_.scoring);
    spend(factor * time_of_device() - scored, spent_.washing_out);
    return {.steps = result.steps, .elapsed = nanoseconds(std::llround(scored * 1e9))};
  }

  void unload() override {
    step_.reset();
    answer(unload_of_a_workload, spent_.loading);
  }
  StepCounts count(const CountWorkload&) override { return {}; }
  void quit() override { answer(end_of_a_process, spent_.ending); }

 private:
  void spend(double time, double& on_what) {
    spent_.now += time;
    on_what += time;
  }
  // Requests to other processes since then also run meanwhile.
  void answer(const HostTime& takes, double& on_what) {
    if (!asked_at_) return;  // answered already
    spend(std::max(0.0, *asked_at_ + takes.at_once - spent_.now) + takes.alone, on_what);
    asked_at_.reset();
  }
  double time_of_device() const { return seconds(device_->now() - device_now_); }

  const Suite& suite_;
  Spent& spent_;
  double factor_;
  Random random_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<LoadedStep> step_;
  nanoseconds device_now_{0};
  std::string work_;
  double of_launch_ = 1;
  std::optional<double> asked_at_;
  Hello hello_;
};

class GateTime : public testing::Test {
 protected:
  GateTime()
      : profile_(read_profile(STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/device.toml")),
        suite_(whole_suite(profile_)) {
    profile_.noise = {};  // the recorded scatter includes all noise
  }

  // Makes each step of HEAD take `factor` times as long.
  ComparisonVerdict gate(double factor, std::uint64_t seed) {
    spent_ = {};
    ComparisonRequest request;
    request.workloads = in_order_of_suspicion(suite_.workloads, {});
    request.launch = [&](ComparisonSide side, std::int64_t launch) {
      return std::make_unique<TimedWorker>(suite_, profile_, spent_,
                                           side == ComparisonSide::head ? factor : 1,
                                           random_bits(seed, static_cast<std::uint64_t>(launch)));
    };
    request.introduction = introduce(request.launch).value();
    request.seed = seed;
    request.most_pairs = 1000;
    request.clock = [this] { return nanoseconds(static_cast<std::int64_t>(spent_.now * 1e9)); };
    const ComparisonSettings settings{
        .margin = 0.02,
        .wider = suite_.wider,
        .workloads_ahead = workloads_ahead_of_a_gate(suite_.workloads.size())};
    time_as_a_gate(request, settings, std::chrono::seconds(240), counted_of(suite_));
    request.undecided = [&, decide = undecided_workloads(request.workloads, settings)](
                            const ComparisonMeasurement& so_far) {
      if (std::ssize(so_far.pairs) == request.fewest_pairs) at_the_fewest_ = spent_.now;
      return decide(so_far);
    };
    const ComparisonMeasurement measured = measure_comparison(request);
    const ComparisonVerdict verdict = judge_comparison(request.introduction, measured, settings);
    print(factor, measured, verdict);
    return verdict;
  }

  // The seconds of a gate that may take so many for each workload of the suite, which grows.
  double for_each_workload(double seconds) const {
    return seconds * static_cast<double>(suite_.workloads.size());
  }

  static double scored_in(const std::vector<Superblock>& blocks) {
    double sum = 0;
    for (const Superblock& block : blocks) {
      for (const ComparisonSegment& segment : block) sum += seconds(segment.elapsed);
    }
    return sum;
  }

  void print(double factor, const ComparisonMeasurement& measured,
             const ComparisonVerdict& verdict) const {
    double in_superblocks = 0;
    double watched = 0;
    std::size_t workloads = 0;
    for (const LaunchPair& pair : measured.pairs) {
      workloads += pair.workloads.size();
      for (const WorkInPair& workload : pair.workloads) {
        in_superblocks += scored_in(workload.superblocks);
        watched += scored_in(workload.watched);
      }
    }
    const auto undecided =
        std::ranges::count(verdict.workloads, Outcome::undecided, &WorkloadVerdict::outcome);
    const auto failed =
        std::ranges::count(verdict.workloads, Outcome::fails, &WorkloadVerdict::outcome);
    std::fputs(
        fmt::format(
            "  x {:4.2f}: {:5.1f} s, {:5.1f} to the fewest pairs, {} pairs, {} workloads in "
            "pairs, {} slower, {} undecided; "
            "starts {:.1f}, loads {:.1f}, pilots {:.1f}, wash-outs {:.1f}, superblocks "
            "{:.1f}, watched {:.1f}, other segments {:.1f}, ends {:.1f} s\n",
            factor, spent_.now, at_the_fewest_, verdict.pairs, workloads, failed, undecided,
            spent_.starting, spent_.loading, spent_.pilots, spent_.washing_out, in_superblocks,
            watched, spent_.scoring - in_superblocks - watched, spent_.ending)
            .c_str(),
        stdout);
  }

  DeviceProfile profile_;
  Suite suite_;
  Spent spent_;
  double at_the_fewest_ = 0;
};

TEST_F(GateTime, OfIdenticalBuilds) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const ComparisonVerdict verdict = gate(1, seed);
    EXPECT_NE(verdict.outcome, Outcome::fails);
    EXPECT_LE(at_the_fewest_, for_each_workload(0.97));
    EXPECT_LE(spent_.now, 260);
  }
}

TEST_F(GateTime, OfBuildsOfWhichOneIsSlowerEverywhere) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const ComparisonVerdict verdict = gate(1.1, seed);
    EXPECT_EQ(verdict.outcome, Outcome::fails);
    EXPECT_LE(spent_.now, for_each_workload(0.185));
  }
}

}  // namespace
}  // namespace stepgate
