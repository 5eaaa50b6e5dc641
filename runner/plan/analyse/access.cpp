// SPDX-License-Identifier: MIT
#include "plan/analyse/access.h"

#include <algorithm>
#include <set>

#include "base/require.h"
#include "kernels/catalogue.h"

namespace stepgate {
namespace {

std::vector<BufferAccess> whole_slot(const StepPlan& plan, int buffer, Access access) {
  return {{{buffer, 0, buffer_at(plan, buffer).bytes}, access}};
}

struct Accesses {
  const StepPlan& plan;

  std::vector<BufferAccess> operator()(const LaunchKernel& launch) const {
    const auto fault = fault_of(launch);
    require(!fault, fault.value_or(""));
    for (const BufferUse& use : launch.operands)
      require(use.offset_bytes >= 0 &&
                  use.offset_bytes + use.bytes <= buffer_at(plan, use.buffer).bytes,
              "an operand lies in its buffer");
    const Kernel& launched = kernel(launch.kernel);
    std::vector<BufferAccess> accesses;
    for (std::size_t index = 0; index < launch.operands.size(); ++index) {
      accesses.push_back(
          {launch.operands[index], access_of(launched.operands[index], launch.attributes)});
    }
    return accesses;
  }
  std::vector<BufferAccess> operator()(const CopyBytes& copy) const {
    return {{copy.from, Access::read}, {copy.to, Access::write}};
  }
  std::vector<BufferAccess> operator()(const FillZero& fill) const {
    return {{fill.what, Access::write}};
  }
  std::vector<BufferAccess> operator()(const HostCopies& copy) const {
    return {{copy.from, Access::read}, {copy.to, Access::write}};
  }
  // A prefetch moves pages, but their content stays.
  std::vector<BufferAccess> operator()(const Prefetch& prefetch) const {
    return {{prefetch.what, Access::read}};
  }
  std::vector<BufferAccess> operator()(const Allocate& allocate) const {
    return whole_slot(plan, allocate.buffer, Access::write);
  }
  std::vector<BufferAccess> operator()(const Release& release) const {
    return whole_slot(plan, release.buffer, Access::write);
  }
  std::vector<BufferAccess> operator()(const RegisterHost& lock) const {
    return whole_slot(plan, lock.buffer, Access::write);
  }
  std::vector<BufferAccess> operator()(const UnregisterHost& unlock) const {
    return whole_slot(plan, unlock.buffer, Access::write);
  }
  std::vector<BufferAccess> operator()(const EmptyCache&) const { return {}; }
  std::vector<BufferAccess> operator()(const RecordEvent&) const { return {}; }
  std::vector<BufferAccess> operator()(const StreamWaitsEvent&) const { return {}; }
  std::vector<BufferAccess> operator()(const HostWaits&) const { return {}; }
  std::vector<BufferAccess> operator()(const TakeBatch&) const { return {}; }
  std::vector<BufferAccess> operator()(const HostWork&) const { return {}; }
  std::vector<BufferAccess> operator()(const Collective& collective) const {
    return {{collective.from, Access::read}, {collective.to, Access::write}};
  }
};

// Operands may overlap only if one is written exactly in place of the other and the kernel allows
// that.
bool may_share(const LaunchKernel& launch, std::size_t first, std::size_t second) {
  const auto operands = kernel(launch.kernel).operands;
  const auto written = [&](std::size_t index) {
    return access_of(operands[index], launch.attributes) != Access::read;
  };
  if (!written(first) && !written(second)) return true;
  const BufferUse& a = launch.operands[first];
  const BufferUse& b = launch.operands[second];
  const bool same = a.offset_bytes == b.offset_bytes && a.bytes == b.bytes;
  return same && (operands[first].may_replace == second || operands[second].may_replace == first);
}

// The buffer that the operation allocates or releases; -1 for any other operation.
int buffer_that_comes_or_goes(const Operation& operation) {
  if (const auto* allocate = std::get_if<Allocate>(&operation.action)) return allocate->buffer;
  if (const auto* release = std::get_if<Release>(&operation.action)) return release->buffer;
  return -1;
}

std::set<int> released_by(const StepPlan& plan) {
  std::set<int> released;
  for (const Operation& operation : plan.operations) {
    if (const auto* release = std::get_if<Release>(&operation.action))
      released.insert(release->buffer);
  }
  return released;
}

// Buffers that are allocated over several steps. In a plan of a single step they always exist.
std::set<int> allocated_over_steps(const StepPlan& plan, const std::set<int>& released) {
  std::set<int> over_steps;
  for (const Operation& operation : plan.operations) {
    const auto* allocate = std::get_if<Allocate>(&operation.action);
    if (allocate && allocate->steps > 1 && released.contains(allocate->buffer))
      over_steps.insert(allocate->buffer);
  }
  return over_steps;
}

}  // namespace

bool overlap(const BufferUse& a, const BufferUse& b) {
  return a.buffer == b.buffer && a.offset_bytes < b.offset_bytes + b.bytes &&
         b.offset_bytes < a.offset_bytes + a.bytes;
}

std::vector<BufferAccess> accesses_of(const StepPlan& plan, const Operation& operation) {
  std::vector<BufferAccess> accesses = visit_action(Accesses{plan}, operation.action);
  for (const BufferUse& kept : operation.keeps) accesses.push_back({kept, Access::read});
  return accesses;
}

std::optional<std::string_view> fault_of(const LaunchKernel& launch) {
  const Kernel& launched = kernel(launch.kernel);
  if (launched.operands.size() != launch.operands.size())
    return "a launch has its kernel's operands";
  for (std::size_t index = 0; index < launch.operands.size(); ++index) {
    const std::int64_t declared =
        operand_bytes(launched.operands[index], launch.shape, launch.dtype, launch.attributes);
    if (launch.operands[index].bytes != declared)
      return "an operand is as large as its kernel declares";
    for (std::size_t before = 0; before < index; ++before) {
      if (overlap(launch.operands[before], launch.operands[index]) &&
          !may_share(launch, before, index))
        return "what a kernel writes lies over no other operand";
    }
  }
  return std::nullopt;
}

KernelWork work_of(const LaunchKernel& launch) {
  return work_of(kernel(launch.kernel), launch.shape, launch.dtype, launch.attributes);
}

bool is_pageable(const StepPlan& plan, const CopyBytes& copy) {
  return buffer_at(plan, copy.from.buffer).memory == MemoryKind::pageable ||
         buffer_at(plan, copy.to.buffer).memory == MemoryKind::pageable;
}

bool uses_managed_memory(const StepPlan& plan) {
  return std::any_of(plan.buffers.begin(), plan.buffers.end(),
                     [](const Buffer& buffer) { return buffer.memory == MemoryKind::managed; });
}

bool uses_workspace(const Operation& operation) {
  const auto* launch = std::get_if<LaunchKernel>(&operation.action);
  return launch != nullptr && kernel(launch->kernel).library.uses_workspace;
}

StepPlan turn_alone(const StepPlan& plan, std::int64_t turn) {
  const auto turns = static_cast<std::int64_t>(plan.batch_sizes.size());
  if (turns <= 1) return plan;
  StepPlan alone = plan;
  alone.batch_sizes = {plan.batch_sizes[static_cast<std::size_t>(turn)]};
  alone.operations.clear();
  const std::set<int> released = released_by(plan);
  const std::set<int> over_steps = allocated_over_steps(plan, released);
  const auto forgotten = [&](const Operation& operation) {
    const auto* allocate = std::get_if<Allocate>(&operation.action);
    return allocate && !released.contains(allocate->buffer);
  };
  // Memory that other turns allocate and never release exists from the start. Other buffers that
  // only they allocate keep their indices and are never allocated.
  for (const Operation& operation : plan.operations) {
    const bool of_another = operation.every == turns && operation.turn != (turn + 1) % turns;
    if (of_another && forgotten(operation)) alone.operations.push_back(operation);
  }
  for (const Operation& operation : plan.operations) {
    const bool of_turns = operation.every == turns;
    if (of_turns && operation.turn != (turn + 1) % turns) continue;
    if (over_steps.contains(buffer_that_comes_or_goes(operation))) continue;
    Operation& kept = alone.operations.emplace_back(operation);
    if (!of_turns || forgotten(operation)) continue;
    kept.every = 1;
    kept.turn = 0;
  }
  return alone;
}

StepPlan largest_turn(const StepPlan& plan) {
  const auto& sizes = plan.batch_sizes;
  if (sizes.empty()) return plan;
  return turn_alone(plan, std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
}

int prefetch_depth(const StepPlan& plan) {
  int furthest = 0;
  for (const Operation& operation : plan.operations) furthest = std::max(furthest, operation.ahead);
  return furthest;
}

}  // namespace stepgate
