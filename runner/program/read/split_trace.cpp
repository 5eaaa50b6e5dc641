// SPDX-License-Identifier: MIT
#include "program/read/split_trace.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "base/seconds.h"
#include "device/cuda/cupti/call_kinds.h"
#include "device/cuda/cupti/kernel_name.h"
#include "measure/trace/time_breakdown.h"

namespace stepgate {
namespace {

constexpr std::string_view loader_range = "enumerate(DataLoader)#";
constexpr std::size_t longest_shown_name = 80;

std::int16_t busiest_device(const ProfilerTrace& trace) {
  std::map<std::int16_t, std::int64_t> pieces;
  for (const ProfiledWork& work : trace.work) ++pieces[work.device];
  const auto most =
      std::ranges::max_element(pieces, {}, [](const auto& each) { return each.second; });
  return most == pieces.end() ? std::int16_t{0} : most->first;
}

// Only the device's work and the host's calls of the counted steps, as a trace of one operation.
Trace counted_part(const ProfilerTrace& profiled, const CountedTrace& counted) {
  const std::vector<Interval>& steps = counted.steps.steps;
  Trace trace;
  trace.steps = std::ssize(steps);
  const Interval whole{steps.front().begin, steps.back().end};
  trace.spans.push_back(
      {.operation = 0, .begin = TraceTime(whole.begin), .end = TraceTime(whole.end)});
  const std::int16_t device = busiest_device(profiled);
  std::set<std::uint32_t> pageable;  // correlations
  std::unordered_map<std::uint32_t, std::int64_t> issued;
  for (const ProfiledWork& work : profiled.work) {
    if (work.from == CopyEnd::pageable || work.to == CopyEnd::pageable)
      pageable.insert(work.correlation);
  }
  for (const ProfiledCall& call : profiled.calls) {
    if (call.time.begin < whole.begin || call.time.begin >= whole.end) continue;
    const CallMeaning meaning = meaning_of_call(plain_call_name(profiled.name_of(call)));
    issued.try_emplace(call.correlation, call.time.begin);
    if (meaning.kind == CallKind::other) continue;
    trace.calls.push_back(
        {.name = std::string(plain_call_name(profiled.name_of(call))),
         .kind = meaning.kind,
         .can_block = meaning.always_can_block ||
                      (meaning.kind == CallKind::copy && pageable.contains(call.correlation)),
         .span = 0,
         .correlation = call.correlation,
         .begin = TraceTime(call.time.begin),
         .end = TraceTime(call.time.end)});
  }
  for (const ProfiledWork& work : profiled.work) {
    if (work.device != device) continue;
    const auto call = issued.find(work.correlation);
    const std::int64_t at = call == issued.end() ? work.time.begin : call->second;
    const auto after = std::ranges::upper_bound(steps, at, {}, &Interval::begin);
    if (after == steps.begin() || at >= whole.end) continue;
    trace.work.push_back({.kind = work.kind,
                          .name = profiled.names[work.name],
                          .stream = work.stream,
                          .operation = 0,
                          .step = std::distance(steps.begin(), after) - 1,
                          .correlation = work.correlation,
                          .from_graph = work.from_graph,
                          .begin = TraceTime(work.time.begin),
                          .end = TraceTime(work.time.end),
                          .bytes = work.bytes,
                          .from = work.from,
                          .to = work.to});
  }
  return trace;
}

// From the first kernel of the first step to that of the last one.
TraceWindow window_in(const Trace& trace) {
  TraceWindow window{.time = {}, .steps = std::max<std::int64_t>(trace.steps - 1, 1)};
  std::optional<std::int64_t> first, last, end;
  for (const DeviceWork& work : trace.work) {
    end = std::max(end.value_or(work.end.count()), work.end.count());
    if (work.kind != WorkKind::kernel) continue;
    if (!first && work.step == 0) first = work.begin.count();
    if (!last && trace.steps > 1 && work.step == trace.steps - 1) last = work.begin.count();
  }
  if (!first || !end) return window;
  if (!last || *last <= *first) {
    last = end;
    window.steps = trace.steps;
  }
  window.time = {*first, *last};
  return window;
}

DeviceTime device_time(const Trace& trace, const TraceWindow& window) {
  DeviceTime time;
  std::unordered_map<std::string_view, bool> limited;
  for (const DeviceWork& work : trace.work) {
    const Interval interval{work.begin.count(), work.end.count()};
    time.busy.push_back(interval);
    switch (work.kind) {
      case WorkKind::kernel: {
        const auto [by_math, is_new] = limited.try_emplace(work.name);
        if (is_new) by_math->second = is_limited_by_arithmetic(work.name);
        (by_math->second ? time.math : time.memory).push_back(interval);
        time.kernels.push_back(interval);
        break;
      }
      case WorkKind::copy:
        time.copies.push_back(interval);
        if (is_to_device(work)) time.to_device.push_back(interval);
        break;
      case WorkKind::fill:
        time.fills.push_back(interval);
        break;
      case WorkKind::collective:
        time.collectives.push_back(interval);
        break;
    }
  }
  for (IntervalUnion* part : {&time.math, &time.memory, &time.kernels, &time.copies,
                              &time.to_device, &time.fills, &time.collectives, &time.busy}) {
    *part = intersection_of(union_of(std::move(*part)), {&window.time, 1});
  }
  return time;
}

std::string shown_name(const DeviceWork& work) {
  if (work.kind == WorkKind::copy) return "(copies)";
  if (work.kind == WorkKind::fill) return "(fills)";
  std::string name = readable_kernel_name(work.name.c_str());
  if (name.starts_with("void ")) name.erase(0, 5);
  if (name.size() > longest_shown_name) name = name.substr(0, longest_shown_name) + "...";
  return name;
}

}  // namespace

bool is_limited_by_arithmetic(std::string_view kernel) {
  std::string name;
  for (const char letter : kernel)
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  // A vector times a matrix is as fast as its bytes.
  if (name.find("gemv") != std::string::npos) return false;
  constexpr std::array parts{"gemm",     "conv",  "cutlass", "xmma",      "wgrad", "dgrad",
                             "winograd", "flash", "fmha",    "attention", "sdpa",  "nvjet"};
  return std::ranges::any_of(
      parts, [&](const char* part) { return name.find(part) != std::string::npos; });
}

TracedStep split_trace(const ProfilerTrace& profiled, const CountedTrace& counted) {
  TracedStep split;
  for (const MetricRow& row : metric_table()) {
    const auto value = value_of(counted.counted.mean, row.metric);
    if (value && !counted.counted.unknown.contains(row.metric)) split.values[row.metric] = *value;
  }
  split.rank = static_cast<int>(std::max<std::int64_t>(profiled.rank, 0));
  if (counted.steps.steps.empty()) return split;
  const Trace trace = counted_part(profiled, counted);
  const TraceWindow window = window_in(trace);
  if (window.time.end <= window.time.begin) return split;
  std::vector<Interval> loading;
  for (const ProfiledRange& range : profiled.ranges) {
    if (profiled.name_of(range).starts_with(loader_range)) loading.push_back(range.time);
  }
  const DeviceTime device = device_time(trace, window);
  split.time = time_breakdown(trace, union_of(std::move(loading)), window, device);
  const auto steps = static_cast<double>(trace.steps);
  std::unordered_map<std::string, std::string> shown;
  for (const DeviceWork& work : trace.work) {
    const auto [name, is_new] = shown.try_emplace(work.name);
    if (is_new) name->second = shown_name(work);
    WorkTime& time = split.work[name->second];
    time.times += 1 / steps;
    time.seconds +=
        static_cast<double>((work.end - work.begin).count()) / nanoseconds_per_second / steps;
  }
  const auto communicating = static_cast<double>(length_of(device.collectives));
  split.values[Metric::comm_us] =
      communicating / nanoseconds_per_second / static_cast<double>(window.steps);
  return split;
}

}  // namespace stepgate
