// SPDX-License-Identifier: MIT
#include "measure/serve_worker.h"

#include <fmt/format.h>

#include <chrono>
#include <istream>
#include <memory>
#include <ostream>
#include <vector>

#include "device/worker/protocol.h"
#include "measure/schedule.h"
#include "support/nearest.h"

namespace stepgate {
namespace {

// Enough to know about how long a step takes.
constexpr std::int64_t worker_pilot_steps = 8;
// Segments are not made longer for what happens more rarely.
constexpr std::int64_t longest_period = 10'000;

class Server {
 public:
  Server(Device& device, std::span<const StepPlan> plans, const std::string& version)
      : device_(device), plans_(plans), version_(version) {}

  // Nothing when there is no answer, since the conversation is over.
  std::optional<std::string> answer(std::string_view line) {
    const auto request = read_request(line);
    if (const auto* problem = std::get_if<Problem>(&request))
      return error_line(fmt::format("the request {}", problem->fact));
    return std::visit([this](const auto& asked) { return answer(asked); },
                      std::get<Request>(request));
  }

 private:
  std::optional<std::string> answer(const SayHello&) {
    const DeviceIdentity identity = device_.identity();
    Hello hello{.program = "stepgate",
                .version = version_,
                .device = in_words(identity),
                .simulated = identity.kind == DeviceKind::simulated,
                .works = {}};
    for (const StepPlan& plan : plans_) hello.works.push_back(work_name(plan));
    return to_line(hello);
  }

  std::optional<std::string> answer(const LoadWork& load) {
    std::vector<std::string> names;
    for (const StepPlan& plan : plans_) {
      names.push_back(work_name(plan));
      if (names.back() == load.work) return answer_loaded(plan);
    }
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    return error_line(fmt::format("there is no work '{}'; {}", load.work,
                                  did_you_mean(load.work, candidates, "hello lists them")));
  }

  std::string answer_loaded(const StepPlan& plan) {
    loaded_.reset();
    auto step = device_.load(plan);
    const StepResult pilot = step->run({.steps = worker_pilot_steps});
    if (!pilot.elapsed) return error_line("this device has no notion of time");
    loaded_ = std::move(step);
    return to_line(
        Loaded{.wash_out_steps = wash_out_steps(plan, *pilot.elapsed / worker_pilot_steps),
               .period_steps = common_period(plan, longest_period).value_or(1)});
  }

  std::optional<std::string> answer(const RunSteps& run) {
    if (!loaded_) return error_line("no work is loaded");
    const StepResult result =
        loaded_->run({.wash_out_steps = run.wash_out_steps, .steps = run.steps});
    return to_line(Ran{.steps = result.steps, .elapsed = *result.elapsed});
  }

  std::optional<std::string> answer(const UnloadWork&) {
    loaded_.reset();
    return unloaded_line();
  }

  std::optional<std::string> answer(const Quit&) { return std::nullopt; }

  Device& device_;
  std::span<const StepPlan> plans_;
  const std::string& version_;
  std::unique_ptr<LoadedStep> loaded_;
};

}  // namespace

std::string work_name(const StepPlan& plan) {
  return fmt::format("{}/{}", plan.scenario, plan.variant);
}

void serve_worker(std::istream& in, std::ostream& out, Device& device,
                  std::span<const StepPlan> plans, const std::string& version) {
  Server server(device, plans, version);
  for (std::string line; std::getline(in, line);) {
    const auto answer = server.answer(line);
    if (!answer) return;
    out << *answer << '\n' << std::flush;
  }
}

}  // namespace stepgate
