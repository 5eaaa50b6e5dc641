// SPDX-License-Identifier: MIT
#include "plan/compose/decode_batch.h"

#include "kernels/kernels.h"

namespace stepgate {

int add_words(StepBuilder& builder, const BatchKnobs& knobs, int batch, std::int64_t sample_bytes,
              const std::string& name) {
  if (knobs.format == BatchFormat::fp32) return batch;
  return builder.add({.name = name,
                      .purpose = Purpose::activations,
                      .bytes = CheckedSize(knobs.size) * sample_bytes});
}

void launch_decode(StepBuilder& builder, const BatchKnobs& knobs, int batch, int words,
                   std::int64_t sample_bytes, const std::string& prefix) {
  if (words == batch) return;
  builder.launch<kernels::Decode>(prefix + "decode the batch",
                                  {.rows = knobs.size, .columns = sample_bytes / word_bytes},
                                  {builder.whole(batch), builder.whole(words)});
}

}  // namespace stepgate
