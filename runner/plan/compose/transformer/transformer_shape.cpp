// SPDX-License-Identifier: MIT
#include "plan/compose/transformer/transformer_shape.h"

#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace stepgate {
namespace {

constexpr double embedding_scale = 0.035;  // as wide as GPT-2's normal numbers of deviation 0.02
constexpr double norm_scale = 0.1;         // so that a wrong norm shows in the first step

// The default MLP width. Two matrices of width 4 hidden or three of width 8/3 hidden have equally
// many parameters (Touvron et al.: LLaMA, 2023, section 2.2).
std::int64_t usual_ffn(const ModelKnobs& model) {
  constexpr std::int64_t unit = 64;
  if (model.mlp == ModelMlp::gelu) return 4 * model.hidden;
  return (8 * model.hidden + 3 * unit - 1) / (3 * unit) * unit;
}

std::int64_t rounded_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

// Groups the samples of a batch by their lengths.
std::vector<SequenceGroup> sequence_groups(const Knobs& knobs) {
  const std::int64_t samples = knobs.batch.size / knobs.batch.accumulate;
  const std::int64_t seq = knobs.model.seq;
  if (knobs.batch.lengths.empty()) return {{.samples = samples, .tokens = seq, .unpadded = seq}};
  std::map<std::int64_t, std::int64_t, std::greater<>> turns_of;  // by length
  for (const std::int64_t length : knobs.batch.lengths) ++turns_of[length];
  const std::int64_t of_a_turn = samples / std::ssize(knobs.batch.lengths);
  std::vector<SequenceGroup> groups;
  SequenceGroup next;
  for (const auto& [length, turns] : turns_of) {
    next.samples = turns * of_a_turn;
    next.tokens = knobs.batch.packed ? length : seq;
    next.unpadded = length;
    groups.push_back(next);
    next.first_sample += next.samples;
    next.first_row += next.samples * next.tokens;
  }
  return groups;
}

}  // namespace

CheckedSize TransformerShape::rows() const {
  CheckedSize sum;
  for (const SequenceGroup& group : groups) sum += group.samples * group.tokens;
  return sum;
}

CheckedSize TransformerShape::unpadded_rows() const {
  CheckedSize sum;
  for (const SequenceGroup& group : groups) sum += group.samples * group.unpadded;
  return sum;
}

std::vector<SequenceGroup> TransformerShape::groups_of_attention() const {
  std::vector<SequenceGroup> merged;
  for (const SequenceGroup& group : groups) {
    if (merged.empty() || merged.back().tokens != group.tokens)
      merged.push_back(group);
    else
      merged.back().samples += group.samples;
  }
  return merged;
}

TransformerShape transformer_shape(const Knobs& knobs) {
  const ModelKnobs& model = knobs.model;
  const std::int64_t kv_heads = model.kv_heads.value_or(model.heads);
  return {.layers = model.layers,
          .hidden = model.hidden,
          .heads = model.heads,
          .kv_heads = kv_heads,
          .repeats_heads = kv_heads != model.heads && knobs.launch.fuse < Fuse::attention,
          .seq = model.seq,
          .vocab = rounded_up(model.vocab, model.vocab_multiple),
          .tokens = model.vocab,
          .positions = model.positions.value_or(model.seq),
          .norm = model.norm,
          .mlp = model.mlp,
          .ffn = model.ffn.value_or(usual_ffn(model)),
          .position = model.position,
          .tied = model.tied,
          .bias = model.bias,
          .samples = knobs.batch.size / knobs.batch.accumulate,
          .dtype = model.dtype,
          .attention_gradient = {.most_scratch = model.attention_workspace_bytes,
                                 .any_order = knobs.launch.attention_sums == AttentionSums::any},
          .element_bytes = bytes_of(model.dtype),
          .groups = sequence_groups(knobs)};
}

std::string of_group(const std::vector<SequenceGroup>& groups, const SequenceGroup& group) {
  return groups.size() == 1 ? "" : " of " + std::to_string(group.tokens) + " tokens";
}

std::string up_name(ModelMlp mlp) {
  return mlp == ModelMlp::swiglu ? "gate and up" : "up";
}

ParameterTable::ParameterTable(const TransformerShape& shape) : shape_(shape) {
  const std::int64_t hidden = shape.hidden;
  embedding_ = add_aligned("token embedding", shape.vocab * hidden, embedding_scale);
  if (shape.position == ModelPosition::learned)
    positions_ = add_aligned("position embedding", shape.positions * hidden, embedding_scale);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string name = "block " + std::to_string(layer) + ": ";
    begin_unit();
    BlockParameters block{};
    block.norm1 = add_norm(name + "norm 1");
    block.qkv = add_gemm(name + "qkv", shape.qkv(), hidden);
    block.projection = add_gemm(name + "projection", hidden, hidden);
    block.norm2 = add_norm(name + "norm 2");
    block.up = add_gemm(name + up_name(shape.mlp), shape.up(), hidden);
    block.down = add_gemm(name + "down", hidden, shape.ffn);
    blocks_.push_back(block);
  }
  begin_unit();
  final_norm_ = add_norm("final norm");
  head_ = shape.tied ? embedding_
                     : add_aligned("head", shape.vocab * hidden,
                                   1 / std::sqrt(static_cast<double>(hidden)));
  align();
}

std::size_t ParameterTable::add_aligned(std::string name, std::int64_t elements, double scale,
                                        double centre) {
  align();
  return add(std::move(name), elements, scale, centre);
}

std::size_t ParameterTable::add_norm(const std::string& name) {
  const std::size_t weight = add_aligned(name + " weight", shape_.hidden, norm_scale, 1);
  if (shape_.norm == ModelNorm::layer) add(name + " bias", shape_.hidden, norm_scale);
  return weight;
}

// The initial values are those of torch.nn.Linear: uniform within +-1 / sqrt(inputs).
std::size_t ParameterTable::add_gemm(const std::string& name, std::int64_t outputs,
                                     std::int64_t inputs) {
  const double scale = 1 / std::sqrt(static_cast<double>(inputs));
  const std::size_t weight = add_aligned(name + " weight", outputs * inputs, scale);
  if (shape_.bias) add_aligned(name + " bias", outputs, scale);
  return weight;
}

BufferUse ParameterTable::in(int flat, std::size_t tensor, std::int64_t element_bytes,
                             std::size_t count) const {
  const std::int64_t first = first_of(tensor);
  const ParameterTensor& last = tensors()[tensor + count - 1];
  return {flat, first * element_bytes, (last.first + last.elements - first) * element_bytes};
}

}  // namespace stepgate
