// SPDX-License-Identifier: MIT
#include "plan/compose/mlp_layers.h"

#include "kernels/kernels.h"

namespace stepgate {
namespace {

// A recommender's layers read one row of every table, concatenated.
CheckedSize width_of(const ModelKnobs& model) {
  const bool has_tables = model.kind == ModelKind::recommender;
  return has_tables ? CheckedSize(model.tables) * model.hidden : CheckedSize(model.hidden);
}

}  // namespace

BufferUse MlpShape::weight(const LayerPlace& place) const {
  return StepBuilder::part(place.flat, place.layer * layer_bytes(), weight_bytes());
}

BufferUse MlpShape::bias(const LayerPlace& place) const {
  return StepBuilder::part(place.flat, place.layer * layer_bytes() + weight_bytes(),
                           hidden * element_bytes);
}

MlpShape mlp_shape(const Knobs& knobs) {
  return {.layers = knobs.model.layers,
          .hidden = width_of(knobs.model),
          .rows = knobs.batch.size,
          .element_bytes = bytes_of(knobs.model.dtype)};
}

void launch_gemm(StepBuilder& builder, const MlpShape& shape, std::int64_t layer,
                 const LayerBuffers& buffers, const std::string& prefix) {
  builder.launch<kernels::Matmul>(
      prefix + "layer " + std::to_string(layer) + ": gemm",
      {shape.rows, shape.hidden, shape.hidden},
      {builder.whole(buffers.in), shape.weight(buffers.weights), builder.whole(buffers.gemm)},
      {.transpose_b = true});
}

void launch_activation(StepBuilder& builder, const MlpShape& shape, std::int64_t layer,
                       const LayerBuffers& buffers, const std::string& prefix) {
  const bool relu = layer + 1 < shape.layers;
  builder.launch<kernels::BiasActivation>(
      prefix + "layer " + std::to_string(layer) + ": bias and activation",
      {shape.rows, shape.hidden},
      {builder.whole(buffers.gemm), shape.bias(buffers.weights), builder.whole(buffers.out)},
      {.relu = relu});
}

}  // namespace stepgate
