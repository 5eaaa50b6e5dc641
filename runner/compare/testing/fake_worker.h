// SPDX-License-Identifier: MIT
// For tests only: two programs with given step times, the fake clock that they advance, and a
// record of the requests.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compare/launches/comparison.h"

namespace stepgate {

struct ComparisonScript {
  // Returns the step time, once per segment. `launch` counts the launches of both sides.
  std::function<double(ComparisonSide, const std::string& workload, std::int64_t launch)>
      step_seconds;
  std::vector<std::string> workloads{"workload"};
  Loaded loaded{};
  bool simulated = true;
  std::array<double, 2> really{1, 1};       // true step time / reported step time
  std::array<double, 2> request_seconds{};  // of each answer besides its steps
  // End of the work that a side had queued when it answered; it runs before the side's next answer.
  std::array<double, 2> queued_until{};
  bool queues = false;
  double launch_seconds = 1;
  double now_seconds = 0;
  std::vector<std::pair<ComparisonSide, RunSteps>> runs{};  // since the last launch of BASE
  std::vector<ComparisonSide> launches{};
  int asked_ahead = 0;
  std::vector<int> asked_when_loaded{};  // number of requests before each load

  std::chrono::nanoseconds now() const {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(now_seconds * 1e9));
  }
};

class FakeWorker : public Worker {
 public:
  FakeWorker(ComparisonScript& script, ComparisonSide side, std::int64_t launch)
      : script_(script), side_(side), launch_(launch) {
    script.now_seconds += script.launch_seconds;
    script.launches.push_back(side);
    hello_ = {.program = "scripted",
              .version = "1",
              .device = "paper",
              .simulated = script.simulated,
              .workloads = script.workloads};
  }

  void ask_ahead(const Request&) override { ++script_.asked_ahead; }
  const Hello& hello() override { return hello_; }
  Loaded load(const std::string& workload) override {
    work_ = workload;
    script_.asked_when_loaded.push_back(script_.asked_ahead);
    return script_.loaded;
  }
  Ran run(const RunSteps& run) override {
    script_.runs.emplace_back(side_, run);
    const double step = script_.step_seconds(side_, work_, launch_);
    const double all = step * static_cast<double>(run.steps + run.wash_out_steps);
    const double hidden = (script_.really[static_cast<std::size_t>(side_)] - 1) * all;
    double& until = script_.queued_until[static_cast<std::size_t>(side_)];
    script_.now_seconds = std::max(script_.now_seconds, until) + all;
    if (script_.queues) until = script_.now_seconds + hidden;
    if (!script_.queues) script_.now_seconds += hidden;
    script_.now_seconds += script_.request_seconds[static_cast<std::size_t>(side_)];
    return {.steps = run.steps,
            .elapsed = std::chrono::nanoseconds(
                static_cast<std::int64_t>(step * static_cast<double>(run.steps) * 1e9))};
  }
  void unload() override {
    script_.now_seconds =
        std::max(script_.now_seconds, script_.queued_until[static_cast<std::size_t>(side_)]);
    work_.clear();
  }
  StepCounts count(const CountWorkload&) override { return {}; }
  void quit() override {}

 private:
  ComparisonScript& script_;
  ComparisonSide side_;
  std::int64_t launch_;
  std::string work_;
  Hello hello_;
};

inline LaunchWorker launcher_of(ComparisonScript& script) {
  return [&script](ComparisonSide side, std::int64_t launch) {
    return std::make_unique<FakeWorker>(script, side, launch);
  };
}

// Ends after this number of pairs, whatever the results.
inline ComparisonRequest request_of(ComparisonScript& script, std::uint64_t seed,
                                    std::int64_t pairs) {
  ComparisonRequest request;
  request.workloads = script.workloads;
  request.introduction = introduce(launcher_of(script)).value();
  request.launch = launcher_of(script);
  request.seed = seed;
  request.most_pairs = pairs;
  request.clock = [&script] { return script.now(); };
  request.undecided = [workloads = script.workloads.size()](const ComparisonMeasurement&) {
    std::vector<int> all;
    for (std::size_t workload = 0; workload < workloads; ++workload)
      all.push_back(static_cast<int>(workload));
    return all;
  };
  return request;
}

}  // namespace stepgate
