// SPDX-License-Identifier: MIT
#include "plan/mlp_layers.h"

namespace stepgate {

BufferUse MlpShape::weight(int flat, std::int64_t layer) const {
  return StepBuilder::part(flat, layer * layer_bytes(), weight_bytes());
}

BufferUse MlpShape::bias(int flat, std::int64_t layer) const {
  return StepBuilder::part(flat, layer * layer_bytes() + weight_bytes(), hidden * element_bytes);
}

MlpShape mlp_shape(const Knobs& knobs) {
  return {.layers = knobs.model.layers,
          .hidden = knobs.model.hidden,
          .rows = knobs.batch.size,
          .element_bytes = bytes_of(knobs.model.dtype)};
}

void forward_layer(StepBuilder& builder, const MlpShape& shape, std::int64_t layer,
                   const LayerBuffers& buffers, const std::string& prefix) {
  const std::string name = prefix + "layer " + std::to_string(layer);
  const BufferUse product = builder.whole(buffers.product);
  builder.launch(name + ": product", "matmul", {shape.rows, shape.hidden, shape.hidden},
                 {builder.whole(buffers.in), shape.weight(buffers.weights, layer), product},
                 {0, 1, 0});
  const double relu = layer + 1 < shape.layers ? 1 : 0;
  builder.launch(name + ": bias and activation", "bias_activation", {shape.rows, shape.hidden},
                 {product, shape.bias(buffers.weights, layer), builder.whole(buffers.out)}, {relu});
}

}  // namespace stepgate
