// SPDX-License-Identifier: MIT
// The operations of model.kind = "elementwise": kernels that scale every element of the batch's
// features, over the layout and in the order that the knobs ask for. The kernel accounts for what
// that wastes.
#pragma once

#include "plan/compose/build_model.h"

namespace stepgate {

// Its loss is the mean square of what the kernels have made of the batch, which neither layout nor
// order nor copies change.
ModelParts build_elementwise(StepBuilder&, const Knobs&, int batch, std::int64_t sample_bytes);

}  // namespace stepgate
