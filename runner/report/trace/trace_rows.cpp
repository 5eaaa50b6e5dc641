// SPDX-License-Identifier: MIT
#include "report/trace/trace_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stepgate {
namespace {

// Writes ranks as "0" or "2 to 63"; two adjacent ranks are listed separately.
std::vector<std::string> stretches_of(const std::vector<int>& ranks) {
  std::vector<std::string> words;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last == first + 1) --last;
    words.push_back(first == last ? fmt::format("{}", ranks[first])
                                  : fmt::format("{} to {}", ranks[first], ranks[last]));
    first = last + 1;
  }
  return words;
}

}  // namespace

std::vector<int> rows_without_overlap(std::span<const Stretch> stretches) {
  std::vector<TraceTime> ends;  // by row
  std::vector<int> rows;
  rows.reserve(stretches.size());
  for (const Stretch& stretch : stretches) {
    const auto free =
        std::find_if(ends.begin(), ends.end(), [&](TraceTime end) { return end <= stretch.begin; });
    rows.push_back(static_cast<int>(free - ends.begin()));
    if (free == ends.end()) {
      ends.push_back(stretch.end);
    } else {
      *free = stretch.end;
    }
  }
  return rows;
}

std::vector<int> rows_with_nesting(std::span<const Stretch> stretches) {
  std::vector<std::vector<TraceTime>> open;  // ends of the open stretches, by row
  std::vector<int> rows;
  rows.reserve(stretches.size());
  for (const Stretch& stretch : stretches) {
    std::size_t row = 0;
    for (; row < open.size(); ++row) {
      std::vector<TraceTime>& ends = open[row];
      while (!ends.empty() && ends.back() <= stretch.begin) ends.pop_back();
      if (ends.empty() || ends.back() >= stretch.end) break;
    }
    if (row == open.size()) open.emplace_back();
    open[row].push_back(stretch.end);
    rows.push_back(static_cast<int>(row));
  }
  return rows;
}

std::vector<NumberedStep> steps_of_the_host(const Trace& trace) {
  std::vector<NumberedStep> steps;
  for (const HostSpan& span : trace.spans) {
    if (steps.empty() || steps.back().number < span.step) {
      if (!steps.empty()) steps.back().when.end = span.begin;
      steps.push_back({span.step, {span.begin, span.end}});
    }
    steps.back().when.end = std::max(steps.back().when.end, span.end);
  }
  return steps;
}

std::vector<PhaseOfTheHost> phases_of_the_host(const StepPlan& plan, const Trace& trace) {
  std::vector<PhaseOfTheHost> phases;
  const HostSpan* before = nullptr;  // in the phase that may continue
  for (const HostSpan& span : trace.spans) {
    if (span.operation < 0) {
      before = nullptr;
      continue;
    }
    const Phase phase = operation_at(plan, span.operation).phase;
    if (before != nullptr && before->step == span.step && phases.back().phase == phase) {
      phases.back().when.end = std::max(phases.back().when.end, span.end);
    } else {
      phases.push_back({phase, {span.begin, span.end}});
    }
    before = &span;
  }
  return phases;
}

std::vector<PhaseOfAStream> phases_of_streams(const StepPlan& plan, const Trace& trace) {
  std::vector<PhaseOfAStream> phases;
  std::map<int, std::size_t> last;  // latest phase of each stream
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0) continue;
    const Phase phase = operation_at(plan, work.operation).phase;
    const auto known = last.find(work.stream);
    if (known != last.end()) {
      PhaseOfAStream& before = phases[known->second];
      if (before.phase == phase && before.step == work.step) {
        before.when.end = std::max(before.when.end, work.end);
        continue;
      }
      before.when.end = std::min(before.when.end, work.begin);
    }
    last[work.stream] = phases.size();
    phases.push_back({work.stream, phase, work.step, {work.begin, work.end}});
  }
  return phases;
}

std::map<int, std::string> names_of_streams(const StepPlan& plan, const Trace& trace) {
  std::map<int, std::string> names;
  for (const DeviceWork& work : trace.work) {
    std::string& name = names[work.stream];
    // The work of a graph runs on the graph's own streams, not those in the plan.
    if (!name.empty() || work.operation < 0) continue;
    name = stream_at(plan, operation_at(plan, work.operation).stream).name;
  }
  return names;
}

std::string name_of_ranks(const Trace& trace) {
  if (trace.alike.empty()) return fmt::format("rank {}", trace.rank);
  std::vector<int> ranks = trace.alike;
  ranks.push_back(trace.rank);
  std::ranges::sort(ranks);
  const std::vector<std::string> words = stretches_of(ranks);
  const std::string all_but_last =
      fmt::format("{}", fmt::join(words.begin(), words.end() - 1, ", "));
  return fmt::format("ranks {}{}{}, alike", all_but_last, words.size() > 1 ? " and " : "",
                     words.back());
}

// A trace with arrivals of other ranks has a common clock with them.
bool shares_its_clock(const Trace& trace) {
  return !trace.arrivals.empty();
}

}  // namespace stepgate
