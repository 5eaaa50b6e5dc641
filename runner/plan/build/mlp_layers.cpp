// SPDX-License-Identifier: MIT
#include "plan/build/mlp_layers.h"

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

void launch_product(StepBuilder& builder, const MlpShape& shape, std::int64_t layer,
                    const LayerBuffers& buffers, const std::string& prefix) {
  builder.launch(prefix + "layer " + std::to_string(layer) + ": product", "matmul",
                 {shape.rows, shape.hidden, shape.hidden},
                 {builder.whole(buffers.in), shape.weight(buffers.weights, layer),
                  builder.whole(buffers.product)},
                 {0, 1, 0});
}

void launch_activation(StepBuilder& builder, const MlpShape& shape, std::int64_t layer,
                       const LayerBuffers& buffers, const std::string& prefix) {
  const double relu = layer + 1 < shape.layers ? 1 : 0;
  builder.launch(prefix + "layer " + std::to_string(layer) + ": bias and activation",
                 "bias_activation", {shape.rows, shape.hidden},
                 {builder.whole(buffers.product), shape.bias(buffers.weights, layer),
                  builder.whole(buffers.out)},
                 {relu});
}

}  // namespace stepgate
