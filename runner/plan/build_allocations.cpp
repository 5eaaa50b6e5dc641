// SPDX-License-Identifier: MIT
#include "plan/build_allocations.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/access.h"
#include "plan/build_input.h"

namespace stepgate {
namespace {

struct Lifetime {
  std::size_t first;  // operations, inclusive
  std::size_t last;
};

std::map<int, Lifetime> lifetimes_of_activations(const StepPlan& plan) {
  std::map<int, Lifetime> lifetimes;
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    for (const BufferAccess& access : accesses_of(plan, plan.operations[index])) {
      if (plan.buffers[static_cast<std::size_t>(access.use.buffer)].purpose != Purpose::activations)
        continue;
      lifetimes.try_emplace(access.use.buffer, Lifetime{index, index}).first->second.last = index;
    }
  }
  return lifetimes;
}

void stretch_to_the_longest(std::map<int, Lifetime>& lifetimes) {
  Lifetime all{lifetimes.begin()->second};
  for (const auto& [buffer, lifetime] : lifetimes) {
    all.first = std::min(all.first, lifetime.first);
    all.last = std::max(all.last, lifetime.last);
  }
  for (auto& [buffer, lifetime] : lifetimes) lifetime = all;
}

// Beside an operation: in its phase, and in its graph if it is captured.
Operation beside(const Operation& neighbour, std::string name, Action action) {
  Operation operation;
  operation.name = std::move(name);
  operation.phase = neighbour.phase;
  operation.stream = StreamName::compute;
  operation.action = std::move(action);
  operation.captured = neighbour.captured;
  operation.every = neighbour.every;
  operation.turn = neighbour.turn;
  return operation;
}

}  // namespace

void build_allocations(StepPlan& plan, const AllocKnobs& alloc) {
  if (alloc.when == AllocWhen::never) return;
  std::map<int, Lifetime> lifetimes = lifetimes_of_activations(plan);
  if (lifetimes.empty()) return;
  if (alloc.when == AllocWhen::step) stretch_to_the_longest(lifetimes);
  const std::vector<Operation> before = std::exchange(plan.operations, {});
  for (std::size_t index = 0; index < before.size(); ++index) {
    for (const auto& [buffer, lifetime] : lifetimes) {
      if (lifetime.first != index) continue;
      Buffer& allocated = plan.buffers[static_cast<std::size_t>(buffer)];
      allocated.allocated_by = allocated_by(alloc.with);
      plan.operations.push_back(
          beside(before[index], "allocate " + allocated.name, Allocate{buffer}));
    }
    plan.operations.push_back(before[index]);
    for (const auto& [buffer, lifetime] : lifetimes) {
      if (lifetime.last != index) continue;
      const std::string& name = plan.buffers[static_cast<std::size_t>(buffer)].name;
      plan.operations.push_back(beside(before[index], "release " + name, Release{buffer}));
    }
  }
}

}  // namespace stepgate
