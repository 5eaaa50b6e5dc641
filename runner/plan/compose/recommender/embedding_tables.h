// SPDX-License-Identifier: MIT
// The tables of a recommender (Naumov et al.: Deep Learning Recommendation Model, 2019): a sample
// has an index into each of them, and the rows that it finds, side by side, are the features of the
// layers above. build_mlp.cpp builds those layers.
// With `launch.fuse` none every table has a kernel of its own in either direction, as each module
// of torch.nn has. One more puts their rows side by side. Else the tables are one, in which they
// lie one after the other, and one kernel looks up all rows, which is FBGEMM's table-batched
// embedding: a row of that is features already.
// Gradients are dense: as large as the tables, filled with zeros in every step, and all of them are
// used by the update.
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

  // Adds the buffers except parameters and features.
  void add_buffers();

  // The functions below take indices of buffers: flat ones of all parameters, or of their
  // gradients, and rows of features, one a sample.

  // Reads the batch.
  void look_up(int batch, std::int64_t sample_bytes, int weights, int features, int labels) const;

  // Adds the gradient of the features to that of the tables, or to zeros if `fill_with_zeros`.
  void add_gradient(int d_features, int gradients, bool fill_with_zeros) const;

 private:
  // Rows of the tables and of what is found in them.
  StepBuilder::Operand table(int flat, std::int64_t index) const;
  BufferUse tables(int flat, std::int64_t first, std::int64_t count) const;
  StepBuilder::Operand of_table(int buffer, std::int64_t index, std::int64_t columns) const;
  // Shape of a lookup in `count` tables, for so many indices of each sample.
  kernels::TokenEmbedding::Shape lookup(std::int64_t count) const;
  PackedHeadsShape side_by_side() const;

  StepBuilder& builder_;
  std::int64_t count_, table_rows_, columns_, samples_, element_bytes_;
  std::int64_t first_ = 0;  // element of the flat buffers
  bool by_table_;
  int indices_ = 0;
  int rows_ = 0, d_rows_ = 0;  // by table: what is found, one table after the other
};

}  // namespace stepgate
