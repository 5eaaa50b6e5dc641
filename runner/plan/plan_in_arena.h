// SPDX-License-Identifier: MIT
// For tests: the same step with its buffers in one arena. If that is a race, or computes something
// else, the lifetimes or the packing are wrong.
#pragma once

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "plan/lifetimes.h"
#include "plan/pack_arena.h"

namespace stepgate {

// Moves every buffer that lives for a part of the step and is named by operations, and
// leaves nothing in its place. What an allocator owns stays its own.
inline StepPlan in_arena(StepPlan plan) {
  std::vector<Lifetime> moved;
  for (const Lifetime& live : lifetimes_of(plan).device) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(live.buffer)];
    const bool owned = buffer.allocated_by == AllocatedBy::the_plan;
    if (owned && !live.always() && buffer.purpose != Purpose::workspace) moved.push_back(live);
  }
  const Arena packed = pack_arena(moved);
  std::map<int, std::int64_t> offsets;
  for (std::size_t index = 0; index < moved.size(); ++index)
    offsets[moved[index].buffer] = packed.offsets_bytes[index];
  const int arena = static_cast<int>(plan.buffers.size());
  for (const Lifetime& live : moved) plan.buffers[static_cast<std::size_t>(live.buffer)].bytes = 0;
  plan.buffers.push_back({.name = "arena", .bytes = packed.bytes});
  const auto move = [&](BufferUse& use) {
    const auto found = offsets.find(use.buffer);
    if (found != offsets.end()) use = {arena, found->second + use.offset_bytes, use.bytes};
  };
  for (Operation& operation : plan.operations) {
    if (auto* launch = std::get_if<LaunchKernel>(&operation.action)) {
      for (BufferUse& operand : launch->operands) move(operand);
    } else if (auto* copy = std::get_if<CopyBytes>(&operation.action)) {
      move(copy->to);
      move(copy->from);
    } else if (auto* fill = std::get_if<FillZero>(&operation.action)) {
      move(fill->what);
    }
  }
  return plan;
}

}  // namespace stepgate
