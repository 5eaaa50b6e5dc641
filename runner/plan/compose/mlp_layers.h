// SPDX-License-Identifier: MIT
// The forward pass of one mlp layer: a = relu(x W^T + b), and where its parameters lie. A step and
// its evaluation use the same layers with different buffers.
#pragma once

#include <cstdint>
#include <string>

#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// The part of layer number `layer` in a flat buffer.
struct LayerPlace {
  int flat = 0;  // buffer
  std::int64_t layer = 0;
};

// Sizes of a stack of square layers. All parameters, or all gradients, are in one flat buffer: for
// each layer the weight, then the bias.
struct MlpShape {
  std::int64_t layers = 0;
  CheckedSize hidden = 0;
  CheckedSize rows = 0;  // samples
  std::int64_t element_bytes = 0;

  CheckedSize parameters() const { return layers * hidden * (hidden + 1); }
  CheckedSize flat_bytes() const { return layers * layer_bytes(); }
  CheckedSize activation_bytes() const { return rows * hidden * element_bytes; }
  std::int64_t layer_parameters() const { return hidden * (hidden + 1); }
  BufferUse weight(const LayerPlace&) const;
  BufferUse bias(const LayerPlace&) const;

 private:
  CheckedSize weight_bytes() const { return hidden * hidden * element_bytes; }
  CheckedSize layer_bytes() const { return weight_bytes() + hidden * element_bytes; }
};

MlpShape mlp_shape(const Knobs&);

// Buffers that a layer reads and writes, by index. `gemm` and `out` may be the same buffer.
struct LayerBuffers {
  LayerPlace weights;
  int in = 0;
  int gemm = 0;
  int out = 0;
};

// Launches the GEMM of a layer, then its activation; the last layer has no activation. `prefix` is
// prepended to the names of the operations.
void launch_gemm(StepBuilder&, const MlpShape&, std::int64_t layer, const LayerBuffers&,
                 const std::string& prefix = "");
void launch_activation(StepBuilder&, const MlpShape&, std::int64_t layer, const LayerBuffers&,
                       const std::string& prefix = "");

}  // namespace stepgate
