// SPDX-License-Identifier: MIT
#include "compare/worker/serve_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <istream>
#include <memory>
#include <ostream>
#include <vector>

#include "base/process/child.h"
#include "base/process/one_cpu.h"
#include "base/text/nearest.h"
#include "compare/worker/count_step.h"
#include "compare/worker/kernel_workload.h"
#include "measure/planned_subject.h"
#include "measure/schedule.h"
#include "measure/trace/trace_metrics.h"
#include "measure/trace/trace_rounds.h"

namespace stepgate {
namespace {

// Estimates the step time from a few steps after the first one, which runs alone, since it loads
// what the step needs.
constexpr std::int64_t most_worker_pilot_steps = 7;
constexpr std::chrono::nanoseconds worker_pilot_time = std::chrono::milliseconds(2);
// Segments are not extended for work with longer periods.
constexpr std::int64_t longest_period = 10'000;

class Server {
 public:
  Server(Device& device, const WorkerSubject& subject, const std::string& version)
      : device_(device), subject_(subject), version_(version) {}

  // Returns nullopt when there is no answer, since the session ends.
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
                .stand_in = subject_.stand_in,
                .workloads = {},
                .counts = subject_.counts,
                .planned = {},
                .kernels = subject_.kernels,
                .left_out = subject_.left_out,
                .calibrated = subject_.calibrated,
                .memory_bytes = identity.memory_bytes};
    for (const StepPlan& plan : subject_.timed) hello.workloads.push_back(workload_name(plan));
    for (const StepPlan& plan : subject_.planned) hello.planned.push_back(workload_name(plan));
    return to_line(hello);
  }

  std::optional<std::string> answer(const LoadWorkload& load) {
    if (const PlannedStep* plan = named(load.workload, subject_.timed)) return answer_loaded(*plan);
    if (std::ranges::find(subject_.kernels, load.workload) != subject_.kernels.end())
      return answer_loaded(*kernel_workload_named(load.workload));
    return no_such_workload(load.workload);
  }

  static const PlannedStep* named(const std::string& workload,
                                  const std::vector<PlannedStep>& plans) {
    const auto found = std::ranges::find(plans, workload, workload_name);
    return found == plans.end() ? nullptr : &*found;
  }

  std::string no_such_workload(const std::string& workload) const {
    std::vector<std::string> names;
    for (const StepPlan& plan : subject_.timed) names.push_back(workload_name(plan));
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    return error_line(fmt::format("there is no workload '{}'; {}", workload,
                                  did_you_mean(workload, candidates, "hello lists them")));
  }

  Device& device_for(const StepPlan& plan) {
    return plan.ranks.count > 1 && subject_.of_ranks != nullptr ? *subject_.of_ranks : device_;
  }

  // Returns the step that the device runs, which must outlive all loaded steps.
  const PlannedStep& carried_out(const PlannedStep& plan) const {
    if (subject_.carried_out.empty()) return plan;
    return subject_.carried_out[static_cast<std::size_t>(&plan - subject_.timed.data())];
  }

  std::optional<std::string> answer(const CountWorkload& count) {
    if (!subject_.counts) return error_line("this worker times steps and does not count");
    if (const PlannedStep* plan = named(count.workload, subject_.planned))
      return to_line(planned_counts(*plan));
    const PlannedStep* plan = named(count.workload, subject_.timed);
    if (plan == nullptr) return no_such_workload(count.workload);
    unload();
    return to_line(counts_of(device_for(*plan), *plan, carried_out(*plan),
                             {.times = count.times, .cpu_draw = subject_.cpu_draw}));
  }

  std::string answer_loaded(const PlannedStep& plan) {
    unload();
    LoadedForTiming loaded = load_for_timing(device_for(plan), plan, carried_out(plan));
    if (!loaded.step) return error_line("this device has no notion of time");
    loaded_ = std::move(loaded.step);
    return to_line(loaded.says);
  }

  // A trace of a few steps has no periodic work that is rarer.
  std::string answer_loaded(const KernelWorkload& asked) {
    const PlannedStep* plan = named(asked.workload, subject_.timed);
    std::string answer = answer_loaded(*plan);
    if (!loaded_) return answer;
    traced_ = {.kernel = asked.kernel,
               .carried_out = &carried_out(*plan),
               .step_time = pilot_step_time(*loaded_)};
    return to_line(
        Loaded{.period_steps = common_period(subject_of(*plan), longest_period).value_or(1)});
  }

  // The steps of each trace are run after those in which the queue grows.
  std::string trace_kernel(std::int64_t steps) {
    double seconds = 0;  // of a step, on the slowest rank
    for (const Trace& trace :
         trace_loaded(*loaded_, *traced_->carried_out, traced_->step_time, steps)) {
      const WorkTimes work = summary_of(trace, *traced_->carried_out).work;
      if (const auto found = work.find(traced_->kernel); found != work.end())
        seconds = std::max(seconds, found->second.seconds);
    }
    const auto elapsed = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(seconds * static_cast<double>(steps)));
    if (elapsed.count() < 1)
      return error_line(fmt::format("no trace tells the time of '{}'", traced_->kernel));
    return to_line(Ran{.steps = steps, .elapsed = elapsed});
  }

  std::optional<std::string> answer(const RunSteps& run) {
    if (!loaded_) return error_line("no workload is loaded");
    std::optional<OneCpu> pinned;
    if (subject_.cpu_draw) pinned.emplace(*subject_.cpu_draw);
    if (traced_) return trace_kernel(run.steps);
    const StepResult result = loaded_->run(
        {.wash_out_steps = run.wash_out_steps, .steps = run.steps, .cpu_draw = subject_.cpu_draw});
    if (!result.device_changed.empty())
      return error_line("its step changed the device: " + result.device_changed);
    return to_line(Ran{.steps = result.steps, .elapsed = *result.elapsed});
  }

  std::optional<std::string> answer(const UnloadWork&) {
    unload();
    return unloaded_line();
  }

  std::optional<std::string> answer(const Quit&) { return std::nullopt; }

  void unload() {
    traced_.reset();
    loaded_.reset();
  }

  Device& device_;
  const WorkerSubject& subject_;
  const std::string& version_;
  std::unique_ptr<LoadedStep> loaded_;
  // A step that is loaded for the time of one of its kernels.
  struct TracedKernel {
    std::string kernel;
    const PlannedStep* carried_out = nullptr;
    std::chrono::nanoseconds step_time{1};
  };
  std::optional<TracedKernel> traced_;
};

}  // namespace

std::string workload_name(const StepPlan& plan) {
  return fmt::format("{}/{}", plan.scenario, plan.variant);
}

LoadedForTiming load_for_timing(Device& device, const PlannedStep& planned,
                                const PlannedStep& carried_out) {
  auto step = device.load_into(only_slot, carried_out);
  const StepResult first = step->run({.steps = 1});
  if (!first.elapsed) return {};
  const std::int64_t steps = std::clamp<std::int64_t>(
      worker_pilot_time / std::max(*first.elapsed, std::chrono::nanoseconds(1)), 1,
      most_worker_pilot_steps);
  const StepResult pilot = step->run({.steps = steps});
  const Subject subject = subject_of(planned);
  return {.step = std::move(step),
          .says = {.wash_out_steps = wash_out_steps(subject, *pilot.elapsed / steps),
                   .period_steps = common_period(subject, longest_period).value_or(1),
                   .periodic = planned.facts().periodic}};
}

void serve_worker(std::istream& in, std::ostream& out, Device& device, const WorkerSubject& subject,
                  const std::string& version) {
  Server server(device, subject, version);
  for (std::string line; std::getline(in, line);) {
    const auto answer = server.answer(line);
    if (!answer) return;
    out << *answer << '\n';
    flush_answer(out);
  }
}

}  // namespace stepgate
