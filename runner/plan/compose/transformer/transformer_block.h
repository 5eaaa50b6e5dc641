// SPDX-License-Identifier: MIT
// One block of a transformer with norms before attention and MLP, forward and backward (Xiong et
// al.: On layer normalization in the transformer architecture, 2020; as in GPT-2):
//   mid = x + projection(attention(qkv(norm1(x))))
//   out = mid + down(gelu(up(norm2(mid))))  or  mid + down(silu(gate(norm2(mid))) up(norm2(mid)))
// If positions are not learned, queries and keys are rotated by their positions before attention.
// If heads of queries share keys and values, those are repeated for attention that is composed of
// GEMMs.
// A block leaves the result of its last GEMM as a branch: the next block or the final norm adds it
// to mid. build_transformer.cpp decides which blocks there are and which of their buffers are
// shared.
#pragma once

#include <string>

#include "kernels/kernels.h"
#include "plan/compose/step_builder.h"
#include "plan/compose/transformer/fp8_gemms.h"
#include "plan/compose/transformer/transformer_shape.h"

namespace stepgate {

// A norm of a sum: indices of the buffers that it reads and writes.
struct NormBuffers {
  int sum = 0;  // input of the norm
  int out = 0;
  int statistics = 0;  // of the rows, for the backward pass
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

// Buffers whose content is not needed outside one operation sequence of a block.
struct TemporaryBuffers {
  int branch = 0;        // result of a GEMM that the next norm adds
  int d_stream = 0;      // gradient of the residual stream
  int d_hidden = 0;      // of a tensor as wide as the stream
  int d_mlp = 0;         // gradient of the output of the GEMM into the MLP
  int d_activation = 0;  // gradient of the activation; d_mlp where that is as wide
  int d_qkv = 0;
  int shared_qkv = 0;  // repeated heads: q, k and v before that, or their gradients
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
  // Without Fp8Gemms, which must outlive this, the blocks' GEMMs are in the shape's dtype.
  TransformerBlocks(StepBuilder&, const TransformerShape&, const ParameterTable&,
                    const TransformerBuffers&, Fuse, Fp8Gemms*);

  // Sets the prefix of the names of later operations.
  void name_as(std::string prefix) { prefix_ = std::move(prefix); }
  // Sets whether later gradients of parameters are added to the old values or overwrite them.
  void add_to_gradients(bool add) { accumulate_ = add; }

  // Computes the norm of `stream`, which already is the sum of its inputs.
  void norm(const NormBuffers&, std::size_t weight);
  // Computes the norm of stream + branch; `gemm` is the weight of the GEMM that computed the
  // branch.
  void add_and_norm(int stream, std::size_t gemm, const NormBuffers&, std::size_t weight);
  // Computes the gradient of the stream from the gradient of the norm in d_hidden, and adds it
  // unless it is the first.
  void norm_gradient(const NormBuffers&, std::size_t weight, bool first);

  // Computes mid and norm2's output from norm1's output.
  void attend(std::int64_t layer, const BlockBuffers&);
  // mlp_up computes the activation from norm2's output, and mlp_down the branch from the
  // activation, at once after it.
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
  // Multiplies by a weight, without its bias. In fp8 the input must have been written last.
  void gemm(const std::string& name, std::size_t tensor, int in, int out, std::int64_t outputs,
            std::int64_t inputs);
  // Writes the input of a GEMM in fp8, if that is asked for.
  void quantize_input(const std::string& name, std::size_t tensor, int in);
  void linear(const std::string& name, std::size_t tensor, int in, int out, std::int64_t outputs,
              std::int64_t inputs);
  // Launches a GEMM whose result add_and_norm adds next, with the GEMM's bias if there is one.
  void branch(const std::string& name, std::size_t tensor, int in, std::int64_t inputs);
  void linear_gradient(const std::string& name, std::size_t tensor, int d_out, int in,
                       std::int64_t outputs, std::int64_t inputs);
  void weight_gradient(const std::string& name, std::size_t tensor, int d_out, int in,
                       std::int64_t outputs, std::int64_t inputs);
  // Gradients of a GEMM whose result was added to the stream. If it has a bias and norms are fused,
  // the gradient kernel of the norm has already computed the sums for the bias.
  void branch_gradient(const std::string& name, std::size_t tensor, int in, std::int64_t inputs);
  void input_gradient(const std::string& name, std::size_t tensor, int d_out, int d_in,
                      std::int64_t outputs, std::int64_t inputs);
  // Computes d_mlp from d_stream: the gradients of the GEMM `down` and of the activation before it.
  void activation_gradient(std::size_t down, const BlockBuffers&);
  // Rotates queries and keys by their positions, or back, unless positions are learned.
  void rope(const std::string& name, int qkv, bool inverse);
  // The buffer of q, k and v that the GEMM writes. Attention reads `repeated`, and its gradient
  // writes to it. Both are one buffer unless heads are repeated.
  int qkv_of_gemm(int repeated) const {
    return shape_.repeats_heads ? buffers_.temporaries.shared_qkv : repeated;
  }
  void repeat_heads(const BlockBuffers&);
  void repeat_heads_gradient();
  void attention(const BlockBuffers&);
  void attention_gradient(const BlockBuffers&);
  // A GEMM over the [seq][seq] scores of each sequence. It is causal: a token needs only the scores
  // of tokens up to itself.
  void masked_gemm(const std::string& name, const kernels::Matmul::Shape& shape,
                   const std::vector<StepBuilder::Operand>& operands,
                   const kernels::Matmul::Attributes& attributes = {});
  void materialised_attention(const BlockBuffers&);
  void materialised_attention_gradient(const BlockBuffers&);
  PackedHeadsShape heads_shape() const;
  // Computes the activation of mlp_up.
  void activate(std::size_t up, const BlockBuffers&);
  bool gelu_is_of_gemm() const {
    return fuses(Fuse::epilogue) && shape_.mlp == ModelMlp::gelu && shape_.bias;
  }
  bool fuses(Fuse least) const { return fuse_ >= least; }

  StepBuilder& builder_;
  const TransformerShape& shape_;
  const ParameterTable& table_;
  TransformerBuffers buffers_;
  Fuse fuse_;
  Fp8Gemms* fp8_;
  std::string prefix_;
  bool accumulate_ = false;
};

// Number of elements of the scores of attention, [samples][heads][seq][seq].
CheckedSize score_elements(const TransformerShape&);

// Bytes of scratch of the gradient of tiled attention.
CheckedSize attention_scratch_bytes(const TransformerShape&);

// Number of parts of a norm's gradient, number of elements of its partial sums, and the largest
// number of partial sums of a bias's gradient.
CheckedSize norm_parts(const TransformerShape&);
CheckedSize norm_partial_elements(const TransformerShape&, Fuse);
CheckedSize bias_partial_elements(const TransformerShape&);

}  // namespace stepgate
