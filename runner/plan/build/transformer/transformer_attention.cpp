// SPDX-License-Identifier: MIT
// Attention in a block of a transformer: one tiled kernel, or GEMMs with the scores in memory.
#include <cmath>

#include "kernels/kernels.h"
#include "plan/build/transformer/transformer_block.h"

namespace stepgate {
namespace {

// What is q, k or v of all heads, in buffers that hold them one after the other.
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

// GEMMs of all heads of all samples at once.
struct HeadShapes {
  const TransformerShape& shape;

  CheckedSize width() const { return shape.hidden / shape.heads; }
  CheckedSize count() const { return shape.samples * shape.heads; }
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

constexpr kernels::Matmul::Attributes by_transposed = {.transpose_b = true};
constexpr kernels::Matmul::Attributes transposed_by = {.transpose_a = true};

}  // namespace

KernelShape TransformerBlocks::attention_shape() const {
  return {
      .rows = shape_.rows(), .columns = shape_.hidden, .depth = shape_.seq, .groups = shape_.heads};
}

void TransformerBlocks::rope(const std::string& name, int qkv, bool inverse) {
  if (shape_.position == ModelPosition::learned) return;
  launch<kernels::Rope>(name,
                        {.rows = shape_.rows(),
                         .columns = shape_.qkv(),
                         .depth = shape_.seq,
                         .groups = shape_.heads + shape_.kv_heads},
                        {whole(qkv)}, {.width = shape_.hidden / shape_.heads, .inverse = inverse});
}

void TransformerBlocks::repeat_heads(const BlockBuffers& block) {
  if (!shape_.shares_heads()) return;
  launch<kernels::RepeatHeads>(
      "repeat heads", {.rows = shape_.rows(), .columns = shape_.hidden, .groups = shape_.heads},
      {whole(buffers_.temporaries.shared_qkv), whole(block.qkv)}, {.kv_heads = shape_.kv_heads});
}

void TransformerBlocks::repeat_heads_gradient() {
  if (!shape_.shares_heads()) return;
  launch<kernels::RepeatHeadsGradient>(
      "repeat heads gradient",
      {.rows = shape_.rows(), .columns = shape_.hidden, .groups = shape_.heads},
      {whole(buffers_.temporaries.d_qkv), whole(buffers_.temporaries.shared_qkv)},
      {.kv_heads = shape_.kv_heads});
}

void TransformerBlocks::attention(const BlockBuffers& block) {
  if (!fuses(Fuse::attention)) return materialised_attention(block);
  launch<kernels::Attention>("attention", attention_shape(),
                             {whole(block.qkv), whole(block.attended), whole(block.log_sums)});
}

void TransformerBlocks::attention_gradient(const BlockBuffers& block) {
  if (!fuses(Fuse::attention)) return materialised_attention_gradient(block);
  const TemporaryBuffers& temporaries = buffers_.temporaries;
  launch<kernels::AttentionGradient>(
      "attention gradient", attention_shape(),
      {whole(block.qkv), whole(block.attended), whole(temporaries.d_hidden), whole(block.log_sums),
       whole(temporaries.attention_scratch), whole(temporaries.d_qkv)},
      {.most_scratch = shape_.attention_workspace_bytes});
  // One of its five GEMMs makes the scores again.
  constexpr double share_of_gradients = 4.0 / 5;
  builder_.need_only(share_of_gradients);
}

void TransformerBlocks::masked_gemm(const std::string& name, const KernelShape& shape,
                                    const std::vector<StepBuilder::Operand>& operands,
                                    const kernels::Matmul::Attributes& attributes) {
  launch<kernels::Matmul>(name, shape, operands, attributes);
  const auto tokens = static_cast<double>(shape_.seq);
  builder_.need_only((tokens + 1) / (2 * tokens));
}

void TransformerBlocks::materialised_attention(const BlockBuffers& block) {
  const HeadsOf heads{shape_, block.heads};
  const HeadShapes shapes{shape_};
  const BufferUse probabilities = whole(block.probabilities);
  const BufferUse merged = whole(buffers_.temporaries.merged);
  launch<kernels::SplitHeads>("split heads", attention_shape(),
                              {whole(block.qkv), whole(block.heads)}, {.parts = 3});
  masked_gemm("scores", shapes.scores(), {heads.q(), heads.k(), probabilities}, by_transposed);
  launch<kernels::CausalSoftmax>("softmax", shapes.softmax(), {probabilities, probabilities},
                                 {.scale = shapes.scale()});
  masked_gemm("weighted values", shapes.values(), {probabilities, heads.v(), merged});
  launch<kernels::MergeHeads>("merge heads", attention_shape(), {merged, whole(block.attended)});
}

void TransformerBlocks::materialised_attention_gradient(const BlockBuffers& block) {
  const TemporaryBuffers& temporaries = buffers_.temporaries;
  const HeadsOf heads{shape_, block.heads};
  const HeadsOf d_heads{shape_, temporaries.d_heads};
  const HeadShapes shapes{shape_};
  const BufferUse probabilities = whole(block.probabilities);
  const BufferUse d_scores = whole(temporaries.d_probabilities);
  const BufferUse d_out = whole(temporaries.merged);
  launch<kernels::SplitHeads>("split heads of the gradient", attention_shape(),
                              {whole(temporaries.d_hidden), d_out});
  masked_gemm("value gradient", shapes.values(), {probabilities, d_out, d_heads.v()},
              transposed_by);
  masked_gemm("probability gradient", shapes.scores(), {d_out, heads.v(), d_scores}, by_transposed);
  launch<kernels::CausalSoftmaxGradient>("softmax gradient", shapes.softmax(),
                                         {probabilities, d_scores, d_scores},
                                         {.scale = shapes.scale()});
  masked_gemm("query gradient", shapes.values(), {d_scores, heads.k(), d_heads.q()});
  masked_gemm("key gradient", shapes.values(), {d_scores, heads.q(), d_heads.k()}, transposed_by);
  launch<kernels::MergeHeads>("merge heads of the gradient", attention_shape(),
                              {whole(temporaries.d_heads), whole(temporaries.d_qkv)}, {.parts = 3});
}

// --- sizes ---------------------------------------------------------------------------------------

CheckedSize score_elements(const TransformerShape& shape) {
  return shape.samples * shape.heads * shape.seq * shape.seq;
}

CheckedSize attention_scratch_bytes(const TransformerShape& shape) {
  return attention_gradient_scratch_bytes(attention_shape_of(shape), shape.dtype,
                                          shape.attention_workspace_bytes);
}

}  // namespace stepgate
