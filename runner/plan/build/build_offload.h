// SPDX-License-Identifier: MIT
// What lies in host memory between its uses: its places on the device, its copies, and the events
// that hand it over. When a model uses it is build_model.cpp's.
//
// Two places for each direction are rotated over. Copies are on the stream of the kernels, or on
// the side stream. Then the compute stream has waited for the last of them by the end of a step, so
// that neither the next step nor a graph finds one still going on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/build/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// Activations 0, 1, ..., of one size, in the order in which a forward pass writes them and in the
// reverse of which the backward pass reads them.
class OffloadedActivations {
 public:
  OffloadedActivations(StepBuilder&, OffloadVia, std::int64_t count, std::int64_t bytes);

  // Buffers on the device: of the forward pass, and of the backward pass.
  int going_out(std::int64_t index) const { return out_[place_of(index)]; }
  int coming_back(std::int64_t index) const { return back_[place_of(index)]; }

  // To be told in the forward phase: it is about to be written, it is written, and it was read for
  // the last time there.
  void make_room(std::int64_t index);
  void is_written(std::int64_t index);
  void is_read(std::int64_t index);
  // To be told in the backward phase: that it begins, it is about to be read, and it was read for
  // the last time.
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

// The moments of an optimizer's parameters, layer by layer, each layer's as many bytes: all on the
// host, two layers' at a time on the device.
class OffloadedMoments {
 public:
  OffloadedMoments(StepBuilder&, OffloadVia, std::int64_t layers, std::int64_t layer_bytes);

  // The buffers that have the layer's first and second moments on the device.
  const std::array<int, 2>& visiting(std::int64_t layer) const { return places_[layer % 2]; }

  // To be told in the optimizer's phase.
  void begin();
  void is_needed(std::int64_t layer);
  void is_updated(std::int64_t layer);

 private:
  void fetch(std::int64_t layer);
  void send(std::int64_t layer);

  StepBuilder& builder_;
  bool overlaps_;
  std::int64_t layers_, bytes_;
  std::array<int, 2> on_host_{};                // by moment
  std::array<std::array<int, 2>, 2> places_{};  // by layer modulo 2, then moment
  int gradients_ = 0, sent_ = 0;                // events
  std::array<int, 2> arrived_{};
};

}  // namespace stepgate
