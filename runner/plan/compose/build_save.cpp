// SPDX-License-Identifier: MIT
#include <string>
#include <utility>
#include <vector>

#include "plan/compose/build_input.h"
#include "plan/compose/build_parts.h"

namespace stepgate {
namespace {

bool is_state(const Buffer& buffer) {
  return buffer.memory == MemoryKind::device && buffer.allocated_by == AllocatedBy::the_plan &&
         (buffer.purpose == Purpose::weights || buffer.purpose == Purpose::optimizer_state);
}

std::vector<int> state_of(const StepPlan& plan) {
  std::vector<int> state;
  for (std::size_t index = 0; index < plan.buffers.size(); ++index) {
    if (is_state(plan.buffers[index])) state.push_back(static_cast<int>(index));
  }
  return state;
}

// Inserts a wait for the copies before each group of updates. A graph takes no wait for what
// happens outside of it, so its wait comes before it.
void let_updates_wait(StepPlan& plan, int saved) {
  const std::vector<Operation> before = std::exchange(plan.operations, {});
  std::vector<std::size_t> places;
  for (std::size_t index = 0; index < before.size(); ++index) {
    const bool begins = before[index].phase == Phase::optimizer &&
                        (index == 0 || before[index - 1].phase != Phase::optimizer);
    if (!begins) continue;
    std::size_t place = index;
    while (before[index].captured && place > 0 && before[place - 1].captured) --place;
    if (places.empty() || places.back() != place) places.push_back(place);
  }
  auto next = places.begin();
  for (std::size_t index = 0; index < before.size(); ++index) {
    if (next != places.end() && *next == index) {
      ++next;
      Operation wait{.name = "wait until the state is saved",
                     .phase = Phase::save,
                     .stream = compute_stream,
                     .action = StreamWaitsEvent{saved}};
      wait.every = before[index].every;
      wait.turn = before[index].turn;
      plan.operations.push_back(std::move(wait));
    }
    plan.operations.push_back(before[index]);
  }
}

}  // namespace

void build_save(StepBuilder& builder, const SaveKnobs& save) {
  if (save.every == 0) return;
  const bool beside = save.via == SaveVia::beside;
  int saved = 0;
  if (beside) {
    saved = builder.add_event("state is saved", 1);
    let_updates_wait(builder.plan(), saved);
  }
  builder.enter(Phase::save);
  builder.only_every(save.every);
  if (beside) {
    const int updated = builder.add_event("state is updated", 1);
    builder.act("the state is updated", RecordEvent{updated});
    builder.enter(Phase::save, builder.add_stream(way_out()));
    builder.only_every(save.every);
    builder.act("wait: the state is updated", StreamWaitsEvent{updated});
  }
  const bool blocks = save.via == SaveVia::blocking;
  for (const int from : state_of(builder.plan())) {
    const Buffer& state = builder.plan().buffers[static_cast<std::size_t>(from)];
    const std::string name = state.name;
    const int to = builder.add({.name = name + ", saved",
                                .memory = blocks ? MemoryKind::pageable : MemoryKind::pinned,
                                .purpose = Purpose::staging,
                                .bytes = state.bytes,
                                .slots = state.slots});
    builder.act("save: " + name, CopyBytes{builder.whole(to), builder.whole(from)});
    if (blocks) builder.act("wait for it: " + name, HostWaits{WaitFor::stream});
  }
  if (beside) builder.act("the state is saved", RecordEvent{saved});
  if (save.via == SaveVia::waited)
    builder.act("wait until the state is saved", HostWaits{WaitFor::stream});
}

}  // namespace stepgate
