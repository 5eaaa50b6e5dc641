// SPDX-License-Identifier: MIT
#include "measure/trace/communication.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/seconds.h"
#include "kernels/catalogue.h"
#include "measure/trace/meetings.h"

namespace stepgate {
namespace {

using Values = std::map<Metric, double>;

double in_seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / nanoseconds_per_second;
}

Interval time_of(const DeviceWork& work) {
  return {work.begin.count(), work.end.count()};
}

// Adds the mean, over steps, of the longest wait for a rank in each step.
void add_skew(const Trace& trace, const MeetingsOfRanks& meetings, Values& values) {
  std::map<std::int64_t, std::int64_t> longest;  // longest wait, by step
  for (const auto& [key, meeting] : meetings) {
    std::int64_t& of_step = longest[key.first];
    of_step = std::max(of_step, meeting.last - meeting.first);
  }
  if (longest.empty()) return;
  std::int64_t sum = 0;
  for (const auto& [step, skew] : longest) sum += skew;
  values[Metric::skew_us] = in_seconds(sum) / static_cast<double>(trace.steps);
}

// Adds nothing where all ranks arrive at once.
void add_last_rank(const MeetingsOfRanks& meetings, Values& values) {
  std::map<int, std::int64_t> times_last;  // number of collectives where it arrived last, by rank
  for (const auto& [key, meeting] : meetings) {
    if (meeting.first < meeting.last) ++times_last[meeting.last_rank];
  }
  if (times_last.empty()) return;
  const auto most =
      std::ranges::max_element(times_last, {}, [](const auto& rank) { return rank.second; });
  values[Metric::last_rank] = most->first;
}

// Excludes the time that a collective waits for ranks to arrive.
void add_bus_speed(const Trace& trace, const StepPlan& plan, const MeetingsOfRanks& meetings,
                   Values& values) {
  double bytes = 0;
  double time = 0;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || !work.collective) continue;
    std::int64_t begin = work.begin.count();
    if (const auto met = meetings.find({work.step, work.operation}); met != meetings.end())
      begin = std::max(begin, met->second.last);
    bytes += ring_wire_bytes(*work.collective, work.bytes, plan.ranks.count);
    time += in_seconds(work.end.count() - begin);
  }
  if (time > 0) values[Metric::bus_gbps] = bytes / time;
}

// Length of the intersection of the interval and the union.
std::int64_t covered(const Interval& interval, const IntervalUnion& by) {
  std::int64_t length = 0;
  auto next = std::ranges::upper_bound(by, interval.begin, {}, &Interval::end);
  for (; next != by.end() && next->begin < interval.end; ++next)
    length += std::min(next->end, interval.end) - std::max(next->begin, interval.begin);
  return length;
}

// Launches of the same kernel and shape, split by whether a collective ran at the same time.
struct Alike {
  double under_seconds = 0;
  double under_times = 0;
  double alone_seconds = 0;
  double alone_times = 0;
};

void add_stretch(const Trace& trace, const StepPlan& plan, Values& values) {
  std::vector<Interval> all;
  for (const DeviceWork& work : trace.work) {
    if (work.operation >= 0 && work.kind == WorkKind::collective) all.push_back(time_of(work));
  }
  const IntervalUnion collectives = union_of(std::move(all));
  // A library may run several kernels for one launch.
  std::map<std::tuple<std::string_view, std::string, std::string_view>, Alike> alike;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || work.kind != WorkKind::kernel) continue;
    const auto* launch = std::get_if<LaunchKernel>(&operation_at(plan, work.operation).action);
    if (launch == nullptr) continue;
    const Interval time = time_of(work);
    const std::int64_t length = time.end - time.begin;
    const std::int64_t under = covered(time, collectives);
    Alike& of = alike[{launch->kernel.name(), text_of(launch->shape), work.name}];
    if (under == 0) {
      of.alone_seconds += in_seconds(length);
      of.alone_times += 1;
    } else if (under == length) {
      of.under_seconds += in_seconds(length);
      of.under_times += 1;
    }
  }
  double under = 0;
  double alone = 0;
  for (const auto& [what, of] : alike) {
    if (of.under_times == 0 || of.alone_times == 0) continue;
    under += of.under_seconds;
    alone += of.under_times * of.alone_seconds / of.alone_times;
  }
  if (alone > 0) values[Metric::comm_stretch] = under / alone;
}

// Collectives that an operation of the compute stream waits for: all on `stream` up to this
// operation, of the step that issues the wait or of an earlier step.
struct Awaited {
  int stream = 0;
  int operation = 0;
  std::int64_t steps_before = 0;
};
using AwaitedBy = std::map<int, std::vector<Awaited>>;  // by operation of the compute stream

// Finds the collectives that each operation waits for. A wait on a stream delays the next work that
// is issued there. A wait at the end of a step delays the first work of the next step, and the
// event of a wait may be recorded in the step before. `works` has the operations that keep the
// compute stream busy.
AwaitedBy awaited_collectives(const StepPlan& plan, const std::set<int>& works) {
  AwaitedBy awaited;
  std::map<int, Awaited> records;  // last record of each event
  std::vector<Awaited> pending;
  constexpr std::int64_t passes = 2;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    for (int index = 0; index < std::ssize(plan.operations); ++index) {
      const Operation& operation = operation_at(plan, index);
      const bool of_compute = operation.stream == compute_stream;
      const Awaited here{.stream = operation.stream, .operation = index};
      if (const auto* record = std::get_if<RecordEvent>(&operation.action)) {
        records.insert_or_assign(record->event, here);
      } else if (const auto* wait = std::get_if<StreamWaitsEvent>(&operation.action)) {
        const auto record_of = records.find(wait->event);
        if (of_compute && record_of != records.end()) pending.push_back(record_of->second);
      } else if (of_compute && std::holds_alternative<Collective>(operation.action)) {
        pending.push_back(here);
      } else if (works.contains(index)) {
        awaited[index] = std::exchange(pending, {});
      }
    }
    for (auto& [event, record] : records) ++record.steps_before;
    for (Awaited& one : pending) ++one.steps_before;
  }
  return awaited;
}

bool is_of_compute(const StepPlan& plan, const DeviceWork& work) {
  return work.operation >= 0 && work.kind != WorkKind::collective &&
         operation_at(plan, work.operation).stream == compute_stream;
}

// Returns the times of the collectives that the work waits for, including those that finished long
// before.
std::vector<Interval> times_of_awaited(const Trace& trace, const StepPlan& plan,
                                       const DeviceWork& work,
                                       const std::vector<Awaited>& awaited) {
  std::vector<Interval> times;
  for (const DeviceWork& other : trace.work) {
    if (other.operation < 0 || other.kind != WorkKind::collective) continue;
    const int stream = operation_at(plan, other.operation).stream;
    const bool is_awaited = std::ranges::any_of(awaited, [&](const Awaited& one) {
      const std::int64_t step = work.step - one.steps_before;
      return one.stream == stream &&
             std::pair(other.step, other.operation) <= std::pair(step, one.operation);
    });
    if (is_awaited) times.push_back(time_of(other));
  }
  return times;
}

// Adds the time in which the step is blocked by collectives. A collective costs nothing while no
// work waits for it. If the host issued the waiting work late anyway, the collective did not block
// it.
void add_blocking(const Trace& trace, const StepPlan& plan, const TraceWindow& window,
                  Values& values) {
  std::set<int> works;
  for (const DeviceWork& work : trace.work) {
    if (is_of_compute(plan, work)) works.insert(work.operation);
  }
  const AwaitedBy awaited = awaited_collectives(plan, works);
  std::vector<Interval> blocked;
  const DeviceWork* before = nullptr;
  std::int64_t busy_until = 0;
  for (const DeviceWork& work : trace.work) {  // in order of begin
    if (!is_of_compute(plan, work)) continue;
    const Interval pause{busy_until, work.begin.count()};
    busy_until = before == nullptr ? work.end.count() : std::max(busy_until, work.end.count());
    const bool is_next =
        before != nullptr && (before->operation != work.operation || before->step != work.step);
    before = &work;
    const auto waits = awaited.find(work.operation);
    if (!is_next || pause.begin >= pause.end || waits == awaited.end() || waits->second.empty())
      continue;
    const IntervalUnion during = union_of(times_of_awaited(trace, plan, work, waits->second));
    const IntervalUnion part = intersection_of({&pause, 1}, during);
    blocked.insert(blocked.end(), part.begin(), part.end());
  }
  const IntervalUnion within = intersection_of(union_of(std::move(blocked)), {&window.time, 1});
  values[Metric::blocking_comm_us] =
      in_seconds(length_of(within)) / static_cast<double>(window.steps);
}

}  // namespace

void add_communication(const Trace& trace, const PlannedStep& plan, const TraceWindow& window,
                       const DeviceTime& device, Values& values) {
  const auto steps = static_cast<double>(window.steps);
  const double all = in_seconds(length_of(device.collectives));
  const double exposed = in_seconds(length_of(difference_of(device.collectives, device.kernels)));
  values[Metric::comm_us] = all / steps;
  values[Metric::exposed_comm_us] = exposed / steps;
  if (all > 0) values[Metric::comm_overlap] = 1 - exposed / all;
  const MeetingsOfRanks meetings = meetings_of(trace);
  add_blocking(trace, plan, window, values);
  add_stretch(trace, plan, values);
  add_bus_speed(trace, plan, meetings, values);
  add_skew(trace, meetings, values);
  add_last_rank(meetings, values);
}

}  // namespace stepgate
