// SPDX-License-Identifier: MIT
#include "plan/compose/build_offload.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plan/compose/build_input.h"
#include "plan/compose/update/update_rule.h"

namespace stepgate {
namespace {

MemoryKind memory_of(OffloadVia via) {
  return via == OffloadVia::pageable ? MemoryKind::pageable : MemoryKind::pinned;
}

std::string numbered(const std::string& name, std::int64_t number) {
  return name + ' ' + std::to_string(number);
}

// Makes another stream wait for this point of the builder's stream. Afterwards the builder is on
// the other stream.
void let_follow(StepBuilder& builder, const Stream& other, Phase phase, int event,
                const std::string& name) {
  builder.act(name, RecordEvent{event});
  builder.enter(phase, builder.add_stream(other));
  builder.act("wait: " + name, StreamWaitsEvent{event});
}

void let_copies_follow(StepBuilder& builder, Phase phase, int event, const std::string& name) {
  let_follow(builder, stream_of(CopyStream::side), phase, event, name);
}

Buffer moment_buffer(const char* name, std::int64_t parameters) {
  return {.name = name, .purpose = Purpose::optimizer_state, .bytes = parameters * word_bytes};
}

std::vector<int> places_of(const std::vector<VisitingLayers>& buffers, std::int64_t layer) {
  std::vector<int> places;
  for (const VisitingLayers& buffer : buffers) places.push_back(buffer.place(layer));
  return places;
}

}  // namespace

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

// Waits for the copy of the activation that used the place before, since that copy may still read
// it.
void OffloadedActivations::make_room(std::int64_t index) {
  if (!overlaps_ || index < 2) return;
  builder_.act(numbered("wait until it has left: activation", index - 2),
               StreamWaitsEvent{left_[place_of(index)]});
}

// Starts the copy to the host, concurrent with the kernels that read the activation.
void OffloadedActivations::is_written(std::int64_t index) {
  if (!overlaps_) return;
  let_copies_follow(builder_, Phase::forward, written_, numbered("written: activation", index));
  send(index);
  // The last two activations need no event: only their copies back wait for them, on the same
  // stream.
  if (index + 2 < count_)
    builder_.act(numbered("has left: activation", index), RecordEvent{left_[place_of(index)]});
  builder_.enter(Phase::forward);
}

void OffloadedActivations::is_read(std::int64_t index) {
  if (!overlaps_) send(index);
}

// Starts copying back only after the loss, so that the places may share memory with it.
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

// Copies the activation two before this one back into the place of this one.
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

VisitingLayers::VisitingLayers(StepBuilder& builder, OffloadVia via, Buffer flat,
                               std::int64_t layers, std::int64_t places)
    : builder_(builder), name_(flat.name), layer_bytes_(flat.bytes / layers) {
  flat.name += " on the host";
  flat.memory = memory_of(via);
  if (flat.content == Content::weights) flat.numbers_of = name_;
  on_host_ = builder.add(std::move(flat));
  for (std::int64_t place = 0; place < std::min(layers, places); ++place) {
    places_.push_back(builder.add({.name = numbered(name_ + " visiting", place),
                                   .purpose = Purpose::staging,
                                   .bytes = layer_bytes_}));
  }
}

void VisitingLayers::fetch(std::int64_t layer) {
  builder_.act(numbered("fetch the " + name_ + " of layer", layer),
               CopyBytes{builder_.whole(place(layer)), home_of(layer)});
}

void VisitingLayers::send(std::int64_t layer) {
  builder_.act(numbered("send the " + name_ + " of layer", layer),
               CopyBytes{home_of(layer), builder_.whole(place(layer))});
}

OffloadedMoments::OffloadedMoments(StepBuilder& builder, OffloadVia via, std::int64_t layers,
                                   std::int64_t layer_bytes)
    : builder_(builder), overlaps_(via == OffloadVia::pinned_overlap), layers_(layers) {
  // Only AdamW is supported with moments on the host and weights on the device.
  for (const char* name : moments_of(OptimKind::adamw))
    moments_.emplace_back(builder, via, moment_buffer(name, layers * layer_bytes / word_bytes),
                          layers, 2);
  if (!overlaps_) return;
  gradients_ = builder.add_event("gradients are there", 1);
  sent_ = builder.add_event("moments are on the host", 1);
  for (std::size_t place = 0; place < 2; ++place) {
    arrived_[place] =
        builder.add_event(numbered("moments are in place", static_cast<std::int64_t>(place)), 1);
  }
}

std::vector<int> OffloadedMoments::visiting(std::int64_t layer) const {
  return places_of(moments_, layer);
}

// The copies start no earlier, so that the places may share memory with the backward pass.
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

// Copies to the host run between the short kernels, and copies to the device run concurrently, so
// that both directions of the bus are busy.
void OffloadedMoments::is_updated(std::int64_t layer) {
  send(layer);
  if (!overlaps_ || layer + 2 >= layers_) return;
  let_copies_follow(builder_, Phase::optimizer, sent_, numbered("on the host: layer", layer));
  fetch(layer + 2);
  builder_.enter(Phase::optimizer);
}

void OffloadedMoments::fetch(std::int64_t layer) {
  for (VisitingLayers& moment : moments_) moment.fetch(layer);
  if (overlaps_)
    builder_.act(numbered("there are the moments of layer", layer),
                 RecordEvent{arrived_[static_cast<std::size_t>(layer % 2)]});
}

void OffloadedMoments::send(std::int64_t layer) {
  for (VisitingLayers& moment : moments_) moment.send(layer);
}

OffloadedParameters::OffloadedParameters(StepBuilder& builder, OffloadVia via, OptimKind kind,
                                         const Buffer& weights, std::int64_t layers)
    : builder_(builder),
      overlaps_(via == OffloadVia::pinned_overlap),
      layers_(layers),
      weights_(builder, via, weights, layers, 3) {
  for (const char* name : moments_of(kind))
    moments_.emplace_back(builder, via,
                          moment_buffer(name, weights.bytes / bytes_of(weights.dtype)), layers,
                          places());
  gradients_ = builder.add({.name = "gradients of a layer",
                            .purpose = Purpose::gradients,
                            .bytes = weights.bytes / layers,
                            .dtype = weights.dtype});
  if (!overlaps_) return;
  begun_ = builder.add_event("step begins", 1);
  read_ = builder.add_event("weights are read", 1);
  updated_ = builder.add_event("layer is updated", 1);
  left_ = builder.add_event("layer has left", 1);
  home_ = builder.add_event("all layers are on the host", 1);
  for (std::int64_t place = 0; place < places(); ++place)
    come_.push_back(builder.add_event(numbered("layer has come to place", place), 1));
}

std::vector<int> OffloadedParameters::moments(std::int64_t layer) const {
  return places_of(moments_, layer);
}

void OffloadedParameters::begin() {
  if (!overlaps_) return;
  let_copies_follow(builder_, Phase::forward, begun_, "the step begins");
  for (std::int64_t layer = 0; layer < places(); ++layer) fetch_weights(layer);
  builder_.enter(Phase::forward);
}

void OffloadedParameters::is_needed(std::int64_t layer) {
  if (overlaps_)
    wait_for(layer);
  else
    fetch_weights(layer);
}

// After the read, the place receives the weights of the layer three further up.
void OffloadedParameters::is_read(std::int64_t layer) {
  if (!overlaps_ || stays(layer)) return;
  let_copies_follow(builder_, Phase::forward, read_, numbered("read: the weights of layer", layer));
  fetch_weights(layer + places());
  builder_.enter(Phase::forward);
}

// Copies moments during the loss. They cannot start earlier, since the forward pass waits for the
// same events.
void OffloadedParameters::begin_to_return() {
  if (!overlaps_ || moments_.empty()) return;
  builder_.enter(Phase::forward, builder_.add_stream(stream_of(CopyStream::side)));
  for (std::int64_t layer = layers_ - 1; layer >= 0 && stays(layer); --layer)
    fetch_for_update(layer);
  builder_.enter(Phase::forward);
}

void OffloadedParameters::is_needed_again(std::int64_t layer) {
  if (!overlaps_)
    fetch_for_update(layer);
  else if (!stays(layer) || !moments_.empty())
    wait_for(layer);
}

// After the update, the places receive the layer three further down. At the end the compute stream
// and the next step wait for all copies to the host.
void OffloadedParameters::is_updated(std::int64_t layer) {
  if (overlaps_)
    let_follow(builder_, way_out(), Phase::optimizer, updated_, numbered("updated: layer", layer));
  weights_.send(layer);
  for (VisitingLayers& moment : moments_) moment.send(layer);
  if (!overlaps_) return;
  if (layer >= places()) {
    let_copies_follow(builder_, Phase::backward, left_, numbered("has left: layer", layer));
    fetch_for_update(layer - places());
  }
  if (layer == 0) builder_.act("all layers are on the host", RecordEvent{home_});
  builder_.enter(Phase::optimizer);
  if (layer == 0) builder_.act("wait until all layers are on the host", StreamWaitsEvent{home_});
}

void OffloadedParameters::fetch_weights(std::int64_t layer) {
  weights_.fetch(layer);
  has_come(layer);
}

void OffloadedParameters::fetch_for_update(std::int64_t layer) {
  if (!stays(layer)) weights_.fetch(layer);
  for (VisitingLayers& moment : moments_) moment.fetch(layer);
  has_come(layer);
}

void OffloadedParameters::has_come(std::int64_t layer) {
  if (overlaps_)
    builder_.act(numbered("has come: layer", layer), RecordEvent{come_[place_of(layer)]});
}

void OffloadedParameters::wait_for(std::int64_t layer) {
  builder_.act(numbered("wait for layer", layer), StreamWaitsEvent{come_[place_of(layer)]});
}

}  // namespace stepgate
