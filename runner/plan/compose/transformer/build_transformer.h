// SPDX-License-Identifier: MIT
// A GPT: token and position embeddings, blocks of attention and an MLP, a norm and an untied head
// (Radford et al.: Language models are unsupervised multitask learners, 2019), trained by AdamW or
// Lion.
#pragma once

#include "plan/compose/build_model.h"

namespace stepgate {

ModelParts build_transformer(StepBuilder&, const Knobs&, int batch, std::int64_t sample_bytes);

}  // namespace stepgate
