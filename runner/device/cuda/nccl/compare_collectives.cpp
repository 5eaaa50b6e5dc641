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
#include "plan/build/step_names.h"

namespace stepgate {
namespace {

struct PlannedCollective {
  const Operation* operation = nullptr;
  std::int64_t step = 0;  // that the host was at
};

const Collective& collective_of(const PlannedCollective& planned) {
  return std::get<Collective>(planned.operation->action);
}

// In the order in which the host issues them. What a graph has NCCL does not see.
std::vector<PlannedCollective> planned_on(const StepPlan& plan, const IssuedSteps& steps,
                                          int communicator) {
  std::vector<PlannedCollective> all;
  for (std::int64_t step = steps.first; step < steps.first + steps.count; ++step) {
    for (const Operation& operation : plan.operations) {
      const auto* collective = std::get_if<Collective>(&operation.action);
      if (collective == nullptr || collective->communicator != communicator || operation.captured)
        continue;
      if (acts_for(operation, step + operation.ahead, steps.first_of_load))
        all.push_back({&operation, step});
    }
  }
  return all;
}

bool agrees(const Collective& planned, const RecordedCollective& recorded) {
  return nccl_function_of(planned.kind) == recorded.function &&
         nccl_name_of(planned.dtype) == recorded.type &&
         nccl_elements_of(planned) == static_cast<std::int64_t>(recorded.count);
}

// "'reduce bucket 2' of step 12, all-reduce of 1024 ncclBfloat16"
std::string in_words(const PlannedCollective& planned) {
  const Collective& collective = collective_of(planned);
  return fmt::format("'{}' of step {}, {} of {} {}", planned.operation->name, planned.step,
                     nccl_function_of(collective.kind), nccl_elements_of(collective),
                     nccl_name_of(collective.dtype));
}

std::string in_words(const RecordedCollective& recorded) {
  return fmt::format("{} of {} {}", recorded.function, recorded.count, recorded.type);
}

// Empty where both are the same.
std::string difference_on(int communicator, const std::vector<PlannedCollective>& planned,
                          const std::vector<RecordedCollective>& recorded) {
  const auto [expected, found] =
      std::mismatch(planned.begin(), planned.end(), recorded.begin(), recorded.end(),
                    [](const PlannedCollective& one, const RecordedCollective& other) {
                      return agrees(collective_of(one), other);
                    });
  if (expected == planned.end() && found == recorded.end()) return "";
  const std::string plan_says = expected == planned.end() ? "no further one" : in_words(*expected);
  const std::string nccl_says = found == recorded.end() ? "no further one" : in_words(*found);
  return fmt::format(
      "collective {} of communicator {} in the traced steps is {} by the plan and {} by NCCL, "
      "which "
      "enqueued {} of them there, and the plan has {}",
      std::distance(planned.begin(), expected) + 1, communicator, plan_says, nccl_says,
      recorded.size(), planned.size());
}

// In small letters where they are words.
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

void keep_each_once(std::vector<CollectiveAlgorithm>& algorithms) {
  std::ranges::sort(algorithms);
  algorithms.erase(std::unique(algorithms.begin(), algorithms.end()), algorithms.end());
}

}  // namespace

LibraryRecord library_record_of(const StepPlan& plan, const IssuedSteps& steps,
                                const std::vector<std::unique_ptr<NcclCommunicator>>& communicators,
                                const NcclRecord& record) {
  LibraryRecord said{.library = "NCCL"};
  if (!communicators.empty()) said.library += " " + communicators.front()->nccl_version();
  said.unavailable = reason_against_nccl_record();
  if (!said.unavailable.empty()) return said;
  std::map<int, std::vector<RecordedCollective>> recorded;
  for (const RecordedCollective& collective : record.collectives)
    recorded[collective.communicator].push_back(collective);
  for (std::size_t index = 0; index < communicators.size(); ++index) {
    const auto communicator = static_cast<int>(index);
    const std::vector<PlannedCollective> planned = planned_on(plan, steps, communicator);
    const auto number = communicators[index]->recorded_as();
    if (!number) {
      said.unavailable =
          said.library + " did not ask this program for it, which it does from 2.28.3 on";
      return said;
    }
    if (said.difference.empty())
      said.difference = difference_on(communicator, planned, recorded[*number]);
    add_algorithms(planned, recorded[*number], said.algorithms);
    recorded.erase(*number);
  }
  keep_each_once(said.algorithms);
  // Counts of a record that is not whole say nothing.
  if (record.lost > 0) {
    said.difference = fmt::format(
        "NCCL's record is full: {} of its collectives were not written "
        "down beside {} that were",
        record.lost, record.collectives.size());
  }
  return said;
}

}  // namespace stepgate
