// SPDX-License-Identifier: MIT
#include "plan/allocate/pack_arena.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/require.h"
#include "plan/analyse/access.h"
#include "plan/analyse/lifetimes.h"
#include "plan/analyse/operation_uses.h"

namespace stepgate {
namespace {

// The order in which buffers are placed: by bytes, by number of operations, or by area, which is
// bytes times operations.
enum class First { largest, longest, largest_area };

std::int64_t weight_of(const Lifetime& live, First first) {
  const std::int64_t operations = live.last - live.first + 1;
  switch (first) {
    case First::largest:
      return live.bytes;
    case First::longest:
      return operations;
    case First::largest_area:
      break;
  }
  return live.bytes / block_alignment_bytes * operations;
}

// Ties are broken so that the result does not depend on the order of the input.
std::vector<std::size_t> in_order_of_placing(std::span<const Lifetime> lifetimes, First first) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t index) {
    const Lifetime& live = lifetimes[index];
    return std::tuple(!live.always(), -weight_of(live, first), -live.bytes, live.first, live.last,
                      live.buffer, live.slots);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

struct Placed {
  std::int64_t begin;
  std::int64_t end;
  int first;
  int last;
};

bool meet(const Lifetime& a, const Placed& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The placed buffers, ordered by offset and split into pieces. Inserting into one array of 20,000
// buffers would move ten thousand of them, which takes longer than finding the position.
class PlacedInOrder {
 public:
  void add(const Placed& placed) {
    if (pieces_.empty()) return pieces_.push_back({placed});
    const auto begins_behind = [](const Placed& a, const Placed& b) { return a.begin < b.begin; };
    const auto behind = std::upper_bound(
        pieces_.begin(), pieces_.end(), placed,
        [&](const Placed& a, const Piece& piece) { return begins_behind(a, piece.front()); });
    const auto at = behind == pieces_.begin() ? pieces_.begin() : behind - 1;
    at->insert(std::upper_bound(at->begin(), at->end(), placed, begins_behind), placed);
    if (std::ssize(*at) < most_in_a_piece) return;
    const auto half = at->begin() + most_in_a_piece / 2;
    Piece second(half, at->end());
    at->erase(half, at->end());
    pieces_.insert(at + 1, std::move(second));
  }

  // The offset of the smallest sufficient gap between buffers that are live at the same time, or
  // their end.
  std::int64_t place_for(const Lifetime& lifetime) const {
    std::int64_t smallest_gap = std::numeric_limits<std::int64_t>::max();
    std::int64_t best = -1;
    std::int64_t free_from = 0;
    for (const Piece& piece : pieces_) {
      for (const Placed& other : piece) {
        if (!meet(lifetime, other)) continue;
        const std::int64_t gap = other.begin - free_from;
        if (gap == lifetime.bytes) return free_from;  // no sufficient gap is smaller
        if (gap > lifetime.bytes && gap < smallest_gap) {
          smallest_gap = gap;
          best = free_from;
        }
        free_from = std::max(free_from, other.end);
      }
    }
    return best >= 0 ? best : free_from;
  }

 private:
  using Piece = std::vector<Placed>;
  static constexpr std::ptrdiff_t most_in_a_piece = 512;
  std::vector<Piece> pieces_;
};

Arena pack(std::span<const Lifetime> lifetimes, First first) {
  Arena arena;
  arena.offsets_bytes.resize(lifetimes.size());
  PlacedInOrder placed_before;
  for (const std::size_t index : in_order_of_placing(lifetimes, first)) {
    const Lifetime& lifetime = lifetimes[index];
    require(lifetime.bytes % block_alignment_bytes == 0, "device memory comes in whole blocks");
    const std::int64_t begin = placed_before.place_for(lifetime);
    const Placed placed{begin, begin + lifetime.bytes, lifetime.first, lifetime.last};
    placed_before.add(placed);
    arena.offsets_bytes[index] = begin;
    arena.bytes = std::max(arena.bytes, placed.end);
  }
  return arena;
}

}  // namespace

Arena pack_arena(std::span<const Lifetime> lifetimes) {
  const std::int64_t bound = most_live_bytes(lifetimes);
  Arena best = pack(lifetimes, First::largest);
  for (const First first : {First::longest, First::largest_area}) {
    if (best.bytes == bound) break;
    Arena other = pack(lifetimes, first);
    if (other.bytes < best.bytes) best = std::move(other);
  }
  return best;
}

std::int64_t most_live_bytes(std::span<const Lifetime> lifetimes) {
  std::map<int, std::int64_t> changes;  // by operation; changes happen before it
  for (const Lifetime& lifetime : lifetimes) {
    changes[lifetime.first] += lifetime.bytes;
    changes[lifetime.last + 1] -= lifetime.bytes;
  }
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const auto& [operation, change] : changes) {
    live += change;
    most = std::max(most, live);
  }
  return most;
}

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
