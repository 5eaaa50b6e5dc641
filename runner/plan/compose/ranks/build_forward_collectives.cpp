// SPDX-License-Identifier: MIT
#include <string>
#include <utility>
#include <vector>

#include "plan/compose/build_parts.h"
#include "plan/compose/ranks/inserted_operations.h"
#include "plan/compose/ranks/passes.h"
#include "plan/compose/ranks/shard.h"

namespace stepgate {
namespace {

// A mean and a mean of squares for each column of an activation.
std::int64_t statistics_bytes(const Knobs& knobs) {
  return 2 * knobs.model.hidden * word_bytes;
}

class ForwardCollectives {
 public:
  ForwardCollectives(StepBuilder& builder, const RanksKnobs& ranks, std::int64_t reduced_bytes)
      : builder_(builder), ranks_(ranks), stream_(communication_stream(builder)) {
    if (broadcasts()) {
      const std::int64_t words = (ranks.broadcast_bytes + word_bytes - 1) / word_bytes;
      buffers_ = add("buffers of the model", words * word_bytes);
    }
    if (ranks.forward_reduces > 0) statistics_ = add("statistics of all ranks", reduced_bytes);
    issued_ = builder.add_event("the forward pass has come to a collective", 1);
    communicated_ = builder.add_event("a collective of the forward pass is over", 1);
  }

  // Rank 0 sends its buffers before the pass.
  void broadcast_before(const Pass& pass) {
    if (!broadcasts()) return;
    std::vector<Operation>& into = before_[pass.begin];
    const std::int64_t words = builder_.whole(buffers_).bytes / word_bytes;
    enter(into);
    for (std::int64_t call = 0; call < ranks_.broadcast_calls; ++call) {
      const std::int64_t first = words * call / ranks_.broadcast_calls;
      const std::int64_t end = words * (call + 1) / ranks_.broadcast_calls;
      const BufferUse part =
          StepBuilder::part(buffers_, first * word_bytes, (end - first) * word_bytes);
      act(into, stream_, "broadcast buffers " + std::to_string(call),
          Collective{.kind = CollectiveKind::broadcast, .from = part, .to = part});
    }
    leave(into, "wait until the buffers are broadcast");
    is_read(buffers_, pass.begin);
  }

  // Spreads reductions evenly over the pass, which waits for each.
  void reduce_within(const Pass& pass) {
    const auto count = static_cast<std::size_t>(ranks_.forward_reduces);
    for (std::size_t index = 0; index < count; ++index) {
      const std::size_t place = pass.begin + (index + 1) * (pass.end - pass.begin) / (count + 1);
      std::vector<Operation>& into = before_[place];
      const std::string name = "statistics " + std::to_string(index);
      const BufferUse all = builder_.whole(statistics_);
      enter(into);
      act(into, stream_, "reduce " + name, Collective{.from = all, .to = all});
      leave(into, "wait until " + name + " are reduced");
      is_read(statistics_, place);
    }
  }

  void insert() { before_.put_into(builder_.plan().operations); }

 private:
  bool broadcasts() const { return ranks_.broadcast_bytes > 0; }

  int add(const char* name, std::int64_t bytes) {
    return builder_.add({.name = name, .purpose = Purpose::bookkeeping, .bytes = bytes});
  }

  static void act(std::vector<Operation>& into, int stream, std::string name, Action action) {
    into.push_back({.name = std::move(name), .stream = stream, .action = std::move(action)});
  }
  void enter(std::vector<Operation>& into) const {
    act(into, compute_stream, "come to a collective", RecordEvent{issued_});
    act(into, stream_, "wait for the forward pass", StreamWaitsEvent{issued_});
  }
  void leave(std::vector<Operation>& into, std::string wait) const {
    act(into, stream_, "collective is over", RecordEvent{communicated_});
    act(into, compute_stream, std::move(wait), StreamWaitsEvent{communicated_});
  }

  // Lets the model's next operation read what was communicated, as a norm does. So a missing wait
  // is a race.
  void is_read(int buffer, std::size_t place) {
    std::vector<Operation>& operations = builder_.plan().operations;
    while (operations[place].stream != compute_stream) ++place;
    operations[place].keeps.push_back(builder_.whole(buffer));
  }

  StepBuilder& builder_;
  const RanksKnobs& ranks_;
  int stream_;
  int buffers_ = 0, statistics_ = 0;   // buffers of the plan
  int issued_ = 0, communicated_ = 0;  // events
  InsertedOperations before_;
};

}  // namespace

void build_forward_collectives(StepBuilder& builder, const Knobs& knobs, std::size_t first) {
  const RanksKnobs& ranks = knobs.ranks;
  if (ranks.count == 1 || (ranks.broadcast_bytes == 0 && ranks.forward_reduces == 0)) return;
  ForwardCollectives collectives(builder, ranks, statistics_bytes(knobs));
  const std::vector<Pass> passes = forward_passes(builder.plan(), first);
  for (std::size_t part = 0; part < passes.size(); ++part) {
    if (part == 0 || ranks.sync_each_part) collectives.broadcast_before(passes[part]);
    collectives.reduce_within(passes[part]);
  }
  collectives.insert();
}

}  // namespace stepgate
