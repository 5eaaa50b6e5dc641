// SPDX-License-Identifier: MIT
#include "plan/compose/decode_batch.h"

#include <vector>

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

void launch_ingest_of_images(StepBuilder& builder, BatchFormat format,
                             const kernels::Ingest::Shape& samples,
                             const StepBuilder::Operand& batch, const IngestedImages& to,
                             const std::string& prefix) {
  const std::vector<StepBuilder::Operand> operands = {batch, builder.whole(to.images),
                                                      builder.whole(to.labels)};
  const kernels::Ingest::Attributes classes{to.classes};
  if (format == BatchFormat::uint8)
    return builder.launch<kernels::DecodeImages>(prefix + "decode the images", samples, operands,
                                                 classes);
  builder.launch<kernels::Ingest>(prefix + "ingest the batch", samples, operands, classes);
}

}  // namespace stepgate
