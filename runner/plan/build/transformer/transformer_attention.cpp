// SPDX-License-Identifier: MIT
// Attention in a block of a transformer: one tiled kernel, or products with the scores in memory.
#include <cmath>

#include "kernels/attention_gradient/attention_gradient.h"
#include "plan/build/transformer/transformer_block.h"

namespace stepgate {
namespace {

// What is q, k or v of all heads, in buffers that hold them one after the other.
struct HeadsOf {
  const TransformerShape& shape;
  int buffer;

  BufferUse part(std::int64_t index) const {
    const std::int64_t bytes = shape.rows() * shape.hidden * shape.element_bytes;
    return StepBuilder::part(buffer, index * bytes, bytes);
  }
  BufferUse q() const { return part(0); }
  BufferUse k() const { return part(1); }
  BufferUse v() const { return part(2); }
};

// Products of all heads of all samples at once.
struct HeadShapes {
  const TransformerShape& shape;

  std::int64_t width() const { return shape.hidden / shape.heads; }
  std::int64_t count() const { return shape.samples * shape.heads; }
  KernelShape scores() const { return {shape.seq, shape.seq, width(), count()}; }
  KernelShape values() const { return {shape.seq, width(), shape.seq, count()}; }
  KernelShape softmax() const {
    return {.rows = count() * shape.seq, .columns = shape.seq, .groups = count()};
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(width())); }
};

KernelShape attention_shape_of(const TransformerShape& shape) {
  return {.rows = shape.rows(), .columns = shape.hidden, .depth = shape.seq, .groups = shape.heads};
}

constexpr KernelScalars by_transposed = {0, 1, 0};
constexpr KernelScalars transposed_by = {1, 0, 0};

}  // namespace

KernelShape TransformerBlocks::attention_shape() const {
  return {
      .rows = shape_.rows(), .columns = shape_.hidden, .depth = shape_.seq, .groups = shape_.heads};
}

void TransformerBlocks::attention(const BlockBuffers& block) {
  if (!fuses(Fuse::attention)) return materialised_attention(block);
  launch("attention", "attention", attention_shape(),
         {whole(block.qkv), whole(block.attended), whole(block.log_sums)});
}

void TransformerBlocks::attention_gradient(const BlockBuffers& block) {
  if (!fuses(Fuse::attention)) return materialised_attention_gradient(block);
  const PassingBuffers& passing = buffers_.passing;
  launch("attention gradient", "attention_gradient", attention_shape(),
         {whole(block.qkv), whole(block.attended), whole(passing.d_narrow), whole(block.log_sums),
          whole(passing.attention_scratch), whole(passing.d_qkv)},
         {static_cast<double>(shape_.attention_workspace_bytes)});
}

void TransformerBlocks::materialised_attention(const BlockBuffers& block) {
  const HeadsOf heads{shape_, block.heads};
  const HeadShapes shapes{shape_};
  const BufferUse probabilities = whole(block.probabilities);
  const BufferUse merged = whole(buffers_.passing.merged);
  launch("split heads", "split_heads", attention_shape(), {whole(block.qkv), whole(block.heads)},
         {3});
  launch("scores", "matmul", shapes.scores(), {heads.q(), heads.k(), probabilities}, by_transposed);
  launch("softmax", "causal_softmax", shapes.softmax(), {probabilities, probabilities},
         {shapes.scale()});
  launch("weighted values", "matmul", shapes.values(), {probabilities, heads.v(), merged});
  launch("merge heads", "merge_heads", attention_shape(), {merged, whole(block.attended)}, {1});
}

void TransformerBlocks::materialised_attention_gradient(const BlockBuffers& block) {
  const PassingBuffers& passing = buffers_.passing;
  const HeadsOf heads{shape_, block.heads};
  const HeadsOf d_heads{shape_, passing.d_heads};
  const HeadShapes shapes{shape_};
  const BufferUse probabilities = whole(block.probabilities);
  const BufferUse d_scores = whole(passing.d_probabilities);
  const BufferUse d_out = whole(passing.merged);
  launch("split heads of the gradient", "split_heads", attention_shape(),
         {whole(passing.d_narrow), d_out}, {1});
  launch("value gradient", "matmul", shapes.values(), {probabilities, d_out, d_heads.v()},
         transposed_by);
  launch("probability gradient", "matmul", shapes.scores(), {d_out, heads.v(), d_scores},
         by_transposed);
  launch("softmax gradient", "causal_softmax_gradient", shapes.softmax(),
         {probabilities, d_scores, d_scores}, {shapes.scale()});
  launch("query gradient", "matmul", shapes.values(), {d_scores, heads.k(), d_heads.q()});
  launch("key gradient", "matmul", shapes.values(), {d_scores, heads.q(), d_heads.k()},
         transposed_by);
  launch("merge heads of the gradient", "merge_heads", attention_shape(),
         {whole(passing.d_heads), whole(passing.d_qkv)}, {3});
}

// --- sizes ---------------------------------------------------------------------------------------

std::int64_t score_elements(const TransformerShape& shape) {
  return shape.samples * shape.heads * shape.seq * shape.seq;
}

std::int64_t attention_scratch_bytes(const TransformerShape& shape) {
  return attention_gradient_scratch_bytes(attention_shape_of(shape), shape.dtype,
                                          shape.attention_workspace_bytes);
}

}  // namespace stepgate
