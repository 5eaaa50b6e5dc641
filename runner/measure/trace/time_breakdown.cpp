// SPDX-License-Identifier: MIT
#include "measure/trace/time_breakdown.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "base/seconds.h"
#include "kernels/catalogue.h"

namespace stepgate {
namespace {

// Limits the estimated launch latency to an idle device. Where the queue is never empty, every call
// seems slower. A library's launch takes an H200 11 us: 7.3 us in the call, 1.8 us to the device,
// and a pause.
constexpr std::int64_t longest_latency = 15'000;

Interval interval_of(const auto& record) {
  return {record.begin.count(), record.end.count()};
}

bool in_order_with_kernels(const StepPlan& plan, const DeviceWork& work) {
  return is_ordered_with_compute(plan, operation_at(plan, work.operation).stream);
}

// Estimates when the device could have begun issued work if the queue had been empty.
class IssuedWork {
 public:
  explicit IssuedWork(const Trace& trace) {
    for (const HostCall& call : trace.calls) {
      if (call.correlation != 0) calls_.emplace(call.correlation, &call);
    }
    for (const DeviceWork& work : trace.work) {
      const HostCall* call = call_of(work);
      if (call == nullptr) continue;
      const std::int64_t latency = (work.begin - call->begin).count();
      const auto [known, is_new] = latencies_.try_emplace(call->name, longest_latency);
      known->second = std::clamp<std::int64_t>(latency, 0, known->second);
    }
  }

  // Returns the work's own begin where its call is unknown.
  std::int64_t could_begin(const DeviceWork& work) const {
    const HostCall* call = call_of(work);
    if (call == nullptr) return work.begin.count();
    return call->begin.count() + latencies_.at(call->name);
  }

 private:
  // A blocking call is ignored, since it submits its work at an unknown time.
  const HostCall* call_of(const DeviceWork& work) const {
    const auto found = calls_.find(work.correlation);
    const bool known = found != calls_.end() && !found->second->can_block;
    return known ? found->second : nullptr;
  }

  std::unordered_map<std::uint32_t, const HostCall*> calls_;
  std::map<std::string, std::int64_t> latencies_;
};

// Host times that idle device time is attributed to.
struct HostTime {
  std::vector<Interval> waits;  // of the step, ascending
  IntervalUnion waiting;  // waits of the step, and times in which the runner throttles the host
  const IntervalUnion& loader;

  HostTime(const Trace& trace, const IntervalUnion& of_loader) : loader(of_loader) {
    std::vector<Interval> all;
    for (const HostCall& call : trace.calls) {
      if (!waits_for_device(call)) continue;
      all.push_back(interval_of(call));
      if (operation_of(trace, call) >= 0) waits.push_back(interval_of(call));
    }
    waiting = union_of(std::move(all));
  }

  // Includes a wait that returns exactly at `when`.
  bool waited_at(std::int64_t when) const {
    const auto later =
        std::upper_bound(waits.begin(), waits.end(), when,
                         [](std::int64_t time, const Interval& wait) { return time < wait.begin; });
    return later != waits.begin() && when <= std::prev(later)->end;
  }
};

struct IdleTime {
  std::int64_t after_wait = 0;
  std::int64_t for_data = 0;
  std::int64_t for_host = 0;
  std::int64_t in_queue = 0;
};

// Attributes the refilling of the queue after a wait. Without any wait, the device would still be
// idle for the time by which the host takes longer to issue a step than the device to run it. This
// part is attributed to the host, the rest to the waits.
void blame_waits_for_filling(const Interval& window, const HostTime& host, std::int64_t busy,
                             IdleTime& idle) {
  if (host.waits.empty()) return;
  const std::int64_t issuing = length_of(difference_of(union_of({window}), host.waiting));
  const std::int64_t of_host =
      std::clamp<std::int64_t>(issuing - busy - idle.in_queue - idle.for_data, 0, idle.for_host);
  idle.after_wait += idle.for_host - of_host;
  idle.for_host = of_host;
}

IdleTime blame(const Trace& trace, const IntervalUnion& loader, const Interval& window,
               const IntervalUnion& busy) {
  const IssuedWork issued(trace);
  const HostTime host(trace, loader);
  const IntervalUnion gaps = difference_of(union_of({window}), busy);
  IdleTime idle;
  auto next = trace.work.begin();
  for (const Interval& gap : gaps) {
    // Finds the first work of the plan that begins when the gap ends; work is ordered by its begin.
    next = std::find_if(next, trace.work.end(), [&](const DeviceWork& work) {
      return work.operation >= 0 && work.begin.count() >= gap.end;
    });
    const std::int64_t possible = next == trace.work.end() ? gap.end : issued.could_begin(*next);
    const Interval of_host{gap.begin, std::clamp(possible, gap.begin, gap.end)};
    const std::int64_t length = of_host.end - of_host.begin;
    idle.in_queue += gap.end - of_host.end;
    if (length == 0) continue;
    if (host.waited_at(gap.begin)) {
      idle.after_wait += length;
      continue;
    }
    const std::int64_t taking = length_of(intersection_of({&of_host, 1}, host.loader));
    idle.for_data += taking;
    idle.for_host += length - taking;
  }
  blame_waits_for_filling(window, host, length_of(busy), idle);
  return idle;
}

}  // namespace

bool waits_for_device(const HostCall& call) {
  return call.can_block || call.kind == CallKind::poll;
}

bool is_to_device(const DeviceWork& work) {
  const bool from_host = work.from == CopyEnd::pageable || work.from == CopyEnd::pinned;
  return work.kind == WorkKind::copy && from_host && work.to == CopyEnd::device;
}

int operation_of(const Trace& trace, const HostCall& call) {
  return call.span < 0 ? -1 : trace.spans.at(static_cast<std::size_t>(call.span)).operation;
}

TraceWindow window_of(const Trace& trace, const PlannedStep& plan) {
  const std::int64_t last = trace.closing_steps > 0 ? trace.steps - 1 : trace.steps;
  const std::int64_t ahead = plan.facts().prefetch_depth;
  const std::int64_t skipped = ahead < last ? ahead : 0;
  TraceWindow window{.time = {}, .steps = last - skipped};
  std::vector<Interval> within;
  std::optional<std::int64_t> closed;
  for (const DeviceWork& work : trace.work) {  // in order of begin
    if (work.operation < 0 || !in_order_with_kernels(plan, work)) continue;
    if (work.step < trace.first_step + skipped) continue;
    if (work.step >= trace.first_step + last) {
      closed = closed.value_or(work.begin.count());
    } else {
      within.push_back(interval_of(work));
    }
  }
  if (within.empty()) return window;
  window.time = {within.front().begin,
                 closed ? *closed : std::ranges::max(within, {}, &Interval::end).end};
  return window;
}

namespace {

IntervalUnion& time_limited_by(const PlannedStep& plan, int operation, DeviceTime& time) {
  switch (plan.facts().operations.at(static_cast<std::size_t>(operation)).limited_by) {
    case KernelLimit::math:
      return time.math;
    case KernelLimit::latency:
      return time.latency;
    case KernelLimit::memory:
      break;
  }
  return time.memory;
}

}  // namespace

DeviceTime device_time(const Trace& trace, const PlannedStep& plan, const TraceWindow& window) {
  DeviceTime time;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0) continue;
    const Interval interval = interval_of(work);
    time.busy.push_back(interval);
    if (work.kind == WorkKind::kernel) {
      time_limited_by(plan, work.operation, time).push_back(interval);
      time.kernels.push_back(interval);
    } else if (work.kind == WorkKind::copy) {
      time.copies.push_back(interval);
      if (is_to_device(work)) time.to_device.push_back(interval);
    } else if (work.kind == WorkKind::collective) {
      time.collectives.push_back(interval);
    } else {
      time.fills.push_back(interval);
    }
  }
  for (const PageEvent& event : trace.page_events.value_or(std::vector<PageEvent>{})) {
    const bool moves =
        event.kind == PageEventKind::to_device || event.kind == PageEventKind::to_host;
    if (!moves) continue;
    time.busy.push_back(interval_of(event));
    time.copies.push_back(interval_of(event));
    if (event.kind == PageEventKind::to_device) time.to_device.push_back(interval_of(event));
  }
  for (IntervalUnion* part : {&time.math, &time.memory, &time.latency, &time.kernels, &time.copies,
                              &time.to_device, &time.fills, &time.collectives, &time.busy}) {
    *part = intersection_of(union_of(std::move(*part)), {&window.time, 1});
  }
  return time;
}

TimeBreakdown time_breakdown(const Trace& trace, const StepPlan& plan, const TraceWindow& window,
                             const DeviceTime& device) {
  std::vector<Interval> taking;
  for (const HostSpan& span : trace.spans) {
    if (span.operation < 0) continue;
    const Action& action = operation_at(plan, span.operation).action;
    if (std::holds_alternative<TakeBatch>(action) || std::holds_alternative<HostCopies>(action))
      taking.push_back(interval_of(span));
  }
  return time_breakdown(trace, union_of(std::move(taking)), window, device);
}

TimeBreakdown time_breakdown(const Trace& trace, const IntervalUnion& loader,
                             const TraceWindow& window, const DeviceTime& device) {
  const IntervalUnion whole = union_of({window.time});
  const IdleTime idle = blame(trace, loader, window.time, device.busy);
  const auto a_step = [&](std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / nanoseconds_per_second /
           static_cast<double>(window.steps);
  };
  const auto alone = [&](const IntervalUnion& part) {
    return difference_of(difference_of(part, device.kernels), device.copies);
  };
  const IntervalUnion communication = alone(device.collectives);
  const IntervalUnion fills_alone = difference_of(alone(device.fills), communication);
  const IntervalUnion memory = difference_of(device.memory, device.math);
  const IntervalUnion latency =
      difference_of(difference_of(device.latency, device.math), device.memory);
  return {.step = a_step(length_of(whole)),
          .math = a_step(length_of(device.math)),
          .memory = a_step(length_of(memory) + length_of(fills_alone)),
          .latency = a_step(length_of(latency)),
          .copies = a_step(length_of(difference_of(device.copies, device.kernels))),
          .communication = a_step(length_of(communication)),
          .idle_after_wait = a_step(idle.after_wait),
          .idle_for_data = a_step(idle.for_data),
          .idle_for_host = a_step(idle.for_host),
          .idle_in_queue = a_step(idle.in_queue)};
}

std::vector<std::pair<std::string_view, double>> named_parts(const TimeBreakdown& time) {
  return {{"step", time.step},
          {"math", time.math},
          {"memory", time.memory},
          {"latency", time.latency},
          {"copies", time.copies},
          {"communication", time.communication},
          {"idle_after_wait", time.idle_after_wait},
          {"idle_for_data", time.idle_for_data},
          {"idle_for_host", time.idle_for_host},
          {"idle_in_queue", time.idle_in_queue}};
}

}  // namespace stepgate
