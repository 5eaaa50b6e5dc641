// SPDX-License-Identifier: MIT
#include "plan/compose/recommender/embedding_tables.h"

#include <cmath>
#include <string>

#include "kernels/kernels.h"

namespace stepgate {
namespace {

std::string table_name(std::int64_t index) {
  return "table " + std::to_string(index);
}

}  // namespace

EmbeddingTables::EmbeddingTables(StepBuilder& builder, const Knobs& knobs,
                                 ParameterList& parameters)
    : builder_(builder),
      count_(knobs.model.tables),
      table_rows_(knobs.model.vocab),
      columns_(knobs.model.hidden),
      samples_(knobs.batch.size),
      element_bytes_(bytes_of(knobs.model.dtype)),
      first_(parameters.elements()),
      by_table_(knobs.launch.fuse == Fuse::none) {
  // The initial numbers have the scale of DLRM.
  const double scale = 1 / std::sqrt(static_cast<double>(table_rows_));
  for (std::int64_t index = 0; index < count_; ++index)
    parameters.add(table_name(index), table_rows_ * columns_, scale);
}

void EmbeddingTables::add_buffers() {
  const CheckedSize indices = CheckedSize(samples_) * count_;
  const auto activation = [&](const char* name, CheckedSize bytes) {
    return builder_.add({.name = name, .purpose = Purpose::activations, .bytes = bytes});
  };
  indices_ = activation("indices", indices * word_bytes);
  if (!by_table_) return;
  rows_ = activation("rows by table", indices * columns_ * element_bytes_);
  d_rows_ = activation("gradient of rows by table", indices * columns_ * element_bytes_);
}

void EmbeddingTables::look_up(int batch, std::int64_t sample_bytes, int weights, int features,
                              int labels) const {
  builder_.launch<kernels::IngestIndices>(
      "ingest the batch",
      {.samples = samples_, .tables = count_, .words = sample_bytes / word_bytes},
      {builder_.whole(batch), builder_.whole(indices_), builder_.whole(labels)},
      {.table_rows = table_rows_, .classes = count_ * columns_, .by_table = by_table_});
  if (!by_table_) {
    builder_.launch<kernels::TokenEmbedding>(
        "look up the rows of all tables", lookup(count_),
        {builder_.whole(indices_), table(weights, 0), builder_.whole(features)});
    return;
  }
  for (std::int64_t index = 0; index < count_; ++index) {
    builder_.launch<kernels::TokenEmbedding>(
        table_name(index) + ": look up the rows", lookup(1),
        {of_table(indices_, index, 1), table(weights, index), of_table(rows_, index, columns_)});
  }
  builder_.launch<kernels::MergeHeads>("put the rows side by side", side_by_side(),
                                       {builder_.whole(rows_), builder_.whole(features)});
}

void EmbeddingTables::add_gradient(int d_features, int gradients, bool fill_with_zeros) const {
  if (!by_table_) {
    if (fill_with_zeros)
      builder_.act("zero the gradient of all tables", FillZero{tables(gradients, 0, count_)});
    builder_.launch<kernels::EmbeddingGradient>(
        "gradient of all tables", lookup(count_),
        {builder_.whole(indices_), builder_.whole(d_features), table(gradients, 0)});
    return;
  }
  builder_.launch<kernels::SplitHeads>("take the rows' gradient apart", side_by_side(),
                                       {builder_.whole(d_features), builder_.whole(d_rows_)});
  for (std::int64_t index = 0; index < count_; ++index) {
    const std::string name = table_name(index);
    if (fill_with_zeros)
      builder_.act(name + ": zero the gradient", FillZero{tables(gradients, index, 1)});
    builder_.launch<kernels::EmbeddingGradient>(
        name + ": gradient", lookup(1),
        {of_table(indices_, index, 1), of_table(d_rows_, index, columns_),
         table(gradients, index)});
  }
}

StepBuilder::Operand EmbeddingTables::table(int flat, std::int64_t index) const {
  return StepBuilder::Operand::from(flat, first_ + index * table_rows_ * columns_);
}

BufferUse EmbeddingTables::tables(int flat, std::int64_t first, std::int64_t count) const {
  const std::int64_t bytes = table_rows_ * columns_ * element_bytes_;
  return StepBuilder::part(flat, first_ * element_bytes_ + first * bytes, count * bytes);
}

StepBuilder::Operand EmbeddingTables::of_table(int buffer, std::int64_t index,
                                               std::int64_t columns) const {
  return StepBuilder::Operand::from(buffer, index * samples_ * columns);
}

kernels::TokenEmbedding::Shape EmbeddingTables::lookup(std::int64_t count) const {
  return {.rows = samples_ * count, .columns = columns_, .table_rows = table_rows_ * count};
}

// The tables take the role of heads, and all samples that of one sequence.
PackedHeadsShape EmbeddingTables::side_by_side() const {
  return {.rows = samples_, .columns = count_ * columns_, .tokens = samples_, .heads = count_};
}

}  // namespace stepgate
