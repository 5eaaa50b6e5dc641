// SPDX-License-Identifier: MIT
// The sizes of a transformer and the places of its parameters. transformer_block.h has the
// arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/checked_size.h"
#include "plan/compose/update/parameter_list.h"
#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Consecutive samples of one length.
struct SequenceGroup {
  std::int64_t first_sample = 0;
  CheckedSize first_row = 0;
  CheckedSize samples = 0;
  std::int64_t tokens = 0;    // rows of each
  std::int64_t unpadded = 0;  // rows without padding; they come first
};

struct TransformerShape {
  std::int64_t layers = 0;
  CheckedSize hidden = 0;
  CheckedSize heads = 0;
  CheckedSize kv_heads = 0;    // of keys and of values
  bool repeats_heads = false;  // for attention, which then has keys and values for every head
  CheckedSize seq = 0;
  CheckedSize vocab = 0;    // rows of the token table
  std::int64_t tokens = 0;  // rows of the table that are tokens; they come first
  std::int64_t positions = 0;
  ModelNorm norm = ModelNorm::layer;
  ModelMlp mlp = ModelMlp::gelu;
  CheckedSize ffn = 0;  // width of the MLP
  ModelPosition position = ModelPosition::learned;
  bool tied = false;        // the head's weight is the token embedding
  bool bias = true;         // the blocks' GEMMs have one
  CheckedSize samples = 0;  // samples of one computation: a batch, or a part of it
  DType dtype = DType::fp32;
  kernels::AttentionGradient::Attributes attention_gradient;  // of every launch
  std::int64_t element_bytes = 0;
  std::vector<SequenceGroup> groups;  // of the samples, the longest first

  // Number of outputs of the GEMM into attention: queries, keys and values.
  CheckedSize qkv() const { return hidden + 2 * kv_heads * (hidden / heads); }
  // Width of a row of attention's operand.
  CheckedSize attention_columns() const { return repeats_heads ? 3 * hidden : qkv(); }
  CheckedSize rows() const;  // tokens, with those of padding
  CheckedSize unpadded_rows() const;
  bool is_padded() const { return unpadded_rows() != rows(); }
  // Groups of samples for which attention is launched separately: neighbours with equally many
  // rows.
  std::vector<SequenceGroup> groups_of_attention() const;
  // Number of outputs of the GEMM into the MLP: the gates and then the ups of a row, or ups alone.
  CheckedSize up() const { return mlp == ModelMlp::swiglu ? 2 * ffn : ffn; }
  CheckedSize norm_parameters() const { return norm == ModelNorm::rms ? hidden : 2 * hidden; }
};

TransformerShape transformer_shape(const Knobs&);

// Suffix of the names of operations for one of several groups.
std::string of_group(const std::vector<SequenceGroup>&, const SequenceGroup&);

// Name of the GEMM into the MLP, and of its parameters.
std::string up_name(ModelMlp);

// Indices into the tensors of ParameterTable. A GEMM's weight is [outputs][inputs]; its bias
// follows, if GEMMs have biases. A norm's bias follows its weight without a gap; RMSNorm has no
// bias. In `up` the gates' outputs come before the ups', if there are gates.
struct BlockParameters {
  std::size_t norm1, qkv, projection, norm2, up, down;
};

// The parameters of a transformer. GEMM weights start at multiples of 64 elements, so that a GEMM's
// operands are aligned to 128 bytes.
class ParameterTable : public ParameterList {
 public:
  explicit ParameterTable(const TransformerShape&);

  const BlockParameters& block(std::int64_t layer) const {
    return blocks_[static_cast<std::size_t>(layer)];
  }
  std::size_t embedding() const { return embedding_; }
  std::size_t positions() const { return positions_; }  // only if positions are learned
  std::size_t final_norm() const { return final_norm_; }
  std::size_t head() const { return head_; }  // embedding() if the head is tied

  // The tensor's first element in a flat buffer.
  std::int64_t first_of(std::size_t tensor) const { return tensors()[tensor].first; }

  // The range of that tensor, or of `count` tensors that follow one another without a gap, in a
  // flat buffer with elements of this size.
  BufferUse in(int flat, std::size_t tensor, std::int64_t element_bytes,
               std::size_t count = 1) const;

 private:
  std::size_t add_aligned(std::string name, std::int64_t elements, double scale, double centre = 0);
  std::size_t add_norm(const std::string& name);
  std::size_t add_gemm(const std::string& name, std::int64_t outputs, std::int64_t inputs);

  TransformerShape shape_;
  std::vector<BlockParameters> blocks_;
  std::size_t embedding_ = 0, positions_ = 0, final_norm_ = 0, head_ = 0;
};

}  // namespace stepgate
