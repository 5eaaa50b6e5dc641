// SPDX-License-Identifier: MIT
// One block of a transformer, with the norms first (Xiong et al.: On layer normalization in the
// transformer architecture, 2020, as GPT-2 has them), forward and backward:
//   mid = x + projection(attention(qkv(norm1(x))))
//   out = mid + down(gelu(up(norm2(mid))))  or  mid + down(silu(gate(norm2(mid))) up(norm2(mid)))
// Attention turns queries and keys by their positions first, where those are not learned, and then
// repeats keys and values that several heads of queries share.
// A block leaves the result of its last GEMM as a branch: the next block or the final norm adds it
// to mid. build_transformer.cpp decides which blocks there are and which of their buffers are
// shared.
#pragma once

#include <string>

#include "kernels/kernels.h"
#include "plan/compose/step_builder.h"
#include "plan/compose/transformer/transformer_shape.h"

namespace stepgate {

// A norm of a sum: what it reads and leaves behind, by index of the buffers.
struct NormBuffers {
  int sum = 0;  // what is normed
  int out = 0;
  int statistics = 0;  // of its rows, for the backward pass
};

// Buffers that a block writes forward and reads backward.
struct BlockBuffers {
  NormBuffers norm1, norm2;
  int qkv = 0;
  int attended = 0;
  int log_sums = 0;       // tiled attention
  int heads = 0;          // materialised attention: q, k and v, head by head
  int probabilities = 0;  // materialised attention
  int up = 0;
  int activation = 0;
};

// Buffers whose content no block keeps.
struct TemporaryBuffers {
  int branch = 0;        // the result of the GEMM that is added next
  int d_stream = 0;      // gradient of the residual stream
  int d_hidden = 0;      // of something as wide as the stream
  int d_mlp = 0;         // of what the GEMM into the MLP leaves
  int d_activation = 0;  // of the MLP's inside; d_mlp where that is as wide
  int d_qkv = 0;
  int shared_qkv = 0;  // shared heads: q, k and v before they are repeated, or their gradients
  int norm_partials = 0;
  int bias_partials = 0;
  int attention_scratch = 0;
  int merged = 0;           // materialised attention: heads of out, or of its gradient
  int d_heads = 0;          // materialised attention
  int d_probabilities = 0;  // materialised attention
};

struct TransformerBuffers {
  int weights = 0;
  int gradients = 0;
  TemporaryBuffers temporaries;
};

class TransformerBlocks {
 public:
  TransformerBlocks(StepBuilder&, const TransformerShape&, const ParameterTable&,
                    const TransformerBuffers&, Fuse);

  // Operations that follow get this prefix to their names.
  void name_as(std::string prefix) { prefix_ = std::move(prefix); }
  // Gradients of parameters that follow are added to what is there, or overwrite it.
  void add_to_gradients(bool add) { accumulate_ = add; }

  // Norm of `stream`, which already is the sum of its inputs.
  void norm(const NormBuffers&, std::size_t weight);
  // The norm of stream + branch; `gemm` is the weight of the GEMM that made the branch.
  void add_and_norm(int stream, std::size_t gemm, const NormBuffers&, std::size_t weight);
  // Computes the gradient of the stream from the gradient of the norm in d_hidden, and adds it
  // unless it is the first.
  void norm_gradient(const NormBuffers&, std::size_t weight, bool first);

  // From norm1's output to mid and norm2's output.
  void attend(std::int64_t layer, const BlockBuffers&);
  // From norm2's output to the activation, and from there to the branch.
  void mlp_up(std::int64_t layer, const BlockBuffers&);
  void mlp_down(std::int64_t layer, const BlockBuffers&);

  // Computes the gradient of the block's input stream from that of its output stream.
  void backward(std::int64_t layer, const BlockBuffers&);

 private:
  template <class Kernel>
  void launch(const std::string& name, const typename Kernel::Shape& shape,
              const std::vector<StepBuilder::Operand>& operands,
              const typename Kernel::Attributes& attributes = {}) {
    builder_.launch<Kernel>(prefix_ + name, shape, operands, attributes);
  }
  BufferUse whole(int buffer) const { return builder_.whole(buffer); }
  BufferUse weight(std::size_t tensor, std::size_t count = 1) const;
  BufferUse gradient(std::size_t tensor, std::size_t count = 1) const;
  void linear(const std::string& name, std::size_t tensor, int in, int out, std::int64_t outputs,
              std::int64_t inputs);
  // A GEMM that comes next in add_and_norm, which adds its bias, if any, where it adds the branch.
  void branch(const std::string& name, std::size_t tensor, int in, std::int64_t inputs);
  void linear_gradient(const std::string& name, std::size_t tensor, int d_out, int in,
                       std::int64_t outputs, std::int64_t inputs);
  void weight_gradient(const std::string& name, std::size_t tensor, int d_out, int in,
                       std::int64_t outputs, std::int64_t inputs);
  // Gradients of a GEMM whose result was added to the stream. Where it has a bias and norms are
  // fused, the norm's gradient before it has summed what the bias needs.
  void branch_gradient(const std::string& name, std::size_t tensor, int in, std::int64_t inputs);
  void input_gradient(const std::string& name, std::size_t tensor, int d_out, int d_in,
                      std::int64_t outputs, std::int64_t inputs);
  // Computes d_mlp from d_activation: the gradient of the activation after mlp_up.
  void activation_gradient(const BlockBuffers&);
  // Turns queries and keys by their positions, or back, unless positions are learned.
  void rope(const std::string& name, int qkv, bool inverse);
  // The buffer of q, k and v at the GEMM. Attention reads `repeated`, or writes its gradient there;
  // both are one buffer unless heads are shared.
  int qkv_of_gemm(int repeated) const {
    return shape_.shares_heads() ? buffers_.temporaries.shared_qkv : repeated;
  }
  void repeat_heads(const BlockBuffers&);
  void repeat_heads_gradient();
  void attention(const BlockBuffers&);
  void attention_gradient(const BlockBuffers&);
  // A GEMM over the [seq][seq] scores of each sequence; causal, so a token needs only the scores of
  // tokens up to it.
  void masked_gemm(const std::string& name, const kernels::Matmul::Shape& shape,
                   const std::vector<StepBuilder::Operand>& operands,
                   const kernels::Matmul::Attributes& attributes = {});
  void materialised_attention(const BlockBuffers&);
  void materialised_attention_gradient(const BlockBuffers&);
  PackedHeadsShape attention_shape() const;
  bool fuses(Fuse least) const { return static_cast<int>(fuse_) >= static_cast<int>(least); }

  StepBuilder& builder_;
  const TransformerShape& shape_;
  const ParameterTable& table_;
  TransformerBuffers buffers_;
  Fuse fuse_;
  std::string prefix_;
  bool accumulate_ = false;
};

// Elements of the scores of attention, [samples][heads][seq][seq].
CheckedSize score_elements(const TransformerShape&);

// Bytes that the gradient of tiled attention leaves anything in.
CheckedSize attention_scratch_bytes(const TransformerShape&);

// Rows of partial sums that the gradient of a norm leaves, how many numbers they are, and most
// numbers that that of a bias leaves.
CheckedSize norm_parts(const TransformerShape&);
CheckedSize norm_partial_elements(const TransformerShape&, Fuse);
CheckedSize bias_partial_elements(const TransformerShape&);

}  // namespace stepgate
