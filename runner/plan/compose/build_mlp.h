// SPDX-License-Identifier: MIT
// The operations of a stack of square layers: a = relu(a W^T + b), the last without relu, under a
// softmax cross-entropy. A recommender has tables of embeddings below them.
#pragma once

#include "plan/compose/build_model.h"

namespace stepgate {

// As build_model.
ModelParts build_mlp(StepBuilder&, const Knobs&, int batch, std::int64_t sample_bytes);

}  // namespace stepgate
