// SPDX-License-Identifier: MIT
#include "plan/allocate/plan_in_arena.h"

#include <algorithm>
#include <map>
#include <vector>

#include "plan/allocate/pack_arena.h"
#include "plan/analyse/access.h"
#include "plan/analyse/lifetimes.h"
#include "plan/analyse/operation_uses.h"

namespace stepgate {
namespace {

using Offsets = std::map<int, std::int64_t>;  // in the arena, by buffer

bool may_move(const StepPlan& plan, const Lifetime& live) {
  const Buffer& buffer = plan.buffers[static_cast<std::size_t>(live.buffer)];
  return is_temporary(buffer) && buffer.allocated_by == AllocatedBy::the_plan && !live.always();
}

struct Places {
  Offsets offsets;
  std::int64_t bytes = 0;
};

Places places_of(const StepPlan& turn) {
  std::vector<Lifetime> moved;
  for (const Lifetime& live : lifetimes_of(turn).device) {
    if (may_move(turn, live)) moved.push_back(live);
  }
  const Arena packed = pack_arena(moved);
  Places places{.offsets = {}, .bytes = packed.bytes};
  for (std::size_t index = 0; index < moved.size(); ++index)
    places.offsets[moved[index].buffer] = packed.offsets_bytes[index];
  return places;
}

void move_uses(Operation& operation, const Offsets& offsets, int arena) {
  for_each_use(operation, [&](BufferUse& use) {
    const auto found = offsets.find(use.buffer);
    if (found == offsets.end()) return;
    use.buffer = arena;
    use.offset_bytes += found->second;
  });
}

}  // namespace

StepPlan in_arena(StepPlan plan) {
  const auto turns = std::max<std::int64_t>(1, std::ssize(plan.batch_sizes));
  const int arena = static_cast<int>(plan.buffers.size());
  std::vector<Places> places;
  std::int64_t bytes = 0;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    places.push_back(places_of(turn_alone(plan, turn)));
    bytes = std::max(bytes, places.back().bytes);
  }
  for (Operation& operation : plan.operations) {
    const bool of_one_turn = turns > 1 && operation.every == turns;
    const std::int64_t turn = of_one_turn ? (operation.turn + turns - 1) % turns : 0;
    move_uses(operation, places[static_cast<std::size_t>(turn)].offsets, arena);
  }
  for (const auto& [buffer, offset] : places.front().offsets)
    plan.buffers[static_cast<std::size_t>(buffer)].bytes = 0;
  plan.buffers.push_back({.name = "arena", .purpose = Purpose::activations, .bytes = bytes});
  return plan;
}

}  // namespace stepgate
