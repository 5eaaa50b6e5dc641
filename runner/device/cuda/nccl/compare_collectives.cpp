// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/compare_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "device/cuda/nccl/nccl_words.h"
#include "plan/analyse/access.h"
#include "plan/compose/step_names.h"

namespace stepgate {
namespace {

struct PlannedCollective {
  const Operation* operation = nullptr;
  std::int64_t step = 0;  // that the host was at, or which of the graphs it is captured into
};

const Collective& collective_of(const PlannedCollective& planned) {
  return std::get<Collective>(planned.operation->action);
}

// The occasion on which collectives were issued to NCCL, for messages.
struct Occasion {
  std::string_view of;      // "step": that the number is of
  std::string_view during;  // "in the traced steps"
  std::string_view did;     // "enqueued"
};
constexpr Occasion in_steps{.of = "step", .during = "in the traced steps", .did = "enqueued"};
constexpr Occasion in_graphs{.of = "graph", .during = "in the step's graph", .did = "captured"};

bool is_of(const Operation& operation, int communicator) {
  const auto* collective = std::get_if<Collective>(&operation.action);
  return collective != nullptr && collective->communicator == communicator;
}

// Returns the plan's collectives in the order in which the host issues them. NCCL does not see
// launches of a graph.
std::vector<PlannedCollective> issued_on(const StepPlan& plan, const IssuedSteps& steps,
                                         int communicator) {
  std::vector<PlannedCollective> all;
  for (std::int64_t step = steps.first; step < steps.first + steps.count; ++step) {
    for (const Operation& operation : plan.operations) {
      if (!is_of(operation, communicator) || operation.captured) continue;
      if (acts_for(operation, step + operation.ahead, steps.first_of_load))
        all.push_back({&operation, step});
    }
  }
  return all;
}

std::vector<PlannedCollective> captured_on(const StepPlan& plan, const IssuedSteps& steps,
                                           int communicator) {
  std::vector<PlannedCollective> all;
  for (std::int64_t graph = 0; graph < steps.graphs; ++graph) {
    for (const Operation& operation : plan.operations) {
      if (is_of(operation, communicator) && operation.captured) all.push_back({&operation, graph});
    }
  }
  return all;
}

bool agrees(const PlannedCollective& one, const RecordedCollective& recorded) {
  const Collective& planned = collective_of(one);
  return nccl_function_of(planned.kind) == recorded.function &&
         nccl_name_of(planned.dtype) == recorded.type &&
         nccl_elements_of(planned) == static_cast<std::int64_t>(recorded.count) &&
         one.operation->captured == recorded.captured;
}

// Describes a collective: "'reduce bucket 2' of step 12, AllReduce of 1024 ncclBfloat16".
std::string in_words(const PlannedCollective& planned, const Occasion& when) {
  const Collective& collective = collective_of(planned);
  return fmt::format("'{}' of {} {}, {} of {} {}", planned.operation->name, when.of, planned.step,
                     nccl_function_of(collective.kind), nccl_elements_of(collective),
                     nccl_name_of(collective.dtype));
}

// Describes a recorded collective; mentions the capture only where it is unexpected.
std::string in_words(const RecordedCollective& recorded, const Occasion& when) {
  const bool should_be_captured = &when == &in_graphs;
  const std::string_view instead = recorded.captured == should_be_captured ? ""
                                   : recorded.captured                     ? ", captured,"
                                                                           : ", not captured,";
  return fmt::format("{} of {} {}{}", recorded.function, recorded.count, recorded.type, instead);
}

// Describes the first difference between plan and record; empty if they agree.
std::string difference_on(int communicator, const Occasion& when,
                          const std::vector<PlannedCollective>& planned,
                          const std::vector<RecordedCollective>& recorded) {
  const auto [expected, found] =
      std::mismatch(planned.begin(), planned.end(), recorded.begin(), recorded.end(), agrees);
  if (expected == planned.end() && found == recorded.end()) return "";
  const std::string plan_says =
      expected == planned.end() ? "no further one" : in_words(*expected, when);
  const std::string nccl_says = found == recorded.end() ? "no further one" : in_words(*found, when);
  return fmt::format(
      "collective {} of communicator {} {} is {} by the plan and {} by NCCL, which {} {} of them "
      "there, and the plan has {}",
      std::distance(planned.begin(), expected) + 1, communicator, when.during, plan_says, nccl_says,
      when.did, recorded.size(), planned.size());
}

// Returns the name in lower case if it is a word.
std::string readable(std::string_view name) {
  constexpr std::string_view words[] = {"RING", "TREE", "SIMPLE"};
  std::string text(name);
  if (std::ranges::find(words, name) == std::end(words)) return text;
  std::ranges::transform(text, text.begin(),
                         [](char letter) { return static_cast<char>(letter - 'A' + 'a'); });
  return text;
}

void add_algorithms(const std::vector<PlannedCollective>& planned,
                    const std::vector<RecordedCollective>& recorded,
                    std::vector<CollectiveAlgorithm>& algorithms) {
  for (std::size_t index = 0; index < std::min(planned.size(), recorded.size()); ++index) {
    const RecordedCollective& how = recorded[index];
    if (how.algorithm == nullptr || how.protocol == nullptr) continue;
    const Collective& what = collective_of(planned[index]);
    algorithms.push_back({.kind = what.kind,
                          .bytes = payload_bytes(what),
                          .algorithm = readable(how.algorithm),
                          .protocol = readable(how.protocol),
                          .channels = how.channels});
  }
}

using ByCommunicator = std::map<int, std::vector<RecordedCollective>>;

ByCommunicator by_communicator(const NcclRecord& record) {
  ByCommunicator all;
  for (const RecordedCollective& collective : record.collectives)
    all[collective.communicator].push_back(collective);
  return all;
}

void keep_each_once(std::vector<CollectiveAlgorithm>& algorithms) {
  std::ranges::sort(algorithms);
  algorithms.erase(std::unique(algorithms.begin(), algorithms.end()), algorithms.end());
}

// Describes collectives with more channels than the limit, where each channel is a thread block.
// Empty if there are none.
std::string more_channels(const RanksPlan& ranks,
                          const std::vector<CollectiveAlgorithm>& algorithms) {
  for (const CollectiveAlgorithm& one : algorithms) {
    const auto& most = ranks.collectives.max_ctas;
    if (!most || one.channels <= *most) continue;
    return fmt::format(
        "NCCL takes {2} thread blocks for the {0} of {1} bytes, and 'ranks.max_ctas' is {3}; look "
        "whether NCCL_MAX_CTAS or NCCL_MIN_CTAS is set",
        name_of(one.kind), one.bytes, one.channels, *most);
  }
  return "";
}

}  // namespace

LibraryRecord library_record_of(const StepPlan& plan, const IssuedSteps& steps,
                                const std::vector<std::unique_ptr<NcclCommunicator>>& communicators,
                                const NcclRecordsOfStep& records) {
  LibraryRecord said{.library = "NCCL"};
  if (!communicators.empty()) said.library += " " + communicators.front()->nccl_version();
  said.unavailable = reason_against_nccl_record();
  if (!said.unavailable.empty()) return said;
  const ByCommunicator captured = by_communicator(records.captured);
  const ByCommunicator issued = by_communicator(records.issued);
  for (std::size_t index = 0; index < communicators.size(); ++index) {
    const auto communicator = static_cast<int>(index);
    const auto number = communicators[index]->recorded_as();
    if (!number) {
      said.unavailable =
          said.library + " did not ask this program for it, which it does from 2.28.3 on";
      return said;
    }
    const auto compare = [&](const Occasion& when, const std::vector<PlannedCollective>& planned,
                             const ByCommunicator& recorded) {
      const auto found = recorded.find(*number);
      const std::vector<RecordedCollective> own =
          found == recorded.end() ? std::vector<RecordedCollective>() : found->second;
      if (said.difference.empty())
        said.difference = difference_on(communicator, when, planned, own);
      add_algorithms(planned, own, said.algorithms);
    };
    const std::vector<PlannedCollective> in_graph = captured_on(plan, steps, communicator);
    said.captured = said.captured || !in_graph.empty();
    compare(in_graphs, in_graph, captured);
    compare(in_steps, issued_on(plan, steps, communicator), issued);
  }
  keep_each_once(said.algorithms);
  if (said.difference.empty()) said.difference = more_channels(plan.ranks, said.algorithms);
  // If records were lost, the counts cannot be compared.
  const std::int64_t lost = records.captured.lost + records.issued.lost;
  if (lost > 0) {
    said.difference = fmt::format(
        "NCCL's record is full: {} of its collectives were not written "
        "down beside {} that were",
        lost, records.captured.collectives.size() + records.issued.collectives.size());
  }
  return said;
}

}  // namespace stepgate
