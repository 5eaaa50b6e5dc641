// SPDX-License-Identifier: MIT
#include "device/device.h"

#include <fmt/format.h>

#include <utility>

namespace stepgate {

std::string_view name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::simulated:
      return "simulated";
    case DeviceKind::reference:
      return "reference";
  }
  return {};
}

std::string in_words(const DeviceIdentity& device) {
  switch (device.kind) {
    case DeviceKind::cuda:
      return device.driver.empty() ? device.name
                                   : fmt::format("{}, driver {}", device.name, device.driver);
    case DeviceKind::simulated:
      return fmt::format("a simulated {} (no measurement)", device.name);
    case DeviceKind::reference:
      return "the host reference (no times)";
  }
  return {};
}

void give_traces(std::vector<Trace> traces, StepResult& result) {
  result.trace.reset();
  if (traces.empty()) return;
  result.trace = std::move(traces.front());
  traces.erase(traces.begin());
  result.other_traces = std::move(traces);
}

std::vector<Trace> take_traces(StepResult&& result) {
  std::vector<Trace> traces = std::move(result.other_traces);
  if (result.trace) traces.insert(traces.begin(), *std::move(result.trace));
  return traces;
}

// By default the host waits for the device after each segment; the results are as if it did not.
std::vector<StepResult> StepRunner::run_interleaved(std::span<LoadedStep* const> steps,
                                                    const Interleaving& how) {
  const Observe segment{.wash_out_steps = how.wash_out_steps, .steps = how.steps};
  std::vector<std::optional<StepResult>> results(steps.size());
  for (std::size_t place = 0; place < how.order.size(); ++place) {
    const auto of = static_cast<std::size_t>(how.order[place]);
    StepResult run = steps[of]->run(segment);
    if (static_cast<std::int64_t>(place) < how.unscored) {
      run.steps = 0;
      run.step_times.clear();
      if (run.elapsed) run.elapsed = std::chrono::nanoseconds(0);
      if (run.host_busy) run.host_busy = std::chrono::nanoseconds(0);
      if (run.host_processor) run.host_processor = std::chrono::nanoseconds(0);
    }
    if (!results[of]) {
      results[of] = std::move(run);
      continue;
    }
    StepResult& sum = *results[of];
    sum.steps += run.steps;
    if (run.elapsed) *sum.elapsed += *run.elapsed;
    if (run.host_busy) *sum.host_busy += *run.host_busy;
    if (run.host_processor) *sum.host_processor += *run.host_processor;
    sum.step_times.insert(sum.step_times.end(), run.step_times.begin(), run.step_times.end());
    if (sum.device_changed.empty()) sum.device_changed = std::move(run.device_changed);
    sum.losses.insert(sum.losses.end(), run.losses.begin(), run.losses.end());
  }
  std::vector<StepResult> all;
  for (std::optional<StepResult>& result : results) all.push_back(std::move(*result));
  return all;
}

std::string link_between(const DeviceIdentity& device, std::size_t rank, std::size_t other) {
  if (device.ranks.empty()) return device.link;
  if (rank >= device.ranks.size()) return {};
  const std::vector<std::string>& links = device.ranks[rank].communication.links;
  return other < links.size() ? links[other] : std::string();
}

std::vector<KernelChoice> library_kernels_not_run(const StepPlan& plan, std::string_view reason) {
  std::vector<KernelChoice> choices;
  for (const std::shared_ptr<const Kernel>& row : plan.library_kernels) {
    choices.push_back(
        {.kernel = std::string(row->name), .library = {}, .reason = std::string(reason)});
  }
  return choices;
}

}  // namespace stepgate
