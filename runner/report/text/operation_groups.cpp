// SPDX-License-Identifier: MIT
#include "report/text/operation_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace stepgate {
namespace {

using Groups = std::vector<OperationGroup>;

bool is_work(const Operation& operation) {
  return std::holds_alternative<LaunchKernel>(operation.action) ||
         std::holds_alternative<CopyBytes>(operation.action) ||
         std::holds_alternative<FillZero>(operation.action);
}

std::string group_name(const Operation& operation) {
  return operation.name.substr(0, operation.name.find(": "));
}

Groups by_layer(const StepPlan& plan) {
  Groups groups;
  bool has_work = false;  // the last group
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    const OperationGroup alone{operation.phase, group_name(operation), index, index};
    if (groups.empty()) {
      groups.push_back(alone);
      has_work = is_work(operation);
      continue;
    }
    OperationGroup& last = groups.back();
    const bool same = last.phase == alone.phase && last.name == alone.name;
    // An allocation serves the work that follows it.
    const bool before_work = std::holds_alternative<Allocate>(operation.action);
    const bool beside =
        !is_work(operation) && (last.phase == alone.phase || (has_work && !before_work));
    const bool begins = !has_work && last.phase == alone.phase;
    if (same || beside || begins) {
      last.last = index;
      if (begins && is_work(operation)) last.name = alone.name;
    } else {
      groups.push_back(alone);
      has_work = false;
    }
    has_work = has_work || is_work(operation);
  }
  return groups;
}

// "layer 0" and "layer 7": "layer 0 to 7".
std::string name_from_to(std::string_view from, std::string_view to) {
  if (from == to) return std::string(from);
  const auto blank = from.rfind(' ');
  const bool alike = blank != std::string_view::npos && to.rfind(' ') == blank &&
                     to.substr(0, blank) == from.substr(0, blank);
  if (alike) return fmt::format("{} to {}", from, to.substr(blank + 1));
  return fmt::format("{} .. {}", from, to);
}

OperationGroup merged(Groups::const_iterator begin, Groups::const_iterator end) {
  const OperationGroup& last = *std::prev(end);
  return {begin->phase, name_from_to(begin->name, last.name), begin->first, last.last};
}

// So many groups, each of about as many of the given ones.
void append_merged(Groups& to, Groups::const_iterator begin, Groups::const_iterator end,
                   std::size_t parts) {
  const auto count = static_cast<std::size_t>(end - begin);
  parts = std::min(parts, count);
  for (std::size_t part = 0; part < parts; ++part) {
    const auto from = begin + static_cast<std::ptrdiff_t>(part * count / parts);
    const auto until = begin + static_cast<std::ptrdiff_t>((part + 1) * count / parts);
    to.push_back(merged(from, until));
  }
}

// Every run of one phase in at most so many groups.
Groups with_at_most_a_phase(const Groups& groups, std::size_t most_of_a_phase) {
  Groups fewer;
  for (auto begin = groups.begin(); begin != groups.end();) {
    const auto end = std::find_if(begin, groups.end(), [&](const OperationGroup& group) {
      return group.phase != begin->phase;
    });
    append_merged(fewer, begin, end, most_of_a_phase);
    begin = end;
  }
  return fewer;
}

}  // namespace

std::vector<OperationGroup> operation_groups(const StepPlan& plan, std::size_t most) {
  const Groups groups = by_layer(plan);
  for (std::size_t of_a_phase = most; of_a_phase > 0; --of_a_phase) {
    Groups fewer = with_at_most_a_phase(groups, of_a_phase);
    if (fewer.size() <= most) return fewer;
  }
  Groups fewer;
  append_merged(fewer, groups.begin(), groups.end(), most);
  return fewer;
}

}  // namespace stepgate
