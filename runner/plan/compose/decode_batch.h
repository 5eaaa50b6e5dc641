// SPDX-License-Identifier: MIT
// How a batch of bytes becomes the 32-bit words that a model reads.
#pragma once

#include <cstdint>
#include <string>

#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// The buffer of words that the model reads: the batch itself, or a new buffer of that name, into
// which a uint8 batch is decoded.
int add_words(StepBuilder&, const BatchKnobs&, int batch, std::int64_t sample_bytes,
              const std::string& name);

// Launches the decoding unless `words` is the batch itself.
void launch_decode(StepBuilder&, const BatchKnobs&, int batch, int words, std::int64_t sample_bytes,
                   const std::string& prefix = "");

}  // namespace stepgate
