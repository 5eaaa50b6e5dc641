// SPDX-License-Identifier: MIT
// Buffers that lie in host memory between their uses: their places on the device, their copies, and
// the events that order these. build_model.cpp decides when a model uses them.
//
// Activations have two places for each direction, used in rotation. Moments have two places;
// weights, moments and gradients offloaded together have three. Copies run on the compute stream,
// or overlap on other streams. Then the compute stream waits for the last copy before a step
// ends. So no copy is still in flight in the next step or after a graph.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// Offloads activations 0, 1, ... of one size. The forward pass writes them in this order; the
// backward pass reads them in reverse.
class OffloadedActivations {
 public:
  OffloadedActivations(StepBuilder&, OffloadVia, std::int64_t count, std::int64_t bytes);

  // The device buffers of an activation in the forward and in the backward pass.
  int going_out(std::int64_t index) const { return out_[place_of(index)]; }
  int coming_back(std::int64_t index) const { return back_[place_of(index)]; }

  // Callers use these in the forward phase: before the activation is written, after it is written,
  // and after its last read in this phase.
  void make_room(std::int64_t index);
  void is_written(std::int64_t index);
  void is_read(std::int64_t index);
  // Callers use these in the backward phase: at its begin, before the activation is read, and after
  // its last read.
  void begin_to_return();
  void is_needed(std::int64_t index);
  void is_used_up(std::int64_t index);

 private:
  static std::size_t place_of(std::int64_t index) { return static_cast<std::size_t>(index % 2); }
  void send(std::int64_t index);
  void fetch(std::int64_t index);

  StepBuilder& builder_;
  bool overlaps_;
  std::int64_t count_;
  std::vector<int> on_host_, out_, back_;
  int written_ = 0, free_ = 0;  // events
  std::array<int, 2> left_{}, returned_{};
};

// The layers of a flat buffer, of one size each. They are kept on the host and copied in turns into
// a few places on the device.
class VisitingLayers {
 public:
  // `flat` describes the buffer as if it were on the device. Data that an earlier step wrote into
  // it is kept.
  VisitingLayers(StepBuilder&, OffloadVia, Buffer flat, std::int64_t layers, std::int64_t places);

  // The host buffer of all layers, and the device buffer to which a layer is copied.
  int at_home() const { return on_host_; }
  int place(std::int64_t layer) const {
    return places_[static_cast<std::size_t>(layer) % places_.size()];
  }
  std::int64_t places() const { return std::ssize(places_); }
  // Each appends one copy on the builder's current stream.
  void fetch(std::int64_t layer);
  void send(std::int64_t layer);

 private:
  BufferUse home_of(std::int64_t layer) const {
    return StepBuilder::part(on_host_, layer * layer_bytes_, layer_bytes_);
  }

  StepBuilder& builder_;
  std::string name_;
  std::int64_t layer_bytes_;
  int on_host_;
  std::vector<int> places_;
};

// The moments of an optimizer. All are on the host, and those of two layers at a time are on the
// device. Each layer has equally many bytes.
class OffloadedMoments {
 public:
  OffloadedMoments(StepBuilder&, OffloadVia, std::int64_t layers, std::int64_t layer_bytes);

  // The device buffers of the layer's first and second moments.
  std::vector<int> visiting(std::int64_t layer) const;

  // Callers use these in the optimizer phase.
  void begin();
  void is_needed(std::int64_t layer);
  void is_updated(std::int64_t layer);

 private:
  void fetch(std::int64_t layer);
  void send(std::int64_t layer);

  StepBuilder& builder_;
  bool overlaps_;
  std::int64_t layers_;
  std::vector<VisitingLayers> moments_;
  int gradients_ = 0, sent_ = 0;  // events
  std::array<int, 2> arrived_{};
};

// Weights, moments and gradients of layers of one size. Weights and moments are on the host; those
// of three layers at a time are on the device, with one layer's gradient. The update uses the
// gradient before the next layer's backward pass ("optimizer step in backward"; ZeRO-Infinity,
// Rajbhandari et al., 2021). When the backward pass begins, the weights of the last three layers
// are still on the device; all others are copied twice a step. Overlapped copies use a stream for
// each direction. So one layer can arrive and another leave while a third is used.
class OffloadedParameters {
 public:
  // `weights` describes the flat buffer as if it were on the device: `layers` layers of one size.
  OffloadedParameters(StepBuilder&, OffloadVia, OptimKind, const Buffer& weights,
                      std::int64_t layers);

  // The device buffers of a layer.
  int weights(std::int64_t layer) const { return weights_.place(layer); }
  std::vector<int> moments(std::int64_t layer) const;
  int gradients() const { return gradients_; }
  // The host buffer of all weights as the step leaves them.
  int weights_at_home() const { return weights_.at_home(); }

  // Callers use these in the forward phase: at its begin, before the weights of a layer are read,
  // after their last read in this phase, and at its end.
  void begin();
  void is_needed(std::int64_t layer);
  void is_read(std::int64_t layer);
  void begin_to_return();
  // Callers use these in the backward phase, from the last layer to the first: before the layer is
  // used, and after it is updated.
  void is_needed_again(std::int64_t layer);
  void is_updated(std::int64_t layer);

 private:
  std::int64_t places() const { return weights_.places(); }
  std::size_t place_of(std::int64_t layer) const {
    return static_cast<std::size_t>(layer % places());
  }
  // Whether the layer stays on the device: no other layer takes its place later in the forward
  // pass.
  bool stays(std::int64_t layer) const { return layer + places() >= layers_; }
  void fetch_weights(std::int64_t layer);
  void fetch_for_update(std::int64_t layer);
  void has_come(std::int64_t layer);
  void wait_for(std::int64_t layer);

  StepBuilder& builder_;
  bool overlaps_;
  std::int64_t layers_;
  VisitingLayers weights_;
  std::vector<VisitingLayers> moments_;
  int gradients_ = 0;
  int begun_ = 0, read_ = 0, updated_ = 0, left_ = 0, home_ = 0;  // events
  std::vector<int> come_;                                         // events, by place
};

}  // namespace stepgate
