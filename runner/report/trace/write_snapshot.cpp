// SPDX-License-Identifier: MIT
#include "report/trace/write_snapshot.h"

#include <fmt/format.h>

#include <map>

#include "plan/compose/step_names.h"
#include "report/trace/pickle.h"

namespace stepgate {
namespace {

std::string_view action_text(MemoryAction action) {
  switch (action) {
    case MemoryAction::take_segment:
      return "segment_alloc";
    case MemoryAction::give_back_segment:
      return "segment_free";
    case MemoryAction::allocate:
      return "alloc";
    case MemoryAction::release:
      return "free_requested";
    case MemoryAction::refuse:
      break;
  }
  return "oom";
}

class SnapshotWriter {
 public:
  SnapshotWriter(const StepPlan& plan, const MemoryHistory& history)
      : plan_(plan), history_(history) {
    for (const MemoryEvent& event : history.events) {
      if (event.action == MemoryAction::allocate) last_[event.address] = &event;
    }
  }

  std::string write() {
    pickle_.begin_dict();
    pickle_.text("segments").begin_list();
    for (const SegmentState& segment : history_.segments) write_segment(segment);
    pickle_.end_list();
    pickle_.text("device_traces").begin_list().begin_list();  // one list a device
    for (std::size_t number = 0; number < history_.events.size(); ++number) {
      const MemoryEvent& event = history_.events[number];
      write_event(event, action_text(event.action), static_cast<std::int64_t>(2 * number));
      if (event.action == MemoryAction::release)
        write_event(event, "free_completed", static_cast<std::int64_t>(2 * number + 1));
    }
    pickle_.end_list().end_list();
    pickle_.text("allocator_settings").begin_dict().end_dict();
    pickle_.text("external_annotations").begin_list().end_list();
    pickle_.end_dict();
    return pickle_.finish();
  }

 private:
  void write_frames(const MemoryEvent* event) {
    pickle_.text("frames").begin_list();
    if (event != nullptr && event->buffer >= 0) {
      const std::string& buffer = plan_.buffers[static_cast<std::size_t>(event->buffer)].name;
      frame(buffer, "buffer");
      if (event->operation >= 0) {
        const Operation& operation = plan_.operations[static_cast<std::size_t>(event->operation)];
        frame(operation.name, std::string(name_of(operation.phase)));
        frame(fmt::format("step {}", event->step), plan_.scenario + ", " + plan_.variant);
      } else {
        frame("before the first step", plan_.scenario + ", " + plan_.variant);
      }
    }
    pickle_.end_list();
  }

  void frame(std::string_view name, std::string_view file) {
    pickle_.begin_dict().entry("name", name).entry("filename", file).entry("line", 0).end_dict();
  }

  void write_event(const MemoryEvent& event, std::string_view action, std::int64_t time) {
    pickle_.begin_dict().entry("action", action);
    const bool refused = event.action == MemoryAction::refuse;
    if (refused) {
      pickle_.entry("device_free", event.free_bytes);
    } else {
      pickle_.text("addr").address(event.address);
    }
    pickle_.entry("size", event.bytes).entry("stream", event.stream).entry("time_us", time);
    write_frames(&event);
    pickle_.end_dict();
  }

  void write_segment(const SegmentState& segment) {
    std::int64_t held = 0;
    std::int64_t active = 0;
    std::int64_t requested = 0;
    for (const BlockState& block : segment.blocks) {
      if (block.use == BlockUse::live) held += block.bytes;
      if (block.use != BlockUse::free) active += block.bytes;
      requested += block.requested_bytes;
    }
    pickle_.begin_dict().entry("device", 0);
    pickle_.text("address").address(segment.address);
    pickle_.entry("total_size", segment.bytes)
        .entry("allocated_size", held)
        .entry("active_size", active)
        .entry("requested_size", requested)
        .entry("stream", segment.stream)
        .entry("segment_type", segment.pool == PoolSize::small ? "small" : "large");
    pickle_.text("segment_pool_id").pair(0, segment.capture_pool.value_or(0));
    pickle_.text("is_expandable").truth(segment.kind == SegmentKind::expandable);
    write_frames(nullptr);
    pickle_.text("blocks").begin_list();
    for (const BlockState& block : segment.blocks) write_block(block);
    pickle_.end_list().end_dict();
  }

  void write_block(const BlockState& block) {
    const auto owner = last_.find(block.address);
    const bool is_held = block.use != BlockUse::free && owner != last_.end();
    pickle_.begin_dict().text("address").address(block.address);
    pickle_.entry("size", block.bytes).entry("requested_size", block.requested_bytes);
    pickle_.entry("state", block.use == BlockUse::live      ? "active_allocated"
                           : block.use == BlockUse::pending ? "active_pending_free"
                                                            : "inactive");
    write_frames(is_held ? owner->second : nullptr);
    pickle_.end_dict();
  }

  const StepPlan& plan_;
  const MemoryHistory& history_;
  std::map<Address, const MemoryEvent*> last_;  // allocation at the address
  Pickle pickle_;
};

}  // namespace

std::filesystem::path snapshot_file(const std::filesystem::path& asked_for, const StepPlan& plan) {
  std::filesystem::path stem = asked_for;
  if (stem.extension() == ".pickle") stem.replace_extension();
  return stem.string() + fmt::format(".{}.{}.pickle", plan.scenario, plan.variant);
}

std::string snapshot_pickle(const StepPlan& plan, const MemoryHistory& history) {
  return SnapshotWriter(plan, history).write();
}

}  // namespace stepgate
