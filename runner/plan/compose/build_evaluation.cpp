// SPDX-License-Identifier: MIT
#include "plan/compose/build_parts.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/require.h"
#include "kernels/kernels.h"
#include "plan/compose/decode_batch.h"
#include "plan/compose/mlp_layers.h"

namespace stepgate {
namespace {

class Evaluation {
 public:
  Evaluation(StepBuilder& builder, const Knobs& knobs, int weights, const InputParts& input,
             std::int64_t sample_bytes)
      : builder_(builder),
        eval_(knobs.eval),
        batch_(knobs.batch),
        shape_(mlp_shape(knobs)),
        weights_(weights),
        input_(input),
        sample_bytes_(sample_bytes),
        words_(add_words(builder, knobs.batch, input.batch, sample_bytes,
                         "evaluation decoded batch")) {
    add_outputs();
    if (!knobs.model.inplace) gemm_ = activation("evaluation gemm");
    if (eval_.save_for_backward) probabilities_ = activation("evaluation probabilities");
    labels_ = builder.add({.name = "evaluation labels",
                           .purpose = Purpose::activations,
                           .bytes = shape_.rows * word_bytes});
    row_losses_ = builder.add({.name = "evaluation row losses",
                               .purpose = Purpose::activations,
                               .bytes = shape_.rows * word_bytes});
  }

  void build() {
    builder_.enter(Phase::evaluation);
    if (eval_.every > 1) builder_.only_every(eval_.every);
    for (std::int64_t batch = 0; batch < eval_.batches; ++batch) evaluate(batch);
    if (!input_.release_batch) return;
    builder_.enter(Phase::evaluation);  // the batch is present in every step
    builder_.act("release the batch", Release{input_.batch});
  }

 private:
  bool keeps_on_device() const { return eval_.store == EvalStore::device; }
  int activation(const std::string& name) {
    return builder_.add(
        {.name = name, .purpose = Purpose::activations, .bytes = shape_.activation_bytes()});
  }

  // Adds the inputs of every layer, and the output of the last one.
  void add_outputs() {
    const auto own = [&](std::int64_t layer) {
      return layer == 0 ? "evaluation features" : "evaluation hidden " + std::to_string(layer);
    };
    const auto in_turn = [](std::int64_t layer) {
      return "evaluation activation " + std::to_string(layer % 2);
    };
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      const bool again = !eval_.save_for_backward && layer >= 2;
      inputs_.push_back(again ? inputs_[static_cast<std::size_t>(layer % 2)]
                              : activation(eval_.save_for_backward ? own(layer) : in_turn(layer)));
    }
    if (keeps_on_device()) {
      for (std::int64_t batch = 0; batch < eval_.batches; ++batch)
        logits_.push_back(activation("evaluation outputs " + std::to_string(batch)));
    } else if (eval_.save_for_backward) {
      logits_.push_back(activation("evaluation logits"));
    } else {
      logits_.push_back(shape_.layers >= 2 ? inputs_[static_cast<std::size_t>(shape_.layers % 2)]
                                           : activation(in_turn(shape_.layers)));
    }
    if (eval_.store != EvalStore::host) return;
    host_outputs_ = builder_.add({.name = "evaluation outputs",
                                  .memory = MemoryKind::pinned,
                                  .purpose = Purpose::staging,
                                  .bytes = eval_.batches * shape_.activation_bytes()});
  }

  int logits_of(std::int64_t batch) const {
    return logits_[keeps_on_device() ? static_cast<std::size_t>(batch) : 0];
  }

  void evaluate(std::int64_t batch) {
    const bool last = batch + 1 == eval_.batches;
    const std::string prefix = eval_.batches > 1 ? "batch " + std::to_string(batch) + ": " : "";
    launch_decode(builder_, batch_, input_.batch, words_, sample_bytes_, prefix);
    builder_.launch<kernels::Ingest>(
        prefix + "ingest the batch",
        {.samples = shape_.rows, .features = shape_.hidden, .words = sample_bytes_ / word_bytes},
        {builder_.whole(words_), builder_.whole(inputs_.front()), builder_.whole(labels_)});
    // The step recorded this event after its last use of the batch. Recording it again makes
    // waiters wait for the evaluation too.
    if (last && input_.consumed) builder_.act("batch is evaluated", RecordEvent{*input_.consumed});
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) forward(batch, layer, prefix);
    loss(batch, prefix);
    if (eval_.store == EvalStore::host) copy_to_host(batch, prefix);
  }

  void forward(std::int64_t batch, std::int64_t layer, const std::string& prefix) {
    const auto index = static_cast<std::size_t>(layer);
    const int out = layer + 1 < shape_.layers ? inputs_[index + 1] : logits_of(batch);
    const LayerBuffers buffers{.weights = {weights_, layer},
                               .in = inputs_[index],
                               .gemm = gemm_.value_or(out),
                               .out = out};
    launch_gemm(builder_, shape_, layer, buffers, prefix);
    launch_activation(builder_, shape_, layer, buffers, prefix);
  }

  void loss(std::int64_t batch, const std::string& prefix) {
    // The gradient from this kernel is unused. A pass that saves tensors has a buffer for it, as in
    // training; otherwise the gradient overwrites the input of the last layer.
    const int gradient = probabilities_.value_or(inputs_.back());
    builder_.launch<kernels::CrossEntropy>(
        prefix + "loss", {.rows = shape_.rows, .columns = shape_.hidden},
        {builder_.whole(logits_of(batch)), builder_.whole(labels_), builder_.whole(gradient),
         builder_.whole(row_losses_)});
    builder_.keep(kept_until_the_loss_of(batch));
  }

  // Buffers that are kept until the loss: those saved for a backward pass, and outputs of earlier
  // batches.
  std::vector<BufferUse> kept_until_the_loss_of(std::int64_t batch) const {
    std::vector<BufferUse> kept;
    if (eval_.save_for_backward) {
      for (const int input : inputs_) kept.push_back(builder_.whole(input));
    }
    const bool ends = batch + 1 == eval_.batches;
    for (std::int64_t earlier = 0; ends && keeps_on_device() && earlier < batch; ++earlier)
      kept.push_back(builder_.whole(logits_of(earlier)));
    return kept;
  }

  void copy_to_host(std::int64_t batch, const std::string& prefix) {
    const std::int64_t bytes = shape_.activation_bytes();
    builder_.act(prefix + "copy the outputs",
                 CopyBytes{StepBuilder::part(host_outputs_, batch * bytes, bytes),
                           builder_.whole(logits_of(batch))});
  }

  StepBuilder& builder_;
  EvalKnobs eval_;
  BatchKnobs batch_;
  MlpShape shape_;
  int weights_;
  InputParts input_;
  std::int64_t sample_bytes_;
  int words_;
  std::vector<int> inputs_;  // by layer
  std::vector<int> logits_;  // by batch where each is kept; otherwise one
  std::optional<int> gemm_;
  std::optional<int> probabilities_;
  int host_outputs_ = 0;
  int labels_ = 0;
  int row_losses_ = 0;
};

}  // namespace

void build_evaluation(StepBuilder& builder, const Knobs& knobs, int weights,
                      const InputParts& input, std::int64_t sample_bytes) {
  require(knobs.model.kind == ModelKind::mlp, "only an mlp is evaluated");
  require(knobs.eval.every == 1 || knobs.batch.sizes.empty(), "turns are evaluated every step");
  Evaluation(builder, knobs, weights, input, sample_bytes).build();
}

}  // namespace stepgate
