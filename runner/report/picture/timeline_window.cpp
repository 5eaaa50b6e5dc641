// SPDX-License-Identifier: MIT
#include "report/picture/timeline_window.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace stepgate {
namespace {

template <class Records>
Stretch covered(const Records& records) {
  if (records.empty()) return {};
  Stretch all{records.front().begin, records.front().end};
  for (const auto& record : records) {
    all.begin = std::min(all.begin, record.begin);
    all.end = std::max(all.end, record.end);
  }
  return all;
}

TraceTime time_of_a_step(const Trace& trace) {
  const std::vector<NumberedStep> steps = steps_of_the_device(trace);
  if (steps.empty()) return TraceTime(0);
  if (steps.size() == 1) return steps.front().when.end - steps.front().when.begin;
  return (steps.back().when.begin - steps.front().when.begin) /
         static_cast<std::int64_t>(steps.size() - 1);
}

// Where both are recorded the longest from a step's beginning on. A host that runs ahead of the
// device by more than the trace is long leaves no such moment: then the device alone is shown.
TraceTime beginning(const Trace& trace, const Stretch& host) {
  const std::vector<NumberedStep> steps = steps_of_the_device(trace);
  const auto both = std::find_if(steps.begin(), steps.end(), [&](const NumberedStep& step) {
    return step.when.begin >= host.begin;
  });
  // The first step of a trace begins before it is steady, so the second one is taken if possible.
  if (both != steps.end() && both == steps.begin() && steps.size() > 3) {
    return std::next(both)->when.begin;
  }
  if (both != steps.end()) return both->when.begin;
  return steps.empty() ? host.begin : steps.front().when.begin;
}

}  // namespace

std::vector<NumberedStep> steps_of_the_device(const Trace& trace) {
  // Other streams may work for the step after: a prefetch must not look like its beginning.
  std::map<int, int> pieces;  // by stream
  for (const DeviceWork& work : trace.work) {
    if (work.operation >= 0) ++pieces[work.stream];
  }
  const auto busiest = std::max_element(
      pieces.begin(), pieces.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  std::vector<NumberedStep> steps;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || work.stream != busiest->first) continue;
    auto step = std::find_if(steps.rbegin(), steps.rend(),
                             [&](const NumberedStep& known) { return known.number == work.step; });
    if (step == steps.rend()) {
      steps.push_back({work.step, {work.begin, work.end}});
      continue;
    }
    step->when.begin = std::min(step->when.begin, work.begin);
    step->when.end = std::max(step->when.end, work.end);
  }
  return steps;
}

Windows windows_of(std::span<const TracesOfRanks> variants, double steps) {
  Windows windows;
  TraceTime slowest{0};
  TraceTime shortest = TraceTime::max();  // of what is recorded from a window's beginning on
  for (const TracesOfRanks& ranks : variants) {
    std::vector<Window>& of_ranks = windows.of_variants.emplace_back();
    for (const Trace* trace : ranks) {
      Window& window = of_ranks.emplace_back();
      window.host_recorded = covered(trace->spans);
      window.device_recorded = covered(trace->work);
      window.begin = beginning(*trace, window.host_recorded);
      slowest = std::max(slowest, time_of_a_step(*trace));
    }
    if (std::ranges::all_of(ranks, [](const Trace* rank) { return shares_its_clock(*rank); })) {
      const TraceTime first = std::ranges::min(of_ranks, {}, &Window::begin).begin;
      for (Window& window : of_ranks) window.begin = first;
    }
    for (const Window& window : of_ranks) {
      const TraceTime end = std::max(window.host_recorded.end, window.device_recorded.end);
      shortest = std::min(shortest, end - window.begin);
    }
  }
  const TraceTime wanted(std::llround(static_cast<double>(slowest.count()) * steps));
  windows.length = std::max({std::min(wanted, shortest), std::min(wanted, slowest), TraceTime(1)});
  return windows;
}

}  // namespace stepgate
