// SPDX-License-Identifier: MIT
#include "report/text/print_plan.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <string_view>

#include "base/text/units.h"
#include "plan/compose/step_names.h"
#include "report/text/table.h"

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
  bool has_work = false;  // of the last group
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
    // An allocation belongs to the work that follows it.
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

// Joins "layer 0" and "layer 7" to "layer 0 to 7".
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

// Appends the groups, merged into `parts` groups of about equally many each.
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

// Merges each run of groups in one phase into at most `most_of_a_phase` groups.
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

namespace {

constexpr std::size_t most_groups = 18;
constexpr std::size_t most_buffers = 5;
constexpr double bar_width = 24;

using Rows = std::vector<std::vector<std::string>>;

std::string percent_of(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "0 %";
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// Returns the sizes by purpose, the largest first: "weights 16 MiB, batch 2 MiB".
std::string by_purpose(const BytesByPurpose& bytes) {
  std::vector<std::size_t> purposes;
  for (std::size_t purpose = 0; purpose < bytes.size(); ++purpose) {
    if (bytes[purpose] > 0) purposes.push_back(purpose);
  }
  std::stable_sort(purposes.begin(), purposes.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::vector<std::string> words;
  for (const std::size_t purpose : purposes) {
    words.push_back(
        fmt::format("{} {}", name_of(static_cast<Purpose>(purpose)), size_text(bytes[purpose])));
  }
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

class MemoryScreen {
 public:
  MemoryScreen(std::ostream& out, const PlannedStep& step)
      : out_(out), plan_(step), facts_(step.facts()), memory_(facts_.memory), held_(facts_.held) {}

  void print() {
    fmt::print(out_, "{}, variant {}: the device memory of a steady step\n\n", plan_.scenario,
               plan_.variant);
    print_always_live();
    fmt::print(out_, "\n");
    print_operations();
    fmt::print(out_, "  (=: always live; #: the rest; a full bar is what is needed)\n\n");
    print_sums();
    print_largest();
  }

 private:
  const Buffer& buffer_of(const Lifetime& lifetime) const {
    return plan_.buffers[static_cast<std::size_t>(lifetime.buffer)];
  }

  // Prints the memory that is always live, and the reason where it could be temporary.
  void print_always_live() {
    Rows rows{{"always live", size_text(sum_of(memory_.always)), by_purpose(memory_.always)}};
    constexpr std::array of_interest{
        LivenessReason::it_is_carried_over, LivenessReason::it_spans_steps,
        LivenessReason::nothing_orders_it, LivenessReason::the_graph_uses_it,
        LivenessReason::it_is_never_released};
    for (const LivenessReason reason : of_interest) {
      std::int64_t bytes = 0;
      std::vector<std::string> names;
      for (const Lifetime& lifetime : memory_.lifetimes.device) {
        if (lifetime.because != reason) continue;
        bytes += lifetime.bytes;
        names.push_back(fmt::format("'{}'", buffer_of(lifetime).name));
      }
      if (names.empty()) continue;
      const std::size_t others = names.size() - std::min<std::size_t>(names.size(), 3);
      names.resize(names.size() - others);
      rows.push_back({std::string(in_words(reason)), size_text(bytes),
                      fmt::format("{}{}", fmt::join(names, ", "),
                                  others == 0 ? "" : fmt::format(" and {} more", others))});
    }
    print_table(out_, {Align::left, Align::right}, rows);
  }

  // Purposes whose live bytes change between operations.
  std::vector<std::size_t> changing_purposes() const {
    std::vector<std::size_t> purposes;
    for (std::size_t purpose = 0; purpose < purpose_count; ++purpose) {
      const bool changes = std::any_of(
          memory_.live.begin(), memory_.live.end(),
          [&](const BytesByPurpose& live) { return live[purpose] != memory_.always[purpose]; });
      if (changes) purposes.push_back(purpose);
    }
    return purposes;
  }

  // The operation of the group with the most live bytes.
  std::size_t fullest(const OperationGroup& group) const {
    std::size_t found = group.first;
    for (std::size_t index = group.first; index <= group.last; ++index) {
      if (sum_of(memory_.live[index]) > sum_of(memory_.live[found])) found = index;
    }
    return found;
  }

  std::string bar(std::int64_t live) const {
    const auto length = [&](std::int64_t bytes) {
      const auto need = static_cast<double>(std::max<std::int64_t>(memory_.need_bytes, 1));
      return static_cast<std::size_t>(std::llround(bar_width * static_cast<double>(bytes) / need));
    };
    const std::size_t always = length(sum_of(memory_.always));
    return std::string(always, '=') + std::string(length(live) - always, '#');
  }

  void print_operations() {
    const std::vector<std::size_t> purposes = changing_purposes();
    std::vector<Align> alignment{Align::left, Align::left, Align::right};
    Rows rows{{"phase", "operations", "ops"}};
    for (const std::size_t purpose : purposes) {
      rows[0].emplace_back(name_of(static_cast<Purpose>(purpose)));
      alignment.push_back(Align::right);
    }
    rows[0].insert(rows[0].end(), {"all live", ""});
    alignment.push_back(Align::right);
    const OperationGroup* before = nullptr;
    const std::vector<OperationGroup> groups = operation_groups(plan_, most_groups);
    for (const OperationGroup& group : groups) {
      const BytesByPurpose& live = memory_.live[fullest(group)];
      const bool same_phase = before != nullptr && before->phase == group.phase;
      std::vector<std::string> row{same_phase ? "" : std::string(name_of(group.phase)), group.name,
                                   fmt::format("{}", group.last - group.first + 1)};
      for (const std::size_t purpose : purposes) row.push_back(size_text(live[purpose]));
      const bool peak =
          group.first <= memory_.peak_operation && memory_.peak_operation <= group.last;
      row.push_back(size_text(sum_of(live)));
      row.push_back(bar(sum_of(live)) + (peak ? " < peak" : ""));
      rows.push_back(std::move(row));
      before = &group;
    }
    print_table(out_, alignment, rows);
  }

  std::string peak_in_words() const {
    if (plan_.operations.empty()) return "";
    return fmt::format("the most live at once: '{}' ({}), operation {} of {}",
                       plan_.operations[memory_.peak_operation].name,
                       name_of(plan_.operations[memory_.peak_operation].phase),
                       memory_.peak_operation + 1, plan_.operations.size());
  }

  std::string saved_in_words() const {
    constexpr std::int64_t too_small = 1000;  // a smaller share of the total is rounding
    const std::int64_t saved = held_.most_bytes - memory_.arena.bytes;
    if (saved * too_small < held_.most_bytes) return "nothing";
    return fmt::format("{}, {}", size_text(saved), percent_of(saved, held_.most_bytes));
  }

  void print_sums() {
    const std::int64_t arena = memory_.arena.bytes;
    Rows rows{{"need", size_text(memory_.need_bytes), peak_in_words()},
              {"arena", size_text(arena),
               fmt::format("one piece, places planned from the lifetimes: {} above need",
                           percent_of(arena - memory_.need_bytes, memory_.need_bytes))},
              {"held", size_text(held_.most_bytes),
               "as the plan is, every buffer its own; an arena would save " + saved_in_words()}};
    if (plan_.allocator_simulation) {
      const AllocatorSimulation& simulation = *plan_.allocator_simulation;
      rows.push_back({"served", size_text(simulation.peak_reserved_bytes),
                      fmt::format("reserved by the step's allocator, {} live in its blocks; {} of "
                                  "{} steps refused",
                                  size_text(simulation.peak_live_bytes), simulation.refused_steps,
                                  simulation.steps)});
    }
    if (const double growth = facts_.growth_bytes_per_step; growth > 0) {
      rows.push_back({"growth", rounded_bytes_text(growth), "a step, never released"});
    }
    if (memory_.pinned_bytes > 0) {
      rows.push_back({"pinned", size_text(memory_.pinned_bytes), "of host memory at once"});
    }
    print_table(out_, {Align::left, Align::right}, rows);
  }

  void print_largest() {
    std::vector<Lifetime> live;
    const auto peak = static_cast<int>(memory_.peak_operation);
    for (const Lifetime& lifetime : memory_.lifetimes.device) {
      if (lifetime.first <= peak && peak <= lifetime.last) live.push_back(lifetime);
    }
    std::stable_sort(live.begin(), live.end(),
                     [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; });
    fmt::print(out_, "\nthe largest of {} buffers at the peak\n", live.size());
    Rows rows;
    for (const Lifetime& lifetime : live) {
      if (rows.size() == most_buffers) break;
      const Buffer& buffer = buffer_of(lifetime);
      const std::string slots =
          lifetime.slots == 1 ? "" : fmt::format(" ({} slots)", lifetime.slots);
      rows.push_back({size_text(lifetime.bytes), std::string(name_of(buffer.purpose)),
                      buffer.name + slots, when_in_words(lifetime)});
    }
    print_table(out_, {Align::right}, rows);
  }

  std::string when_in_words(const Lifetime& lifetime) const {
    if (lifetime.always() || plan_.operations.empty())
      return fmt::format("always: {}", in_words(lifetime.because));
    const auto name = [&](int operation) {
      return plan_.operations[static_cast<std::size_t>(operation)].name;
    };
    if (lifetime.first == lifetime.last) return fmt::format("'{}'", name(lifetime.first));
    return fmt::format("'{}' to '{}'", name(lifetime.first), name(lifetime.last));
  }

  std::ostream& out_;
  const StepPlan& plan_;
  const PlanFacts& facts_;
  const StepMemory& memory_;
  const HeldMemory& held_;
};

}  // namespace

void print_memory(std::ostream& out, const PlannedStep& step) {
  MemoryScreen(out, step).print();
}

}  // namespace stepgate
