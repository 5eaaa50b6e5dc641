// SPDX-License-Identifier: MIT
#include "program/read/count_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/text/diagnostic.h"
#include "device/cuda/cupti/call_kinds.h"
#include "device/cuda/cupti/kernel_name.h"

namespace stepgate {
namespace {

constexpr std::string_view step_of_profiler = "ProfilerStep#";
constexpr std::string_view step_of_optimizer = "Optimizer.step#";

double& of(CallCounts& counts, CallCount count) {
  return counts[static_cast<std::size_t>(count)];
}

bool launches_work(CallKind kind) {
  return kind == CallKind::launch || kind == CallKind::graph_launch || kind == CallKind::copy ||
         kind == CallKind::fill;
}

// Meanings of all names of the trace, each looked up once.
class Meanings {
 public:
  explicit Meanings(const ProfilerTrace& trace) : names_(trace.names), known_(names_.size()) {}
  CallMeaning of(std::uint32_t name) {
    auto& known = known_[name];
    if (!known) known = meaning_of_call(plain_call_name(names_[name]));
    return *known;
  }

 private:
  const std::vector<std::string>& names_;
  std::vector<std::optional<CallMeaning>> known_;
};

// Boundaries of steps: each begins where the one before ends.
std::vector<Interval> between(std::vector<std::int64_t> boundaries) {
  std::ranges::sort(boundaries);
  std::vector<Interval> steps;
  for (std::size_t next = 1; next < boundaries.size(); ++next) {
    if (boundaries[next] > boundaries[next - 1])
      steps.push_back({boundaries[next - 1], boundaries[next]});
  }
  return steps;
}

std::vector<const ProfiledRange*> annotations(const ProfilerTrace& trace, auto&& matches) {
  std::vector<const ProfiledRange*> found;
  for (const ProfiledRange& range : trace.ranges) {
    if (range.kind == RangeKind::annotation && matches(trace.name_of(range)))
      found.push_back(&range);
  }
  std::ranges::sort(found, {}, [](const ProfiledRange* range) { return range->time.begin; });
  return found;
}

TracedSteps ranges_named(const ProfilerTrace& trace, const std::string& name) {
  TracedSteps found;
  for (const ProfiledRange* range :
       annotations(trace, [&](std::string_view each) { return each == name; })) {
    if (found.steps.empty() || range->time.begin >= found.steps.back().end)
      found.steps.push_back(range->time);
  }
  // A range begins a step, which goes on until the next one.
  for (std::size_t index = 0; index + 1 < found.steps.size(); ++index)
    found.steps[index].end = found.steps[index + 1].begin;
  found.words = fmt::format("{} ranges '{}'", found.steps.size(), name);
  return found;
}

// The profiler's own work between two steps is part of neither.
TracedSteps steps_of_profiler(const ProfilerTrace& trace) {
  TracedSteps found;
  for (const ProfiledRange* range : annotations(
           trace, [](std::string_view each) { return each.starts_with(step_of_profiler); })) {
    if (found.steps.empty() || range->time.begin >= found.steps.back().end)
      found.steps.push_back(range->time);
  }
  found.words = fmt::format("{} ranges ProfilerStep", found.steps.size());
  return found;
}

TracedSteps steps_of_optimizer(const ProfilerTrace& trace) {
  std::vector<std::int64_t> ends;
  std::string first;
  for (const ProfiledRange* range : annotations(
           trace, [](std::string_view each) { return each.starts_with(step_of_optimizer); })) {
    const std::string name(trace.name_of(*range));
    if (first.empty()) first = name;
    if (name == first) ends.push_back(range->time.end);
  }
  const std::string words = first.empty() ? ""
                                          : fmt::format("{} ends of {}", ends.size(),
                                                        first.substr(step_of_optimizer.size()));
  return {.steps = between(std::move(ends)), .words = words, .first = 0};
}

// Between launches of kernels that end a step: the launch itself belongs to the step that it ends.
TracedSteps steps_by_kernel(const ProfilerTrace& trace, const std::string& pattern) {
  const std::regex expression(pattern);
  std::unordered_map<std::uint32_t, bool> matches;
  std::set<std::uint32_t> launches;
  for (const ProfiledWork& work : trace.work) {
    const auto [entry, is_new] = matches.try_emplace(work.name);
    // The matcher recurses with the length of the text, which longest_kept_name bounds.
    if (is_new) entry->second = std::regex_search(trace.names[work.name], expression);
    if (entry->second && work.kind != WorkKind::copy && work.kind != WorkKind::fill)
      launches.insert(work.correlation);
  }
  std::vector<std::int64_t> ends;
  for (const ProfiledCall& call : trace.calls) {
    if (call.correlation != 0 && launches.contains(call.correlation)) ends.push_back(call.time.end);
  }
  const std::string words = fmt::format("{} launches of kernels like '{}'", ends.size(), pattern);
  return {.steps = between(std::move(ends)), .words = words, .first = 0};
}

TracedSteps steps_by_call(const ProfilerTrace& trace, const std::string& name) {
  std::vector<std::int64_t> ends;
  for (const ProfiledCall& call : trace.calls) {
    if (plain_call_name(trace.name_of(call)) == name) ends.push_back(call.time.end);
  }
  const std::string words = fmt::format("{} calls of {}", ends.size(), name);
  return {.steps = between(std::move(ends)), .words = words, .first = 0};
}

TracedSteps all_steps_of(const ProfilerTrace& trace, const StepChoice& choice) {
  if (!choice.kernel.empty()) return steps_by_kernel(trace, choice.kernel);
  if (!choice.call.empty()) return steps_by_call(trace, choice.call);
  if (choice.names_range) return ranges_named(trace, choice.range);
  TracedSteps best = steps_of_profiler(trace);
  // A profiler without a schedule has one step of its own, or none.
  if (best.steps.size() > 1) return best;
  for (TracedSteps other : {steps_of_optimizer(trace), ranges_named(trace, choice.range)}) {
    if (other.steps.size() > best.steps.size()) best = std::move(other);
  }
  return best;
}

// Counts the calls and the work of the steps of one trace.
class TraceCounter {
 public:
  TraceCounter(const ProfilerTrace& trace, const TracedSteps& steps)
      : trace_(trace), steps_(steps.steps), meanings_(trace), calls_(trace.calls) {
    for (std::size_t index = 0; index < calls_.size(); ++index) {
      if (calls_[index].correlation != 0)
        by_correlation_.try_emplace(calls_[index].correlation, index);
    }
    for (const ProfiledCall& call : calls_) {
      if (call.correlation != 0) issued_.try_emplace(call.correlation, call.time.begin);
    }
    work_of_.resize(calls_.size());
    for (const ProfiledWork& work : trace.work) {
      const auto call = by_correlation_.find(work.correlation);
      if (work.correlation == 0 || call == by_correlation_.end())
        orphans_.push_back(&work);
      else
        work_of_[call->second].push_back(&work);
    }
    find_captures();
    find_ranges();
  }

  double launches_in_all() {
    double found = 0;
    for (const ProfiledCall& call : calls_)
      found += launches_work(meanings_.of(call.name).kind) ? 1 : 0;
    return found;
  }

  void count(CountedTrace& into) {
    CountedProcess& counted = into.counted;
    counted.each.assign(steps_.size(), {});
    find_threads();
    for (std::size_t index = 0; index < calls_.size(); ++index) {
      const auto step = step_of(calls_[index].time.begin);
      if (step && threads_.contains(calls_[index].thread)) count_call(index, *step, counted);
    }
    count_waits_of_the_driver(counted);
    count_orphans(counted);
    for (std::size_t index = 0; index < counted.mean.size(); ++index) {
      for (const CallCounts& step : counted.each) counted.mean[index] += step[index];
      counted.mean[index] /= static_cast<double>(steps_.size());
    }
    counted.places = places();
    say_what_is_missing(into);
  }

 private:
  using Work = std::vector<const ProfiledWork*>;

  std::optional<std::size_t> step_of(std::int64_t time) const {
    const auto after = std::ranges::upper_bound(steps_, time, {}, &Interval::begin);
    if (after == steps_.begin()) return std::nullopt;
    const auto step = std::prev(after);
    if (time >= step->end) return std::nullopt;
    return static_cast<std::size_t>(step - steps_.begin());
  }

  // The step of work, or of a wait, whose call is not in the trace. Calls are numbered in their
  // order, so it was issued after the call with the number before its own.
  std::optional<std::size_t> step_of_unseen(const auto& record) const {
    const auto after = issued_.lower_bound(record.correlation);
    if (record.correlation == 0 || after == issued_.begin()) return step_of(record.time.begin);
    return step_of(std::prev(after)->second);
  }

  // Calls while a stream of the process is captured become nodes of a graph.
  void find_captures() {
    std::vector<std::int64_t> begins;
    std::vector<Interval> found;
    for (const ProfiledCall& call : calls_) {
      const std::string_view name = plain_call_name(trace_.name_of(call));
      if (name == "cudaStreamBeginCapture" || name == "cuStreamBeginCapture") {
        begins.push_back(call.time.end);
      } else if (!begins.empty() &&
                 (name == "cudaStreamEndCapture" || name == "cuStreamEndCapture")) {
        found.push_back({begins.back(), call.time.begin});
        begins.pop_back();
      }
    }
    captures_ = union_of(std::move(found));
  }
  static bool contains(const IntervalUnion& times, std::int64_t time) {
    const auto after = std::ranges::upper_bound(times, time, {}, &Interval::begin);
    return after != times.begin() && time < std::prev(after)->end;
  }
  bool is_captured(const ProfiledCall& call) const { return contains(captures_, call.time.begin); }

  // Threads of loaders and watchdogs launch nothing, and are left out.
  void find_threads() {
    for (const ProfiledCall& call : calls_) {
      if (step_of(call.time.begin) && launches_work(meanings_.of(call.name).kind) &&
          !is_captured(call))
        threads_.insert(call.thread);
    }
  }

  void count_copy(const ProfiledWork& work, bool can_block, CallCounts& counts) {
    const bool pageable = work.from == CopyEnd::pageable || work.to == CopyEnd::pageable;
    const bool from_host = work.from == CopyEnd::pageable || work.from == CopyEnd::pinned;
    const bool to_host = work.to == CopyEnd::pageable || work.to == CopyEnd::pinned;
    of(counts, CallCount::copies) += 1;
    of(counts, CallCount::copy_bytes) += static_cast<double>(work.bytes);
    if (from_host && !to_host) of(counts, CallCount::copies_to_device) += 1;
    if (to_host && !from_host) of(counts, CallCount::copies_to_host) += 1;
    if (pageable) of(counts, CallCount::pageable_copies) += 1;
    if (work.from == CopyEnd::unknown || work.to == CopyEnd::unknown)
      of(counts, CallCount::unknown_copies) += 1;
    if (can_block || pageable) of(counts, CallCount::blocking_copies) += 1;
  }

  void count_call(std::size_t index, std::size_t step, CountedProcess& counted) {
    const ProfiledCall& call = calls_[index];
    const CallMeaning meaning = meanings_.of(call.name);
    CallCounts& counts = counted.each[step];
    const Work& work = work_of_[index];
    if (launches_work(meaning.kind) && work.empty()) {
      if (is_captured(call)) return;
      if (meaning.kind != CallKind::copy) ++without_work_;
    }
    const auto blocking_free = [&] {
      if (meaning.always_can_block) of(counts, CallCount::blocking_frees) += 1;
    };
    switch (meaning.kind) {
      case CallKind::launch:
        of(counts, CallCount::launches) += 1;
        if (!work.empty() && work.front()->kind == WorkKind::collective)
          of(counts, CallCount::collectives) += 1;
        break;
      case CallKind::graph_launch:
        of(counts, CallCount::launches) += 1;
        of(counts, CallCount::graph_launches) += 1;
        for (const ProfiledWork* one : work) {
          const CallCount kind = one->kind == WorkKind::copy   ? CallCount::copies
                                 : one->kind == WorkKind::fill ? CallCount::fills
                                                               : CallCount::graph_kernels;
          of(counts, kind) += 1;
        }
        break;
      case CallKind::copy: {
        // Ends are what the device recorded. A copy without a record has ends that nobody knows.
        static constexpr ProfiledWork not_recorded{.kind = WorkKind::copy};
        const ProfiledWork& copy = work.empty() ? not_recorded : *work.front();
        count_copy(copy, meaning.always_can_block, counts);
        if (copy.from == CopyEnd::pageable || copy.to == CopyEnd::pageable)
          add_place(call, CallCount::pageable_copies, copy.bytes);
        else if (meaning.always_can_block)
          add_place(call, CallCount::blocking_copies, copy.bytes);
        break;
      }
      case CallKind::fill:
        of(counts, CallCount::fills) += 1;
        break;
      case CallKind::allocate:
        of(counts, CallCount::device_allocs) += 1;
        add_place(call, CallCount::device_allocs, 0);
        break;
      case CallKind::release:
        of(counts, CallCount::device_frees) += 1;
        blocking_free();
        add_place(call, CallCount::device_frees, 0);
        break;
      case CallKind::pin:
        of(counts, CallCount::pinned_allocs) += 1;
        blocking_free();
        add_place(call, CallCount::pinned_allocs, 0);
        break;
      case CallKind::unpin:
        blocking_free();
        add_place(call, CallCount::blocking_frees, 0);
        break;
      case CallKind::wait_for_device:
        of(counts, CallCount::device_waits) += 1;
        [[fallthrough]];
      case CallKind::wait_for_stream:
      case CallKind::wait_for_event:
        of(counts, CallCount::waits) += 1;
        add_place(call, CallCount::waits, 0);
        break;
      case CallKind::poll:
        of(counts, CallCount::polls) += 1;
        break;
      case CallKind::other:
        break;
    }
  }

  // Waits through the driver have no call in a trace, and records of the device's side where the
  // profiler was asked for them. Waits within a call that is in the trace are of that call.
  void count_waits_of_the_driver(CountedProcess& counted) {
    if (trace_.waits.empty()) return;
    std::vector<Interval> calls;
    for (const ProfiledCall& call : calls_) {
      if (meanings_.of(call.name).always_can_block) calls.push_back(call.time);
    }
    const IntervalUnion waiting = union_of(std::move(calls));
    for (const ProfiledWait& wait : trace_.waits) {
      const auto step = step_of_unseen(wait);
      if (!step || by_correlation_.contains(wait.correlation)) continue;
      if (contains(waiting, wait.time.begin)) continue;
      of(counted.each[*step], CallCount::waits) += 1;
      if (wait.is_for_device) of(counted.each[*step], CallCount::device_waits) += 1;
      ++waits_of_driver_;
      ++seen_[{CallCount::waits, "a call of the driver", ""}].seen;
    }
  }

  // Work without a call in the trace. Work of calls before the recording
  // has a smaller number than every call, and is not of the counted steps.
  void count_orphans(CountedProcess& counted) {
    for (const ProfiledWork* work : orphans_) {
      const bool is_before = issued_.empty() || work->correlation < issued_.begin()->first;
      if (work->correlation != 0 && is_before) {
        ++from_before_;
        continue;
      }
      const auto step = step_of_unseen(*work);
      if (!step) continue;
      if (work->kind == WorkKind::copy) {
        // The call's name would say whether it always blocks.
        count_copy(*work, false, counted.each[*step]);
      } else if (work->kind == WorkKind::fill) {
        of(counted.each[*step], CallCount::fills) += 1;
      } else {
        ++kernels_without_launch_;
      }
    }
  }

  struct Key {
    CallCount count;
    std::string call;
    std::string range;
    auto operator<=>(const Key&) const = default;
  };
  struct Seen {
    std::int64_t seen = 0;
    double bytes = 0;
  };

  void add_place(const ProfiledCall& call, CallCount count, std::int64_t bytes) {
    Seen& seen = seen_[{count, std::string(plain_call_name(trace_.name_of(call))), around(call)}];
    ++seen.seen;
    seen.bytes += static_cast<double>(bytes);
  }

  static bool is_of_the_user(std::string_view function) {
    if (function.find(".py(") == std::string_view::npos) return false;
    for (const std::string_view library :
         {"site-packages/", "dist-packages/", "/lib/python", "<frozen"}) {
      if (function.find(library) != std::string_view::npos) return false;
    }
    return !function.starts_with("torch/") && !function.starts_with("threading.py");
  }

  // Ranges around the calls of one thread, which are asked for in order of time.
  struct Around {
    std::size_t next = 0;  // range that may begin next
    std::size_t end = 0;
    std::vector<const ProfiledRange*> open;  // outermost first
  };

  void find_ranges() {
    for (std::size_t index = 0; index < trace_.ranges.size(); ++index) {
      const auto [found, is_new] = around_.try_emplace(trace_.ranges[index].thread);
      if (is_new) found->second.next = index;
      found->second.end = index + 1;
    }
  }

  // The operation and the function around the call: "aten::item of train.py(88): main". The
  // operation is the outermost one, or the innermost annotation; the function is the user's
  // innermost one.
  std::string around(const ProfiledCall& call) {
    const auto found = around_.find(call.thread);
    if (found == around_.end()) return "";
    Around& around = found->second;
    for (; around.next < around.end && trace_.ranges[around.next].time.begin <= call.time.begin;
         ++around.next) {
      const ProfiledRange& range = trace_.ranges[around.next];
      if (range.time.end >= call.time.begin) around.open.push_back(&range);
    }
    std::erase_if(around.open,
                  [&](const ProfiledRange* range) { return range->time.end < call.time.begin; });
    std::string_view operation, function, annotation;
    for (const ProfiledRange* range : around.open) {
      const std::string_view name = trace_.name_of(*range);
      if (range->kind == RangeKind::operation && operation.empty()) operation = name;
      if (range->kind == RangeKind::python && is_of_the_user(name)) function = name;
      if (range->kind == RangeKind::annotation && !name.starts_with(step_of_profiler))
        annotation = name;
    }
    const std::string_view inner = operation.empty() ? annotation : operation;
    if (function.empty()) return std::string(inner);
    return inner.empty() ? std::string(function) : fmt::format("{} of {}", inner, function);
  }

  std::vector<CountedPlace> places() const {
    std::vector<CountedPlace> all;
    for (const auto& [key, seen] : seen_) {
      const auto times = static_cast<double>(seen.seen);
      all.push_back({.count = key.count,
                     .call = key.call,
                     .range = key.range,
                     .a_step = times / static_cast<double>(steps_.size()),
                     .seen = seen.seen,
                     .bytes = seen.bytes / times});
    }
    std::ranges::stable_sort(all, std::greater<>(), &CountedPlace::seen);
    return all;
  }

  void say_what_is_missing(CountedTrace& into) const {
    std::vector<std::string>& notes = into.counted.notes;
    into.counted.unknown[Metric::polls_per_step] =
        "not in a trace: polls through the driver have no record";
    if (kernels_without_launch_ > 0) {
      into.counted.unknown[Metric::launches_per_step] = fmt::format(
          "not in a trace: {} kernels have no launch in it, as those of graphs that the driver "
          "launches",
          kernels_without_launch_);
      notes.push_back(into.counted.unknown[Metric::launches_per_step]);
    }
    if (trace_.waits.empty()) {
      notes.emplace_back(
          "not in a trace: waits, copies' calls and graph launches through the driver (cu...); "
          "enable_cuda_sync_events of torch.profiler records such waits");
    }
    if (waits_of_driver_ > 0)
      notes.push_back(fmt::format("{} waits are of the driver, by the records of the device's side",
                                  waits_of_driver_));
    if (without_work_ > 0)
      notes.push_back(fmt::format(
          "{} launches have no work in the trace: records were lost, and its times say less",
          without_work_));
    if (from_before_ > 0)
      notes.push_back(
          fmt::format("{} pieces of work were launched before the recording", from_before_));
  }

  const ProfilerTrace& trace_;
  const std::vector<Interval>& steps_;
  Meanings meanings_;
  const std::vector<ProfiledCall>& calls_;
  std::unordered_map<std::uint32_t, std::size_t> by_correlation_;
  std::vector<Work> work_of_;                     // by index of the call
  std::map<std::uint32_t, std::int64_t> issued_;  // begin of each call, by its correlation
  Work orphans_;
  IntervalUnion captures_;
  std::set<std::uint32_t> threads_;
  std::map<std::uint32_t, Around> around_;
  std::map<Key, Seen> seen_;
  std::int64_t without_work_ = 0;
  std::int64_t kernels_without_launch_ = 0;
  std::int64_t from_before_ = 0;
  std::int64_t waits_of_driver_ = 0;
};

// Work of one stream runs in its order: what overlaps was not recorded truly.
std::int64_t overlaps_in_streams(const ProfilerTrace& trace) {
  std::map<std::pair<std::int16_t, std::int32_t>, std::int64_t> ends;
  std::int64_t found = 0;
  for (const ProfiledWork& work : trace.work) {
    if (work.from_graph) continue;  // branches of a graph share the number of a stream
    std::int64_t& end = ends.try_emplace({work.device, work.stream}, work.time.begin).first->second;
    if (work.time.begin < end) ++found;
    end = std::max(end, work.time.end);
  }
  return found;
}

}  // namespace

TracedSteps steps_of(const ProfilerTrace& trace, const StepChoice& choice) {
  TracedSteps found = all_steps_of(trace, choice);
  const auto skip = std::min(static_cast<std::size_t>(choice.skip), found.steps.size());
  found.steps.erase(found.steps.begin(), found.steps.begin() + static_cast<std::ptrdiff_t>(skip));
  if (!choice.is_default)
    found.steps.resize(std::min(static_cast<std::size_t>(choice.steps), found.steps.size()));
  found.first = static_cast<std::int64_t>(skip) + 1;
  return found;
}

CountedTrace count_trace(const ProfilerTrace& trace, const StepChoice& choice) {
  CountedTrace result{.steps = steps_of(trace, choice)};
  CountedProcess& counted = result.counted;
  counted.process = static_cast<std::uint64_t>(std::max<std::int64_t>(trace.process, 0));
  if (trace.rank >= 0 && trace.world_size > 1) counted.rank = std::to_string(trace.rank);
  counted.program = trace.file;
  counted.versions = trace.versions;
  TraceCounter counter(trace, result.steps);
  counted.launches_in_all = counter.launches_in_all();
  if (counted.launches_in_all > 0 && trace.work.empty()) {
    throw RequestError(
        Diagnostic{{trace.file, 0, 0},
                   "has calls that launch work, and no work of the device: another tool held "
                   "CUPTI, or its records were lost",
                   "record it again, without another profiler in the process"});
  }
  if (trace.work.empty()) {
    counted.problem = "it launched no work while it was recorded";
    return result;
  }
  counted.marks = result.steps.words;
  const std::int64_t counted_steps = std::ssize(result.steps.steps);
  if (result.steps.steps.empty()) {
    counted.problem =
        "it has no steps that are known: give torch.profiler a schedule and call its step(), or "
        "name what ends them by --step-kernel, --step-range or --step-call";
    return result;
  }
  if (!choice.is_default && counted_steps < choice.steps) {
    counted.problem = fmt::format(
        "it has {}, of which {} are left of the {} that are asked for: "
        "record more, or say --skip-steps and --steps",
        counted.marks, counted_steps, choice.steps);
    return result;
  }
  counted.first_step = result.steps.first;
  counted.steps = counted_steps;
  counter.count(result);
  if (trace.impossible > 0)
    counted.notes.push_back(fmt::format(
        "{} events have no time or a negative one, and are left out", trace.impossible));
  if (const std::int64_t overlaps = overlaps_in_streams(trace); overlaps > 0)
    counted.notes.push_back(fmt::format(
        "{} pieces of work overlap another one of their stream: their times are not true",
        overlaps));
  if (trace.lazy_loads > 0)
    counted.notes.push_back(fmt::format(
        "CUDA loaded modules {} times while it was recorded: record after more steps of warm-up",
        trace.lazy_loads));
  return result;
}

}  // namespace stepgate
