// SPDX-License-Identifier: MIT
// The embedding tables of a recommender (Naumov et al.: Deep Learning Recommendation Model, 2019).
// A sample has an index into each table. The rows at these indices, side by side, are the features
// of the layers above, which build_mlp.cpp builds.
// With `launch.fuse` none every table has a kernel of its own in either direction, as each module
// of torch.nn has, and one more kernel puts the rows side by side. Otherwise the tables follow one
// another in one large table, in which one kernel looks up all rows. This is FBGEMM's table-batched
// embedding; it writes rows of features directly.
// Gradients are dense: they are as large as the tables, are filled with zeros in every step, and
// the update uses all of them.
#pragma once

#include "kernels/embedding/embedding.h"
#include "plan/compose/step_builder.h"
#include "plan/compose/update/parameter_list.h"
#include "scenario/scenario.h"

namespace stepgate {

class EmbeddingTables {
 public:
  // Appends the tables to the parameters, one after the other without a gap.
  EmbeddingTables(StepBuilder&, const Knobs&, ParameterList&);

  // Adds all buffers except parameters and features.
  void add_buffers();

  // The functions below take indices of buffers: flat ones of all parameters, or of their
  // gradients, and rows of features, one per sample.

  // Launches the lookups, which read the batch.
  void look_up(int batch, std::int64_t sample_bytes, int weights, int features, int labels) const;

  // Adds the gradient of the features to that of the tables, or to zeros if `fill_with_zeros`.
  void add_gradient(int d_features, int gradients, bool fill_with_zeros) const;

 private:
  // The rows of one table in a flat buffer, and below the rows of `count` tables.
  StepBuilder::Operand table(int flat, std::int64_t index) const;
  BufferUse tables(int flat, std::int64_t first, std::int64_t count) const;
  StepBuilder::Operand of_table(int buffer, std::int64_t index, std::int64_t columns) const;
  // The shape of a lookup in `count` tables, with one index per sample and table.
  kernels::TokenEmbedding::Shape lookup(std::int64_t count) const;
  PackedHeadsShape side_by_side() const;

  StepBuilder& builder_;
  std::int64_t count_, table_rows_, columns_, samples_, element_bytes_;
  std::int64_t first_ = 0;  // element of the flat buffers
  bool by_table_;
  int indices_ = 0;
  int rows_ = 0, d_rows_ = 0;  // looked-up rows by table, and their gradients
};

}  // namespace stepgate
