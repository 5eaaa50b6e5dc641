// SPDX-License-Identifier: MIT
#include "plan/compose/ranks/gather_weights.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/require.h"
#include "plan/analyse/operation_uses.h"
#include "plan/compose/ranks/inserted_operations.h"
#include "plan/compose/ranks/shard.h"

namespace stepgate {
namespace {

struct Visit {
  std::size_t unit = 0;
  std::size_t first = 0;  // first and last operation that uses the unit
  std::size_t last = 0;
  Phase phase = Phase::forward;  // of the first
  std::size_t pass = 0;
  int buffer = 0;
};

class Gathering {
 public:
  Gathering(StepBuilder& builder, const Knobs& knobs, const LearnedParts& learned,
            std::size_t first)
      : builder_(builder),
        plan_(builder.plan()),
        learned_(learned),
        units_(updated_pieces(knobs, learned.tensors, learned.elements)),
        stream_(gathering_stream(builder, knobs)),
        communicator_(static_cast<int>(knobs.ranks.communicators) - 1),
        ahead_(static_cast<std::size_t>(knobs.ranks.gather_ahead)),
        element_bytes_(bytes_of(builder.plan().dtype)) {
    find_visits(first);
    for (std::size_t index = 0; index < visits_.size(); ++index) give_memory(index);
    for (std::size_t index = 0; index < visits_.size(); ++index) gather(index, first);
    before_.put_into(plan_.operations);
    Buffer& weights = plan_.buffers[static_cast<std::size_t>(learned.weights)];
    weights.bytes /= knobs.ranks.count;
    for (const UpdatedPiece& unit : units_) weights.pieces.push_back(unit.flat);
  }

 private:
  bool uses_weights(const BufferUse& use) const { return use.buffer == learned_.weights; }

  std::size_t unit_of(const BufferUse& use) const {
    const std::int64_t first = use.offset_bytes / element_bytes_;
    const auto unit = std::ranges::find_if(units_, [&](const UpdatedPiece& one) {
      const Bucket& whole = one.bucket;
      return whole.first <= first && first < whole.first + whole.elements;
    });
    require(
        unit != units_.end() && use.offset_bytes + use.bytes <=
                                    (unit->bucket.first + unit->bucket.elements) * element_bytes_,
        "what a kernel reads of the weights is of one unit");
    return static_cast<std::size_t>(unit - units_.begin());
  }

  // Finds all visits, in the order of their first uses.
  void find_visits(std::size_t first) {
    std::size_t pass = 0;
    std::optional<Phase> phase;
    for (std::size_t index = first; index < plan_.operations.size(); ++index) {
      Operation& operation = plan_.operations[index];
      if (operation.phase == Phase::optimizer) continue;
      for_each_use(operation, [&](const BufferUse& use) {
        if (!uses_weights(use)) return;
        if (phase && *phase != operation.phase) ++pass;
        phase = operation.phase;
        visit(unit_of(use), index, operation.phase, pass);
      });
    }
  }
  void visit(std::size_t unit, std::size_t index, Phase phase, std::size_t pass) {
    const auto same_pass = [&](const Visit& one) { return one.unit == unit && one.pass == pass; };
    auto found = std::ranges::find_if(visits_, same_pass);
    if (found == visits_.end() && !visits_.empty() && visits_.back().unit == unit)
      found = std::prev(visits_.end());
    if (found == visits_.end()) {
      visits_.push_back(
          {.unit = unit, .first = index, .last = index, .phase = phase, .pass = pass});
      return;
    }
    found->last = index;
  }

  void give_memory(std::size_t index) {
    Visit& visit = visits_[index];
    const Bucket& whole = units_[visit.unit].bucket;
    visit.buffer = builder_.add({.name = "weights of visit " + std::to_string(index),
                                 .purpose = Purpose::activations,
                                 .bytes = whole.elements * element_bytes_,
                                 .dtype = plan_.dtype});
    for (std::size_t place = visit.first; place <= visit.last; ++place) {
      if (plan_.operations[place].phase == Phase::optimizer) continue;
      for_each_use(plan_.operations[place], [&](BufferUse& use) {
        if (!uses_weights(use) || unit_of(use) != visit.unit) return;
        use.buffer = visit.buffer;
        use.offset_bytes -= whole.first * element_bytes_;
      });
    }
  }

  // The operation before which a gather is issued. That is the begin of the visit `ahead_` visits
  // earlier, after the end of the visit before that. So only that unit and those ahead of it are in
  // memory.
  std::size_t place_of(std::size_t index, std::size_t first) const {
    std::size_t place = index < ahead_ ? first : visits_[index - ahead_].first;
    if (index > ahead_) place = std::max(place, visits_[index - ahead_ - 1].last + 1);
    return std::min(place, visits_[index].first);
  }

  void gather(std::size_t index, std::size_t first) {
    const Visit& visit = visits_[index];
    const UpdatedPiece& unit = units_[visit.unit];
    const std::string name = "weights of visit " + std::to_string(index);
    const int begin = builder_.add_event(name + " may come", 1);
    const int gathered = builder_.add_event(name + " are there", 1);
    const std::size_t place = place_of(index, first);
    std::vector<Operation>& ahead = before_[place];
    const Phase phase = plan_.operations[place].phase;
    const auto act = [&](int stream, std::string words, Action action) {
      ahead.push_back({.name = std::move(words),
                       .phase = phase,
                       .stream = stream,
                       .action = std::move(action)});
    };
    act(compute_stream, name + " may come", RecordEvent{begin});
    act(stream_, "wait until " + name + " may come", StreamWaitsEvent{begin});
    act(stream_, "gather " + name,
        Collective{.kind = CollectiveKind::all_gather,
                   .from = StepBuilder::part(learned_.weights, unit.packed * element_bytes_,
                                             unit.flat.elements * element_bytes_),
                   .to = builder_.whole(visit.buffer),
                   .dtype = plan_.dtype,
                   .communicator = communicator_});
    act(stream_, name + " are there", RecordEvent{gathered});
    before_[visit.first].push_back(
        {.name = "wait for " + name, .phase = visit.phase, .action = StreamWaitsEvent{gathered}});
  }

  StepBuilder& builder_;
  StepPlan& plan_;
  const LearnedParts& learned_;
  std::vector<UpdatedPiece> units_;
  int stream_;
  int communicator_;
  std::size_t ahead_;  // number of visits
  std::int64_t element_bytes_;
  std::vector<Visit> visits_;
  InsertedOperations before_;
};

}  // namespace

void gather_weights(StepBuilder& builder, const Knobs& knobs, const LearnedParts& learned,
                    std::size_t first) {
  Gathering(builder, knobs, learned, first);
}

}  // namespace stepgate
