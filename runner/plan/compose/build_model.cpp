// SPDX-License-Identifier: MIT
#include "plan/compose/build_model.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "plan/compose/build_elementwise.h"
#include "plan/compose/build_mlp.h"
#include "plan/compose/model_ends.h"
#include "plan/compose/transformer/build_transformer.h"
#include "support/require.h"

namespace stepgate {
namespace {

// Kernels that spin or wait for loads have no features of their own; this many let the batch be
// read at full speed.
constexpr std::int64_t most_plain_features = 256;

// Kernels of a given length on the device's clock; the "loss" is the mean of the batch, so a batch
// that arrived late or was overwritten shows.
ModelParts build_spin(StepBuilder& builder, const Knobs& knobs, int batch,
                      std::int64_t sample_bytes) {
  const std::int64_t words = sample_bytes / word_bytes;
  const std::int64_t features = std::min<std::int64_t>(words - 1, most_plain_features);
  const std::int64_t rows = knobs.batch.size;
  const ModelEnds ends = add_ends(builder, rows * features);
  const int labels =
      builder.add({.name = "labels", .purpose = Purpose::activations, .bytes = rows * word_bytes});
  const int word =
      builder.add({.name = "spin word", .purpose = Purpose::bookkeeping, .bytes = word_bytes});
  builder.enter(Phase::forward);
  const int last_reader = static_cast<int>(builder.plan().operations.size());
  builder.launch_as<kernels::Ingest>(
      DType::fp32, "ingest the batch", {rows, features, words},
      {builder.whole(batch), builder.whole(ends.row_losses), builder.whole(labels)});
  for (std::int64_t index = 0; index < knobs.model.kernels; ++index) {
    builder.launch_as<kernels::Spin>(DType::fp32, "spin " + std::to_string(index), {},
                                     {builder.whole(word)},
                                     {.microseconds = static_cast<double>(knobs.model.kernel_us)});
  }
  report_loss(builder, ends, rows * features);
  return {ends.loss, last_reader};
}

// Loads that wait for each other, through lines of a footprint. The line that they ended at is a
// part of the loss, so that a load that was left out shows.
ModelParts build_chase(StepBuilder& builder, const Knobs& knobs, int batch,
                       std::int64_t sample_bytes) {
  const std::int64_t rows = knobs.batch.size;
  const std::int64_t words = sample_bytes / word_bytes;
  const std::int64_t features = std::min<std::int64_t>(words - 1, most_plain_features);
  const std::int64_t losses = rows * features + 1;
  const ModelEnds ends = add_ends(builder, losses);
  const int labels =
      builder.add({.name = "labels", .purpose = Purpose::activations, .bytes = rows * word_bytes});
  const int chain = builder.add({.name = "chain",
                                 .purpose = Purpose::weights,
                                 .bytes = knobs.model.footprint_bytes,
                                 .content = Content::chain});
  const int position =
      builder.add({.name = "position", .purpose = Purpose::bookkeeping, .bytes = word_bytes});
  builder.plan().param_bytes = knobs.model.footprint_bytes;
  builder.enter(Phase::forward);
  const int last_reader = static_cast<int>(builder.plan().operations.size());
  builder.launch_as<kernels::Ingest>(
      DType::fp32, "ingest the batch", {rows, features, words},
      {builder.whole(batch), StepBuilder::Operand::from(ends.row_losses, 0),
       builder.whole(labels)});
  builder.launch_as<kernels::Chase>(DType::fp32, "follow the chain",
                                    {.columns = knobs.model.footprint_bytes / chase_line_bytes},
                                    {builder.whole(chain), builder.whole(position),
                                     StepBuilder::Operand::from(ends.row_losses, losses - 1)},
                                    {.accesses = knobs.model.accesses});
  report_loss(builder, ends, losses);
  return {ends.loss, last_reader};
}

}  // namespace

std::int64_t mean_tokens_of_a_sample(const Knobs& knobs) {
  const std::vector<std::int64_t>& lengths = knobs.batch.lengths;
  if (lengths.empty()) return knobs.model.seq;
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) / std::ssize(lengths);
}

std::int64_t model_sample_bytes(const Knobs& knobs) {
  const ModelKnobs& model = knobs.model;
  switch (model.kind) {
    case ModelKind::mlp:
    case ModelKind::elementwise:  // its features, and a label
      return (model.hidden + 1) * word_bytes;
    case ModelKind::transformer:  // its tokens, and the one that follows the last
      return ((knobs.batch.packed ? mean_tokens_of_a_sample(knobs) : model.seq) + 1) * word_bytes;
    case ModelKind::recommender:  // an index into each table, and a label
      return (model.tables + 1) * word_bytes;
    case ModelKind::spin:
    case ModelKind::chase:
      return 2 * word_bytes;
  }
  require(false, "every model kind reads samples");
  return 0;
}

ModelParts build_model(StepBuilder& builder, const Knobs& knobs, int batch,
                       std::int64_t sample_bytes) {
  switch (knobs.model.kind) {
    case ModelKind::mlp:
    case ModelKind::recommender:
      return build_mlp(builder, knobs, batch, sample_bytes);
    case ModelKind::transformer:
      return build_transformer(builder, knobs, batch, sample_bytes);
    case ModelKind::spin:
      return build_spin(builder, knobs, batch, sample_bytes);
    case ModelKind::elementwise:
      return build_elementwise(builder, knobs, batch, sample_bytes);
    case ModelKind::chase:
      return build_chase(builder, knobs, batch, sample_bytes);
  }
  require(false, "every model kind is built");
  return {};
}

}  // namespace stepgate
