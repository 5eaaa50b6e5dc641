// SPDX-License-Identifier: MIT
#include "measure/trace/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/text/number_words.h"

namespace stepgate {
namespace {

bool is_compared(const DeviceWork& work, const StepPlan& plan) {
  return work.operation >= 0 && !work.from_graph &&
         !std::holds_alternative<Collective>(operation_at(plan, work.operation).action);
}

int planned_stream(const DeviceWork& work, const StepPlan& plan) {
  return operation_at(plan, work.operation).stream;
}

struct Pairing {
  int planned = 0;
  int traced = 0;
  std::int64_t pieces = 0;
};

// Returns the plan's stream of each number in the trace, as far as a stream has one.
std::map<int, int> streams_by_number(const Trace& trace, const StepPlan& plan) {
  std::map<std::pair<int, int>, std::int64_t> pieces;
  for (const DeviceWork& work : trace.work) {
    if (is_compared(work, plan)) ++pieces[{planned_stream(work, plan), work.stream}];
  }
  std::vector<Pairing> pairings;
  for (const auto& [pair, count] : pieces) pairings.push_back({pair.first, pair.second, count});
  std::ranges::stable_sort(pairings, std::ranges::greater{}, &Pairing::pieces);
  std::map<int, int> stream_of;
  for (const Pairing& pairing : pairings) {
    const bool is_taken = std::ranges::any_of(
        stream_of, [&](const auto& known) { return known.second == pairing.planned; });
    if (!is_taken) stream_of.emplace(pairing.traced, pairing.planned);
  }
  return stream_of;
}

// "9 kernels", "1 copy".
std::string pieces_in_words(std::int64_t count, WorkKind kind) {
  if (kind == WorkKind::copy) return count == 1 ? "1 copy" : fmt::format("{} copies", count);
  return counted_in_words(count, kind == WorkKind::fill ? "fill" : "kernel");
}

}  // namespace

std::string difference_of_streams(const Trace& trace, const StepPlan& plan) {
  const std::map<int, int> stream_of = streams_by_number(trace, plan);
  std::map<int, std::vector<const DeviceWork*>> elsewhere;  // by operation
  for (const DeviceWork& work : trace.work) {
    if (!is_compared(work, plan)) continue;
    const auto known = stream_of.find(work.stream);
    if (known == stream_of.end() || known->second != planned_stream(work, plan))
      elsewhere[work.operation].push_back(&work);
  }
  if (elsewhere.empty()) return "";
  const auto& [index, pieces] = *elsewhere.begin();
  const DeviceWork& first = *pieces.front();
  const Operation& operation = operation_at(plan, index);
  const std::string& planned = stream_at(plan, operation.stream).name;
  const auto known = stream_of.find(first.stream);
  const std::string where = known == stream_of.end()
                                ? fmt::format("on another stream than the plan's '{}'", planned)
                                : fmt::format("on the stream '{}' and not on the plan's '{}'",
                                              stream_at(plan, known->second).name, planned);
  std::string words = fmt::format(
      "{} of '{}' ran {}", pieces_in_words(std::ssize(pieces), first.kind), operation.name, where);
  if (const std::int64_t more = std::ssize(elsewhere) - 1; more > 0)
    words += fmt::format(", and so did work of {}", counted_in_words(more, "other operation"));
  return words;
}

}  // namespace stepgate
