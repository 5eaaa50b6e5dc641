// SPDX-License-Identifier: MIT
// Attention in a block of a transformer: one tiled kernel, or GEMMs with the scores in memory.
#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"
#include "plan/compose/transformer/transformer_block.h"

namespace stepgate {
namespace {

// The parts q, k and v of all heads in one buffer, one after another.
struct HeadsOf {
  const TransformerShape& shape;
  int buffer;

  StepBuilder::Operand part(std::int64_t index) const {
    return StepBuilder::Operand::from(buffer, index * shape.rows() * shape.hidden);
  }
  StepBuilder::Operand q() const { return part(0); }
  StepBuilder::Operand k() const { return part(1); }
  StepBuilder::Operand v() const { return part(2); }
};

// Shapes of GEMMs over all heads of all samples at once.
struct HeadShapes {
  const TransformerShape& shape;

  CheckedSize width() const { return shape.hidden / shape.heads; }
  CheckedSize count() const { return shape.samples * shape.heads; }
  kernels::Matmul::Shape scores() const { return {shape.seq, shape.seq, width(), count()}; }
  kernels::Matmul::Shape values() const { return {shape.seq, width(), shape.seq, count()}; }
  MatrixShape softmax() const { return {count() * shape.seq, shape.seq}; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(width())); }
};

AttentionShape attention_shape_of(const TransformerShape& shape, const SequenceGroup& group) {
  return {.rows = group.samples * group.tokens,
          .columns = shape.hidden,
          .tokens = group.tokens,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads};
}

// The rows of a group in a buffer with `columns` elements per row.
StepBuilder::Operand rows_of(const SequenceGroup& group, int buffer, std::int64_t columns) {
  return StepBuilder::Operand::from(buffer, group.first_row * columns);
}

// The share of attention's work that is not padding, divided by the share of rows that are not
// padding, which the builder has applied already. The work grows with pairs of tokens.
double seen_share(const TransformerShape& shape) {
  if (!shape.is_padded()) return 1;
  double seen = 0, all = 0;
  for (const SequenceGroup& group : shape.groups) {
    const auto samples = static_cast<double>(std::int64_t{group.samples});
    const auto pairs = [&](std::int64_t tokens) {
      return samples * static_cast<double>(tokens) * static_cast<double>(tokens + 1) / 2;
    };
    seen += pairs(group.unpadded);
    all += pairs(group.tokens);
  }
  const std::int64_t rows = shape.rows(), unpadded = shape.unpadded_rows();
  return seen / all * static_cast<double>(rows) / static_cast<double>(unpadded);
}

}  // namespace

// The shape of all samples, which are equally long.
PackedHeadsShape TransformerBlocks::heads_shape() const {
  return {
      .rows = shape_.rows(), .columns = shape_.hidden, .tokens = shape_.seq, .heads = shape_.heads};
}

void TransformerBlocks::rope(const std::string& name, int qkv, bool inverse) {
  if (shape_.position == ModelPosition::learned) return;
  const std::vector<SequenceGroup> groups = shape_.groups_of_attention();
  for (const SequenceGroup& group : groups) {
    launch<kernels::Rope>(name + of_group(groups, group),
                          {.rows = group.samples * group.tokens,
                           .columns = shape_.qkv(),
                           .tokens = group.tokens,
                           .heads = shape_.heads + shape_.kv_heads},
                          {rows_of(group, qkv, shape_.qkv())},
                          {.width = shape_.hidden / shape_.heads, .inverse = inverse});
  }
}

void TransformerBlocks::repeat_heads(const BlockBuffers& block) {
  if (!shape_.repeats_heads) return;
  launch<kernels::RepeatHeads>(
      "repeat heads", {.rows = shape_.rows(), .columns = shape_.hidden, .heads = shape_.heads},
      {whole(buffers_.temporaries.shared_qkv), whole(block.qkv)}, {.kv_heads = shape_.kv_heads});
}

void TransformerBlocks::repeat_heads_gradient() {
  if (!shape_.repeats_heads) return;
  launch<kernels::RepeatHeadsGradient>(
      "repeat heads gradient",
      {.rows = shape_.rows(), .columns = shape_.hidden, .heads = shape_.heads},
      {whole(buffers_.temporaries.d_qkv), whole(buffers_.temporaries.shared_qkv)},
      {.kv_heads = shape_.kv_heads});
}

void TransformerBlocks::attention(const BlockBuffers& block) {
  if (!fuses(Fuse::attention)) return materialised_attention(block);
  const std::vector<SequenceGroup> groups = shape_.groups_of_attention();
  for (const SequenceGroup& group : groups) {
    launch<kernels::Attention>(
        "attention" + of_group(groups, group), attention_shape_of(shape_, group),
        {rows_of(group, block.qkv, shape_.qkv()), rows_of(group, block.attended, shape_.hidden),
         rows_of(group, block.log_sums, shape_.heads)});
    builder_.need_only(seen_share(shape_));
  }
}

void TransformerBlocks::attention_gradient(const BlockBuffers& block) {
  if (!fuses(Fuse::attention)) return materialised_attention_gradient(block);
  const TemporaryBuffers& temporaries = buffers_.temporaries;
  const std::vector<SequenceGroup> groups = shape_.groups_of_attention();
  for (const SequenceGroup& group : groups) {
    launch<kernels::AttentionGradient>(
        "attention gradient" + of_group(groups, group), attention_shape_of(shape_, group),
        {rows_of(group, block.qkv, shape_.qkv()), rows_of(group, block.attended, shape_.hidden),
         rows_of(group, temporaries.d_hidden, shape_.hidden),
         rows_of(group, block.log_sums, shape_.heads),
         StepBuilder::Operand::from(temporaries.attention_scratch, 0),
         rows_of(group, temporaries.d_qkv, shape_.qkv())},
        shape_.attention_gradient);
    builder_.need_only(needed_of_attention_gradient * seen_share(shape_));
  }
}

void TransformerBlocks::masked_gemm(const std::string& name, const kernels::Matmul::Shape& shape,
                                    const std::vector<StepBuilder::Operand>& operands,
                                    const kernels::Matmul::Attributes& attributes) {
  launch<kernels::Matmul>(name, shape, operands, attributes);
  const auto tokens = static_cast<double>(shape_.seq);
  builder_.need_only((tokens + 1) / (2 * tokens) * seen_share(shape_));
}

void TransformerBlocks::materialised_attention(const BlockBuffers& block) {
  const HeadsOf heads{shape_, block.heads};
  const HeadShapes shapes{shape_};
  const BufferUse probabilities = whole(block.probabilities);
  const BufferUse merged = whole(buffers_.temporaries.merged);
  launch<kernels::SplitHeads>("split heads", heads_shape(), {whole(block.qkv), whole(block.heads)},
                              {.parts = 3});
  masked_gemm("scores", shapes.scores(), {heads.q(), heads.k(), probabilities}, by_transposed);
  launch<kernels::CausalSoftmax>("softmax", shapes.softmax(), {probabilities, probabilities},
                                 {.scale = shapes.scale()});
  masked_gemm("weighted values", shapes.values(), {probabilities, heads.v(), merged});
  launch<kernels::MergeHeads>("merge heads", heads_shape(), {merged, whole(block.attended)});
}

void TransformerBlocks::materialised_attention_gradient(const BlockBuffers& block) {
  const TemporaryBuffers& temporaries = buffers_.temporaries;
  const HeadsOf heads{shape_, block.heads};
  const HeadsOf d_heads{shape_, temporaries.d_heads};
  const HeadShapes shapes{shape_};
  const BufferUse probabilities = whole(block.probabilities);
  const BufferUse d_scores = whole(temporaries.d_probabilities);
  const BufferUse d_out = whole(temporaries.merged);
  launch<kernels::SplitHeads>("split heads of the gradient", heads_shape(),
                              {whole(temporaries.d_hidden), d_out});
  masked_gemm("value gradient", shapes.values(), {probabilities, d_out, d_heads.v()},
              transposed_by);
  masked_gemm("probability gradient", shapes.scores(), {d_out, heads.v(), d_scores}, by_transposed);
  launch<kernels::CausalSoftmaxGradient>("softmax gradient", shapes.softmax(),
                                         {probabilities, d_scores, d_scores},
                                         {.scale = shapes.scale()});
  masked_gemm("query gradient", shapes.values(), {d_scores, heads.k(), d_heads.q()});
  masked_gemm("key gradient", shapes.values(), {d_scores, heads.q(), d_heads.k()}, transposed_by);
  launch<kernels::MergeHeads>("merge heads of the gradient", heads_shape(),
                              {whole(temporaries.d_heads), whole(temporaries.d_qkv)}, {.parts = 3});
}

CheckedSize score_elements(const TransformerShape& shape) {
  return shape.samples * shape.heads * shape.seq * shape.seq;
}

CheckedSize attention_scratch_bytes(const TransformerShape& shape) {
  CheckedSize most;
  for (const SequenceGroup& group : shape.groups_of_attention()) {
    most = std::max(most,
                    CheckedSize(attention_gradient_scratch_bytes(
                        attention_shape_of(shape, group), shape.dtype,
                        shape.attention_gradient.most_scratch, shape.attention_gradient.order())));
  }
  return most;
}

}  // namespace stepgate
