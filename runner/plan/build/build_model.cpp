// SPDX-License-Identifier: MIT
#include "plan/build/build_model.h"

#include <algorithm>
#include <string>

#include "kernels/kernels.h"
#include "plan/build/build_elementwise.h"
#include "plan/build/build_mlp.h"
#include "plan/build/model_ends.h"
#include "plan/build/transformer/build_transformer.h"
#include "support/require.h"

namespace stepgate {
namespace {

// Spinning kernels have no features of their own; this many let the batch be read at full speed.
constexpr std::int64_t most_spin_features = 256;

// Kernels of a given length on the device's clock; the "loss" is the mean of the batch, so a batch
// that arrived late or was overwritten shows.
ModelParts build_spin(StepBuilder& builder, const Knobs& knobs, int batch,
                      std::int64_t sample_bytes) {
  const std::int64_t words = sample_bytes / word_bytes;
  const std::int64_t features = std::min<std::int64_t>(words - 1, most_spin_features);
  const std::int64_t rows = knobs.batch.size;
  const ModelEnds ends = add_ends(builder, rows * features);
  const int labels =
      builder.add({.name = "labels", .purpose = Purpose::activations, .bytes = rows * word_bytes});
  const int word =
      builder.add({.name = "spin word", .purpose = Purpose::bookkeeping, .bytes = word_bytes});
  builder.enter(Phase::forward);
  const int first_reader = static_cast<int>(builder.plan().operations.size());
  builder.launch_as<kernels::Ingest>(
      DType::fp32, "ingest the batch", {rows, features, words},
      {builder.whole(batch), builder.whole(ends.row_losses), builder.whole(labels)});
  for (std::int64_t index = 0; index < knobs.model.kernels; ++index) {
    builder.launch_as<kernels::Spin>(DType::fp32, "spin " + std::to_string(index), {},
                                     {builder.whole(word)},
                                     {.microseconds = static_cast<double>(knobs.model.kernel_us)});
  }
  report_loss(builder, ends, rows * features);
  return {ends.loss, first_reader};
}

}  // namespace

std::int64_t model_sample_bytes(const ModelKnobs& model) {
  switch (model.kind) {
    case ModelKind::mlp:
    case ModelKind::elementwise:  // its features, and a label
      return (model.hidden + 1) * word_bytes;
    case ModelKind::transformer:  // its tokens, and the one that follows the last
      return (model.seq + 1) * word_bytes;
    case ModelKind::spin:
      return 2 * word_bytes;
  }
  require(false, "every model kind reads samples");
  return 0;
}

ModelParts build_model(StepBuilder& builder, const Knobs& knobs, int batch,
                       std::int64_t sample_bytes) {
  switch (knobs.model.kind) {
    case ModelKind::mlp:
      return build_mlp(builder, knobs, batch, sample_bytes);
    case ModelKind::transformer:
      return build_transformer(builder, knobs, batch, sample_bytes);
    case ModelKind::spin:
      return build_spin(builder, knobs, batch, sample_bytes);
    case ModelKind::elementwise:
      return build_elementwise(builder, knobs, batch, sample_bytes);
  }
  require(false, "every model kind is built");
  return {};
}

}  // namespace stepgate
