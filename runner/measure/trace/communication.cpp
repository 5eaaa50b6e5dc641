// SPDX-License-Identifier: MIT
#include "measure/trace/communication.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "kernels/catalogue.h"
#include "support/seconds.h"

namespace stepgate {
namespace {

using Values = std::map<Metric, double>;

double in_seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / nanoseconds_per_second;
}

Interval time_of(const DeviceWork& work) {
  return {work.begin.count(), work.end.count()};
}

// When the ranks came to one collective.
struct Meeting {
  std::int64_t first = 0;
  std::int64_t last = 0;
  int last_rank = 0;
};
using Meetings = std::map<std::pair<std::int64_t, int>, Meeting>;  // by step and operation

Meetings meetings_of(const Trace& trace) {
  Meetings meetings;
  for (const RankArrival& arrival : trace.arrivals) {
    const std::int64_t at = arrival.at.count();
    const auto [place, is_new] =
        meetings.try_emplace({arrival.step, arrival.operation},
                             Meeting{.first = at, .last = at, .last_rank = arrival.rank});
    Meeting& meeting = place->second;
    meeting.first = std::min(meeting.first, at);
    if (at <= meeting.last) continue;
    meeting.last = at;
    meeting.last_rank = arrival.rank;
  }
  return meetings;
}

// The longest of each step, on average over the steps.
void add_skew(const Trace& trace, const Meetings& meetings, Values& values) {
  std::map<std::int64_t, std::int64_t> longest;  // by step
  for (const auto& [key, meeting] : meetings) {
    std::int64_t& of_step = longest[key.first];
    of_step = std::max(of_step, meeting.last - meeting.first);
  }
  if (longest.empty()) return;
  std::int64_t sum = 0;
  for (const auto& [step, skew] : longest) sum += skew;
  values[Metric::skew_us] = in_seconds(sum) / static_cast<double>(trace.steps);
}

// None where all come at once.
void add_last_rank(const Meetings& meetings, Values& values) {
  std::map<int, std::int64_t> times_last;  // by rank
  for (const auto& [key, meeting] : meetings) {
    if (meeting.first < meeting.last) ++times_last[meeting.last_rank];
  }
  if (times_last.empty()) return;
  const auto most =
      std::ranges::max_element(times_last, {}, [](const auto& rank) { return rank.second; });
  values[Metric::last_rank] = most->first;
}

// Waiting for a rank is no part of a collective's speed.
void add_bus_speed(const Trace& trace, const StepPlan& plan, const Meetings& meetings,
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

// How much of the interval lies in the union.
std::int64_t covered(const Interval& interval, const IntervalUnion& by) {
  std::int64_t length = 0;
  auto next = std::ranges::upper_bound(by, interval.begin, {}, &Interval::end);
  for (; next != by.end() && next->begin < interval.end; ++next)
    length += std::min(next->end, interval.end) - std::max(next->begin, interval.begin);
  return length;
}

// Launches of the same kernel and shape, some of them under a collective and some beside none.
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
  // A library may take several kernels for a launch.
  std::map<std::tuple<std::string_view, KernelShape, std::string_view>, Alike> alike;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || work.kind != WorkKind::kernel) continue;
    const auto* launch = std::get_if<LaunchKernel>(&operation_at(plan, work.operation).action);
    if (launch == nullptr) continue;
    const Interval time = time_of(work);
    const std::int64_t length = time.end - time.begin;
    const std::int64_t under = covered(time, collectives);
    Alike& of = alike[{launch->kernel.name(), launch->shape, work.name}];
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

}  // namespace

void add_communication(const Trace& trace, const PlannedStep& plan, const TraceWindow& window,
                       const DeviceTime& device, Values& values) {
  const auto steps = static_cast<double>(window.steps);
  const double all = in_seconds(length_of(device.collectives));
  const double exposed = in_seconds(length_of(difference_of(device.collectives, device.kernels)));
  values[Metric::comm_us] = all / steps;
  values[Metric::exposed_comm_us] = exposed / steps;
  if (all > 0) values[Metric::comm_overlap] = 1 - exposed / all;
  const Meetings meetings = meetings_of(trace);
  add_stretch(trace, plan, values);
  add_bus_speed(trace, plan, meetings, values);
  add_skew(trace, meetings, values);
  add_last_rank(meetings, values);
}

}  // namespace stepgate
