// SPDX-License-Identifier: MIT
// How a batch of bytes becomes the numbers that a model reads.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/kernels.h"
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

// The buffers that images are ingested into, and the number of classes of their labels.
struct IngestedImages {
  int images = 0;
  int labels = 0;
  std::int64_t classes = 0;
};

// Launches the kernel that makes the model's numbers and labels of `batch`, which holds so many
// samples of words or, in uint8, of bytes: one launch in either format.
void launch_ingest_of_images(StepBuilder&, BatchFormat, const kernels::Ingest::Shape& samples,
                             const StepBuilder::Operand& batch, const IngestedImages&,
                             const std::string& prefix = "");

}  // namespace stepgate
