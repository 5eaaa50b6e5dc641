// SPDX-License-Identifier: MIT
#include "kernels/kernels.h"
#include "plan/compose/build_model.h"

#include <optional>
#include <string>
#include <vector>

#include "base/require.h"
#include "plan/compose/model_ends.h"
#include "plan/compose/ranks/shard.h"
#include "plan/compose/transformer/transformer_block.h"
#include "plan/compose/update/build_update.h"

namespace stepgate {
namespace {

class Transformer {
 public:
  Transformer(StepBuilder& builder, const Knobs& knobs)
      : builder_(builder), knobs_(knobs), shape_(transformer_shape(knobs)), table_(shape_) {
    add_learned_buffers(builder_, knobs_, table_, update_);
    add_ends_and_inputs();
    if (knobs_.model.fp8 != ModelFp8::none) add_fp8();
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) add_block(layer);
    last_norm_ = add_norm("last", rows_of_hidden("end of the stream"));
    add_temporaries();
  }

  ModelParts build(int batch, std::int64_t sample_bytes) {
    builder_.enter(Phase::forward);
    ingest(batch, sample_bytes);
    builder_.need_share(share_of_rows());
    TransformerBlocks blocks(builder_, shape_, table_,
                             {update_.weights, update_.gradients, temporaries_}, knobs_.launch.fuse,
                             fp8_ ? &*fp8_ : nullptr);
    for (std::int64_t part = 0; part < knobs_.batch.accumulate; ++part) {
      builder_.enter(Phase::forward);
      forward(blocks, part);
      builder_.enter(Phase::backward);
      backward(blocks, part);
    }
    builder_.enter(Phase::forward);
    report_loss(builder_, ends_, all_rows(), all_unpadded_rows());
    builder_.need_share(1);
    builder_.enter(Phase::optimizer);
    build_update(builder_, knobs_, table_, update_);
    if (fp8_) fp8_->end_step();
    return {.loss = ends_.loss,
            .weights = update_.weights,
            .learned = LearnedParts{update_.weights, update_.gradients, table_.places(),
                                    table_.elements()}};
  }

 private:
  // The functions below add buffers.

  bool is_gated() const { return shape_.mlp == ModelMlp::swiglu; }
  bool learns_positions() const { return shape_.position == ModelPosition::learned; }

  CheckedSize all_rows() const { return knobs_.batch.accumulate * shape_.rows(); }
  CheckedSize all_unpadded_rows() const { return knobs_.batch.accumulate * shape_.unpadded_rows(); }
  double share_of_rows() const {
    const std::int64_t rows = shape_.rows(), unpadded = shape_.unpadded_rows();
    return static_cast<double>(unpadded) / static_cast<double>(rows);
  }

  int activation(const std::string& name, CheckedSize bytes) {
    return builder_.add({.name = name, .purpose = Purpose::activations, .bytes = bytes});
  }
  // Adds a buffer [rows][columns] in the model's storage.
  int rows_of(const std::string& name, CheckedSize columns) {
    return activation(name, shape_.rows() * columns * shape_.element_bytes);
  }
  int rows_of_hidden(const std::string& name, std::int64_t times = 1) {
    return rows_of(name, times * shape_.hidden);
  }

  void add_ends_and_inputs() {
    tokens_ = activation("tokens", all_rows() * word_bytes);
    labels_ = activation("labels", all_rows() * word_bytes);
    ends_ = add_ends(builder_, all_rows());
    update_.counter = ends_.counter;
    logits_ = activation("logits", shape_.rows() * shape_.vocab * shape_.element_bytes);
  }

  NormBuffers add_norm(const std::string& name, int sum, std::optional<int> out = {}) {
    const std::int64_t a_row = shape_.norm == ModelNorm::rms ? 1 : 2;
    return {
        .sum = sum,
        .out = out ? *out : rows_of_hidden(name + " norm"),
        .statistics = activation(name + " norm statistics", shape_.rows() * a_row * word_bytes)};
  }

  // Blocks that keep only their input (checkpointing) share their other buffers with the same block
  // of every segment.
  void add_block(std::int64_t layer) {
    const std::int64_t every = knobs_.memory.checkpoint_every;
    const std::int64_t place = every == 0 ? layer : layer % every;
    const std::string name = (every == 0 ? "block " : "recomputed ") + std::to_string(place);
    const bool is_kept = every > 0 && place == 0;
    const std::string stream = (is_kept ? "block " + std::to_string(layer) : name) + " input";
    const bool is_new = every == 0 || layer < every;
    BlockBuffers block =
        is_new ? add_block_buffers(name) : blocks_[static_cast<std::size_t>(place)];
    if (is_new || is_kept) block.norm1.sum = rows_of_hidden(stream);
    blocks_.push_back(block);
  }

  std::string activation_name(const std::string& block) const {
    return block + (is_gated() ? " swiglu" : " gelu");
  }

  // In fp8 the backward pass reads no inputs of GEMMs in 16 bits but attention's result, so that
  // blocks share the others.
  void add_fp8() {
    const std::int64_t every = knobs_.memory.checkpoint_every;
    fp8_.emplace(builder_, shape_, table_, knobs_.model.fp8, every > 0 ? every : shape_.layers);
    normed_ = rows_of_hidden("block norm");
    activation_ = rows_of(activation_name("block"), shape_.ffn);
  }

  bool attention_is_fused() const { return knobs_.launch.fuse >= Fuse::attention; }

  BlockBuffers add_block_buffers(const std::string& name) {
    BlockBuffers block;
    block.norm1 = add_norm(name + " first", 0, normed_);
    block.norm2 = add_norm(name + " second", rows_of_hidden(name + " middle"), normed_);
    block.qkv = rows_of(name + " qkv", shape_.attention_columns());
    block.attended = rows_of_hidden(name + " attention");
    block.up = rows_of(name + " " + up_name(shape_.mlp), shape_.up());
    block.activation = activation_ ? *activation_ : rows_of(activation_name(name), shape_.ffn);
    if (attention_is_fused()) {
      block.log_sums = activation(name + " log sums", shape_.rows() * shape_.heads * word_bytes);
    } else {
      block.heads = rows_of_hidden(name + " heads", 3);
      block.probabilities =
          activation(name + " probabilities", score_elements(shape_) * shape_.element_bytes);
    }
    return block;
  }

  void add_temporaries() {
    temporaries_.branch = rows_of_hidden("branch");
    temporaries_.d_stream = rows_of_hidden("stream gradient");
    temporaries_.d_hidden = rows_of_hidden("hidden gradient");
    temporaries_.d_mlp = rows_of("mlp gradient", shape_.up());
    temporaries_.d_activation =
        is_gated() ? rows_of("mlp activation gradient", shape_.ffn) : temporaries_.d_mlp;
    temporaries_.d_qkv = rows_of("qkv gradient", shape_.attention_columns());
    if (shape_.repeats_heads)
      temporaries_.shared_qkv = rows_of("qkv of shared heads", shape_.qkv());
    temporaries_.norm_partials =
        activation("norm partials", norm_partial_elements(shape_, knobs_.launch.fuse) * word_bytes);
    if (shape_.bias)
      temporaries_.bias_partials =
          activation("bias partials", bias_partial_elements(shape_) * word_bytes);
    if (attention_is_fused()) {
      temporaries_.attention_scratch =
          activation("attention scratch", attention_scratch_bytes(shape_));
      return;
    }
    temporaries_.merged = rows_of_hidden("heads merged");
    temporaries_.d_heads = rows_of_hidden("heads gradient", 3);
    temporaries_.d_probabilities =
        activation("probability gradient", score_elements(shape_) * shape_.element_bytes);
  }

  // The prefix of operation names that tells the part of the batch, if there are several parts.
  std::string prefix(std::int64_t part) const {
    return knobs_.batch.accumulate == 1 ? "" : "part " + std::to_string(part) + ": ";
  }
  static std::string block_name(std::int64_t layer) {
    return "block " + std::to_string(layer) + ": ";
  }
  // The words of one part in a buffer with one word per token.
  StepBuilder::Operand words(int buffer, std::int64_t part, std::int64_t first_row = 0) const {
    return StepBuilder::Operand::from(buffer, part * shape_.rows() + first_row);
  }
  BufferUse weight(std::size_t tensor) const {
    return table_.in(update_.weights, tensor, shape_.element_bytes);
  }
  BufferUse gradient(std::size_t tensor) const {
    return table_.in(update_.gradients, tensor, shape_.element_bytes);
  }
  // The rows of the position table that a sequence uses.
  StepBuilder::Operand used_positions(int flat) const {
    return StepBuilder::Operand::from(flat, table_.first_of(table_.positions()));
  }

  void cast_weights(const std::string& name) {
    for (const ParameterTensor& tensor : table_.tensors())
      builder_.launch<kernels::Narrow>(name + "cast " + tensor.name, {.numbers = tensor.elements},
                                       {StepBuilder::Operand::from(*update_.master, tensor.first),
                                        StepBuilder::Operand::from(update_.weights, tensor.first)});
  }

  void forward(TransformerBlocks& blocks, std::int64_t part) {
    const std::string name = prefix(part);
    if (update_.master && knobs_.optim.cast == MasterCast::forward) cast_weights(name);
    embed(name, part);
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      const BlockBuffers& block = blocks_[static_cast<std::size_t>(layer)];
      blocks.name_as(name + block_name(layer));
      enter_block(blocks, layer);
      if (fp8_ && part == 0) fp8_->quantize_weights(name, table_, layer, update_.weights);
      blocks.attend(layer, block);
      blocks.mlp_up(layer, block);
      blocks.mlp_down(layer, block);
    }
    blocks.name_as(name + "end: ");
    blocks.add_and_norm(blocks_.back().norm2.sum, table_.block(shape_.layers - 1).down, last_norm_,
                        table_.final_norm());
    builder_.launch<kernels::Matmul>(
        name + "logits", {shape_.rows(), shape_.vocab, shape_.hidden},
        {builder_.whole(last_norm_.out), weight(table_.head()), builder_.whole(logits_)},
        {.transpose_b = true});
    builder_.need_only(share_of_tokens());
    launch_loss(name, part);
  }

  // Launches ingest, separately for the samples of each length. Packed samples have only their own
  // tokens; padded ones have labels only at these.
  void ingest(int batch, std::int64_t sample_bytes) {
    if (knobs_.batch.lengths.empty()) {
      return builder_.launch<kernels::IngestTokens>(
          "ingest the batch",
          {.samples = knobs_.batch.size,
           .positions = shape_.seq,
           .words = sample_bytes / word_bytes},
          {builder_.whole(batch), builder_.whole(tokens_), builder_.whole(labels_)},
          {.vocabulary = shape_.tokens});
    }
    CheckedSize first_word;
    for (const SequenceGroup& group : shape_.groups) {
      const std::int64_t words = knobs_.batch.packed ? group.tokens + 1 : sample_bytes / word_bytes;
      builder_.launch<kernels::IngestTokens>(
          "ingest samples of " + std::to_string(group.unpadded),
          {.samples = group.samples, .positions = group.tokens, .words = words},
          {StepBuilder::Operand::from(batch, first_word),
           StepBuilder::Operand::from(tokens_, group.first_row),
           StepBuilder::Operand::from(labels_, group.first_row)},
          {.vocabulary = shape_.tokens, .length = group.unpadded});
      first_word += group.samples * words;
    }
  }

  void embed(const std::string& name, std::int64_t part) {
    const StepBuilder::Operand tokens = words(tokens_, part);
    const BufferUse table = weight(table_.embedding());
    const BufferUse stream = builder_.whole(blocks_[0].norm1.sum);
    if (!learns_positions()) {
      return builder_.launch<kernels::TokenEmbedding>(name + "embedding", embedding_shape(),
                                                      {tokens, table, stream});
    }
    const std::vector<SequenceGroup> groups = shape_.groups_of_attention();
    for (const SequenceGroup& group : groups) {
      builder_.launch<kernels::Embedding>(
          name + "embedding" + of_group(groups, group),
          {group.samples * group.tokens, shape_.hidden, shape_.vocab, group.tokens},
          {words(tokens_, part, group.first_row), table, used_positions(update_.weights),
           StepBuilder::Operand::from(blocks_[0].norm1.sum, group.first_row * shape_.hidden)});
    }
  }

  // The first block's input comes from the embedding, that of another from the block before it.
  void enter_block(TransformerBlocks& blocks, std::int64_t layer) {
    const NormBuffers& norm = blocks_[static_cast<std::size_t>(layer)].norm1;
    const std::size_t parameters = table_.block(layer).norm1;
    if (layer == 0) return blocks.norm(norm, parameters);
    blocks.add_and_norm(blocks_[static_cast<std::size_t>(layer - 1)].norm2.sum,
                        table_.block(layer - 1).down, norm, parameters);
  }

  // Launches the loss. The gradient of the logits overwrites them; it is the gradient of the mean
  // over the whole batch.
  void launch_loss(const std::string& name, std::int64_t part) {
    const BufferUse logits = builder_.whole(logits_);
    std::vector<StepBuilder::Operand> operands = {logits, words(labels_, part)};
    const bool scaled = scales_the_loss(knobs_);
    if (scaled) operands.push_back(loss_scale(update_));
    operands.push_back(logits);
    operands.push_back(words(ends_.row_losses, part));
    builder_.launch(
        name + "loss", scaled ? kernels::ScaledCrossEntropy::name : kernels::CrossEntropy::name,
        shape_.dtype, MatrixShape{shape_.rows(), shape_.vocab}, operands,
        kernels::CrossEntropy::Attributes{.rows_of_mean = all_unpadded_rows(),
                                          .classes = has_spare_rows() ? shape_.tokens : 0});
  }

  void backward(TransformerBlocks& blocks, std::int64_t part) {
    const std::string name = prefix(part);
    const bool is_first = part == 0 || reduces_every_part_apart(knobs_);
    const bool accumulate = !is_first || zeroes();
    if (is_first && zeroes())
      builder_.act("zero the gradients", FillZero{builder_.whole(update_.gradients)});
    blocks.add_to_gradients(accumulate);
    builder_.launch<kernels::Matmul>(
        name + "head weight gradient", {shape_.vocab, shape_.hidden, shape_.rows()},
        {builder_.whole(logits_), builder_.whole(last_norm_.out), gradient(table_.head())},
        {.transpose_a = true, .accumulate = accumulate});
    builder_.need_only(share_of_tokens());
    builder_.launch<kernels::Matmul>(
        name + "head input gradient", {shape_.rows(), shape_.hidden, shape_.vocab},
        {builder_.whole(logits_), weight(table_.head()), builder_.whole(temporaries_.d_hidden)});
    builder_.need_only(share_of_tokens());
    blocks.name_as(name + "end: ");
    blocks.norm_gradient(last_norm_, table_.final_norm(), true);
    for (std::int64_t layer = shape_.layers - 1; layer >= 0; --layer) {
      const std::int64_t every = knobs_.memory.checkpoint_every;
      if (every > 0 && (layer == shape_.layers - 1 || (layer + 1) % every == 0))
        recompute(blocks, name, layer / every * every, layer);
      blocks.name_as(name + block_name(layer));
      blocks.backward(layer, blocks_[static_cast<std::size_t>(layer)]);
    }
    embedding_gradient(name, part, accumulate);
  }

  bool has_spare_rows() const { return shape_.tokens < shape_.vocab; }
  // Share of the head's output columns that are tokens; the model does not need the others.
  double share_of_tokens() const {
    const std::int64_t rows = shape_.vocab;
    return static_cast<double>(shape_.tokens) / static_cast<double>(rows);
  }
  bool zeroes() const { return knobs_.memory.zero_grad == ZeroGrad::memset; }

  // Recomputes everything of these blocks that the backward pass reads, from the first block's
  // input.
  void recompute(TransformerBlocks& blocks, const std::string& name, std::int64_t first,
                 std::int64_t last) {
    builder_.again([&] {
      for (std::int64_t layer = first; layer <= last; ++layer) {
        const BlockBuffers& block = blocks_[static_cast<std::size_t>(layer)];
        blocks.name_as(name + block_name(layer) + "again: ");
        if (layer == first) {
          blocks.norm(block.norm1, table_.block(layer).norm1);
        } else {
          enter_block(blocks, layer);
        }
        blocks.attend(layer, block);
        blocks.mlp_up(layer, block);
        if (layer < last) blocks.mlp_down(layer, block);
      }
    });
  }

  kernels::TokenEmbedding::Shape embedding_shape() const {
    return {shape_.rows(), shape_.hidden, shape_.vocab};
  }

  // Launches the gradients of the embeddings. The token gradient is added to zeros, or with a tied
  // head to its gradient of the same table, which comes first. Positions are summed as columns of a
  // matrix with one row per sample. The longest samples come first and have all used positions.
  void embedding_gradient(const std::string& name, std::int64_t part, bool accumulate) {
    const BufferUse d_table = gradient(table_.embedding());
    const BufferUse d_stream = builder_.whole(temporaries_.d_stream);
    if (!accumulate && !shape_.tied)
      builder_.act(name + "zero the embedding's gradient", FillZero{d_table});
    builder_.launch<kernels::EmbeddingGradient>(name + "embedding gradient", embedding_shape(),
                                                {words(tokens_, part), d_stream, d_table});
    if (!learns_positions()) return;
    const std::vector<SequenceGroup> groups = shape_.groups_of_attention();
    for (const SequenceGroup& group : groups) {
      builder_.launch<kernels::BiasGradient>(
          name + "position gradient" + of_group(groups, group),
          {.rows = group.samples, .columns = group.tokens * shape_.hidden},
          {StepBuilder::Operand::from(temporaries_.d_stream, group.first_row * shape_.hidden),
           used_positions(update_.gradients)},
          {.accumulate = accumulate || group.first_row > 0});
    }
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  TransformerShape shape_;
  ParameterTable table_;
  UpdateBuffers update_{};
  ModelEnds ends_{};
  TemporaryBuffers temporaries_{};
  std::vector<BlockBuffers> blocks_;
  NormBuffers last_norm_{};
  std::optional<Fp8Gemms> fp8_;
  std::optional<int> normed_, activation_;  // shared by all blocks in fp8
  int tokens_ = 0, labels_ = 0, logits_ = 0;
};

}  // namespace

ModelParts build_transformer(StepBuilder& builder, const Knobs& knobs, int batch,
                             std::int64_t sample_bytes) {
  return Transformer(builder, knobs).build(batch, sample_bytes);
}

}  // namespace stepgate
