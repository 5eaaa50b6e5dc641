// SPDX-License-Identifier: MIT
#include "plan/build/build_offload.h"

#include <algorithm>
#include <string>

#include "plan/build/build_input.h"
#include "plan/build/update/update_rule.h"

namespace stepgate {
namespace {

MemoryKind memory_of(OffloadVia via) {
  return via == OffloadVia::pageable ? MemoryKind::pageable : MemoryKind::pinned;
}

std::string numbered(const char* name, std::int64_t number) {
  return std::string(name) + ' ' + std::to_string(number);
}

// The stream that copies waits until the compute stream has reached this point.
void let_copies_follow(StepBuilder& builder, Phase phase, int event, const std::string& name) {
  builder.act(name, RecordEvent{event});
  builder.enter(phase, builder.add_stream(stream_of(CopyStream::side)));
  builder.act("wait: " + name, StreamWaitsEvent{event});
}

}  // namespace

// --- activations ---------------------------------------------------------------------------------

OffloadedActivations::OffloadedActivations(StepBuilder& builder, OffloadVia via, std::int64_t count,
                                           std::int64_t bytes)
    : builder_(builder), overlaps_(via == OffloadVia::pinned_overlap), count_(count) {
  for (std::int64_t index = 0; index < count; ++index) {
    on_host_.push_back(builder.add({.name = numbered("activation on the host", index),
                                    .memory = memory_of(via),
                                    .purpose = Purpose::staging,
                                    .bytes = bytes}));
  }
  const auto add_places = [&](const char* name, std::vector<int>& places) {
    for (std::int64_t place = 0; place < std::min<std::int64_t>(count, 2); ++place) {
      places.push_back(builder.add(
          {.name = numbered(name, place), .purpose = Purpose::activations, .bytes = bytes}));
    }
  };
  add_places("activation going out", out_);
  add_places("activation coming back", back_);
  if (!overlaps_) return;
  written_ = builder.add_event("activation is written", 1);
  free_ = builder.add_event("place is free", 1);
  for (std::size_t place = 0; place < 2; ++place) {
    const auto number = static_cast<std::int64_t>(place);
    left_[place] = builder.add_event(numbered("activation has left place", number), 1);
    returned_[place] = builder.add_event(numbered("activation is back in place", number), 1);
  }
}

// The copy of the activation that had the place before may still be reading it.
void OffloadedActivations::make_room(std::int64_t index) {
  if (!overlaps_ || index < 2) return;
  builder_.act(numbered("wait until it has left: activation", index - 2),
               StreamWaitsEvent{left_[place_of(index)]});
}

// Beside the kernels that read it.
void OffloadedActivations::is_written(std::int64_t index) {
  if (!overlaps_) return;
  let_copies_follow(builder_, Phase::forward, written_, numbered("written: activation", index));
  send(index);
  // Nobody waits for the last two but those who bring them back, on the same stream.
  if (index + 2 < count_)
    builder_.act(numbered("has left: activation", index), RecordEvent{left_[place_of(index)]});
  builder_.enter(Phase::forward);
}

void OffloadedActivations::is_read(std::int64_t index) {
  if (!overlaps_) send(index);
}

// Only now, so that the places can be memory that the loss has used.
void OffloadedActivations::begin_to_return() {
  if (!overlaps_) return;
  let_copies_follow(builder_, Phase::backward, free_, "the loss is there");
  for (std::int64_t index = count_ - 1; index >= std::max<std::int64_t>(0, count_ - 2); --index)
    fetch(index);
  builder_.enter(Phase::backward);
}

void OffloadedActivations::is_needed(std::int64_t index) {
  if (!overlaps_) return fetch(index);
  builder_.act(numbered("wait until it is back: activation", index),
               StreamWaitsEvent{returned_[place_of(index)]});
}

// Its place is the next but one's.
void OffloadedActivations::is_used_up(std::int64_t index) {
  if (!overlaps_ || index < 2) return;
  let_copies_follow(builder_, Phase::backward, free_, numbered("used up: activation", index));
  fetch(index - 2);
  builder_.enter(Phase::backward);
}

void OffloadedActivations::send(std::int64_t index) {
  builder_.act(numbered("send to the host: activation", index),
               CopyBytes{builder_.whole(on_host_[static_cast<std::size_t>(index)]),
                         builder_.whole(going_out(index))});
}

void OffloadedActivations::fetch(std::int64_t index) {
  builder_.act(numbered("fetch from the host: activation", index),
               CopyBytes{builder_.whole(coming_back(index)),
                         builder_.whole(on_host_[static_cast<std::size_t>(index)])});
  if (overlaps_)
    builder_.act(numbered("is back: activation", index), RecordEvent{returned_[place_of(index)]});
}

// --- moments -------------------------------------------------------------------------------------

OffloadedMoments::OffloadedMoments(StepBuilder& builder, OffloadVia via, std::int64_t layers,
                                   std::int64_t layer_bytes)
    : builder_(builder),
      overlaps_(via == OffloadVia::pinned_overlap),
      layers_(layers),
      bytes_(layer_bytes) {
  const auto names = moments_of(OptimKind::adamw);  // the only rule whose moments may lie there
  for (std::size_t moment = 0; moment < 2; ++moment) {
    const std::string name = names[moment];
    on_host_[moment] = builder.add({.name = name + " on the host",
                                    .memory = memory_of(via),
                                    .purpose = Purpose::optimizer_state,
                                    .bytes = layers * layer_bytes});
    for (std::size_t place = 0; place < static_cast<std::size_t>(std::min<std::int64_t>(layers, 2));
         ++place) {
      places_[place][moment] = builder.add({.name = name + " visiting " + std::to_string(place),
                                            .purpose = Purpose::staging,
                                            .bytes = layer_bytes});
    }
  }
  if (!overlaps_) return;
  gradients_ = builder.add_event("gradients are there", 1);
  sent_ = builder.add_event("moments are on the host", 1);
  for (std::size_t place = 0; place < 2; ++place) {
    arrived_[place] =
        builder.add_event(numbered("moments are in place", static_cast<std::int64_t>(place)), 1);
  }
}

// Only now, so that the places can be memory that the backward pass has used.
void OffloadedMoments::begin() {
  if (!overlaps_) return;
  let_copies_follow(builder_, Phase::optimizer, gradients_, "gradients are there");
  for (std::int64_t layer = 0; layer < std::min<std::int64_t>(layers_, 2); ++layer) fetch(layer);
  builder_.enter(Phase::optimizer);
}

void OffloadedMoments::is_needed(std::int64_t layer) {
  if (!overlaps_) return fetch(layer);
  builder_.act(numbered("wait for the moments of layer", layer),
               StreamWaitsEvent{arrived_[static_cast<std::size_t>(layer % 2)]});
}

// Out between the kernels, which are short, and in beside them: so both directions of the bus are
// used at once.
void OffloadedMoments::is_updated(std::int64_t layer) {
  send(layer);
  if (!overlaps_ || layer + 2 >= layers_) return;
  let_copies_follow(builder_, Phase::optimizer, sent_, numbered("on the host: layer", layer));
  fetch(layer + 2);
  builder_.enter(Phase::optimizer);
}

void OffloadedMoments::fetch(std::int64_t layer) {
  for (std::size_t moment = 0; moment < 2; ++moment) {
    const int place = visiting(layer)[moment];
    builder_.act(numbered(moment == 0 ? "fetch the first moments of layer"
                                      : "fetch the second moments of layer",
                          layer),
                 CopyBytes{builder_.whole(place),
                           StepBuilder::part(on_host_[moment], layer * bytes_, bytes_)});
  }
  if (overlaps_)
    builder_.act(numbered("there are the moments of layer", layer),
                 RecordEvent{arrived_[static_cast<std::size_t>(layer % 2)]});
}

void OffloadedMoments::send(std::int64_t layer) {
  for (std::size_t moment = 0; moment < 2; ++moment) {
    builder_.act(numbered(moment == 0 ? "send the first moments of layer"
                                      : "send the second moments of layer",
                          layer),
                 CopyBytes{StepBuilder::part(on_host_[moment], layer * bytes_, bytes_),
                           builder_.whole(visiting(layer)[moment])});
  }
}

}  // namespace stepgate
