// SPDX-License-Identifier: MIT
#include "plan/compose/own_gradients.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/require.h"
#include "plan/analyse/access.h"
#include "plan/analyse/operation_uses.h"

namespace stepgate {
namespace {

// A range of bytes of the flat buffer; `end` is not included.
struct Stretch {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

std::optional<int> flat_gradients(const StepPlan& plan) {
  const auto flat = std::ranges::find(plan.buffers, Purpose::gradients, &Buffer::purpose);
  if (flat == plan.buffers.end()) return std::nullopt;
  return static_cast<int>(flat - plan.buffers.begin());
}

// Ascending, disjoint ranges such that every use is within one.
std::vector<Stretch> stretches_of(const StepPlan& plan, int flat) {
  std::vector<Stretch> uses;
  for (const Operation& operation : plan.operations) {
    for (const BufferAccess& access : accesses_of(plan, operation)) {
      const BufferUse& use = access.use;
      if (use.buffer == flat) uses.push_back({use.offset_bytes, use.offset_bytes + use.bytes});
    }
  }
  std::ranges::sort(uses, {}, &Stretch::first);
  std::vector<Stretch> stretches;
  for (const Stretch& use : uses) {
    if (stretches.empty() || use.first >= stretches.back().end)
      stretches.push_back(use);
    else
      stretches.back().end = std::max(stretches.back().end, use.end);
  }
  return stretches;
}

// Returns a name such as "gradient of layer 0 weight". If a range has several tensors, the name has
// the first and the last.
std::string name_of(const StepPlan& plan, const Stretch& stretch) {
  const std::int64_t bytes = bytes_of(plan.dtype);
  std::vector<std::string> names;
  for (const Parameter& parameter : plan.parameters) {
    const bool lies_there = parameter.first * bytes < stretch.end &&
                            (parameter.first + parameter.elements) * bytes > stretch.first;
    if (lies_there) names.push_back(parameter.name);
  }
  require(!names.empty(), "gradients are those of parameters");
  if (names.size() == 1) return "gradient of " + names.front();
  return "gradients of " + names.front() + " to " + names.back();
}

// The buffers of the ranges, created on first use. The first one replaces the flat buffer.
class OwnGradients {
 public:
  OwnGradients(StepPlan& plan, int flat, std::vector<Stretch> stretches)
      : plan_(plan), flat_(flat), like_(buffer_at(plan, flat)), stretches_(std::move(stretches)) {}

  void move(const Operation& of, BufferUse& use) {
    if (use.buffer != flat_) return;
    const auto stretch = std::ranges::find_if(
        stretches_, [&](const Stretch& one) { return use.offset_bytes < one.end; });
    const auto turns = std::ssize(plan_.batch_sizes);
    use.buffer = buffer(*stretch, turns > 1 ? (of.turn + turns - 1) % turns : 0);
    use.offset_bytes -= stretch->first;
  }

  const std::set<int>& made() const { return made_; }

 private:
  int buffer(const Stretch& stretch, std::int64_t turn) {
    const auto [place, is_new] = buffers_.try_emplace({turn, stretch.first}, flat_);
    if (!is_new) return place->second;
    Buffer own = like_;
    own.name = name_of(plan_, stretch);
    if (plan_.batch_sizes.size() > 1) own.name += ", turn " + std::to_string(turn + 1);
    own.bytes = stretch.end - stretch.first;
    if (made_.empty()) {
      plan_.buffers[static_cast<std::size_t>(flat_)] = std::move(own);
    } else {
      place->second = static_cast<int>(plan_.buffers.size());
      plan_.buffers.push_back(std::move(own));
    }
    made_.insert(place->second);
    return place->second;
  }

  StepPlan& plan_;
  int flat_;
  Buffer like_;
  std::vector<Stretch> stretches_;
  std::map<std::pair<std::int64_t, std::int64_t>, int> buffers_;  // by turn and first byte
  std::set<int> made_;
};

}  // namespace

bool gives_gradients_back(const Knobs& knobs) {
  return knobs.memory.zero_grad == ZeroGrad::none && knobs.alloc.when == AllocWhen::op &&
         knobs.ranks.count == 1 && knobs.memory.offload != Offload::weights;
}

std::set<int> give_gradients_their_own(StepPlan& plan) {
  const auto flat = flat_gradients(plan);
  if (!flat) return {};
  std::vector<Stretch> stretches = stretches_of(plan, *flat);
  if (stretches.size() < 2) return {};
  OwnGradients own(plan, *flat, std::move(stretches));
  for (Operation& operation : plan.operations)
    for_each_use(operation, [&](BufferUse& use) { own.move(operation, use); });
  return own.made();
}

}  // namespace stepgate
