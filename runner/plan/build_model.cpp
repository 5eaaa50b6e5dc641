// SPDX-License-Identifier: MIT
#include "plan/build_model.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "plan/mlp_layers.h"
#include "support/require.h"

namespace stepgate {
namespace {

constexpr std::int64_t word_bytes = 4;
constexpr std::int64_t steps_kept = 8192;  // losses and stamps; a device reads them in time
// Spinning kernels have no features of their own; this many let the batch be read at full speed.
constexpr std::int64_t most_spin_features = 256;

// Chosen so that thousands of steps over a few batches stay finite in every dtype.
constexpr double sgd_learning_rate = 0.01;
constexpr KernelScalars adamw_scalars = {1e-4, 0.9, 0.999, 1e-8, 0.01};

// The parts of the step that every model has.
struct Ends {
  int loss;
  int counter;
  int row_losses;
};

Ends add_ends(StepBuilder& builder, std::int64_t rows) {
  Ends ends{};
  ends.row_losses = builder.add(
      {.name = "row losses", .purpose = Purpose::activations, .bytes = rows * word_bytes});
  ends.loss = builder.add({.name = "loss", .purpose = Purpose::bookkeeping, .bytes = word_bytes});
  ends.counter = builder.add({.name = "step counter", .purpose = Purpose::bookkeeping, .bytes = 8});
  Bookkeeping& kept = builder.plan().bookkeeping;
  kept.capacity = steps_kept;
  kept.losses = builder.add(
      {.name = "loss history", .purpose = Purpose::bookkeeping, .bytes = steps_kept * word_bytes});
  kept.stamps = builder.add(
      {.name = "step stamps", .purpose = Purpose::bookkeeping, .bytes = steps_kept * 8});
  kept.cycles = builder.add(
      {.name = "step cycles", .purpose = Purpose::bookkeeping, .bytes = steps_kept * 16});
  return ends;
}

void report_loss(StepBuilder& builder, const Ends& ends, std::int64_t rows) {
  const Bookkeeping& kept = builder.plan().bookkeeping;
  builder.launch_as(
      DType::fp32, "report the loss", "report_loss", {.rows = rows},
      {builder.whole(ends.row_losses), builder.whole(ends.loss), builder.whole(kept.losses),
       builder.whole(kept.stamps), builder.whole(ends.counter), builder.whole(kept.cycles)},
      {static_cast<double>(kept.capacity)});
}

// A stack of square layers, a = relu(a W^T + b), the last without relu, under a softmax
// cross-entropy.
class Mlp {
 public:
  Mlp(StepBuilder& builder, const Knobs& knobs)
      : builder_(builder),
        knobs_(knobs),
        shape_(mlp_shape(knobs)),
        layers_(shape_.layers),
        hidden_(shape_.hidden),
        rows_(shape_.rows) {
    add_buffers();
  }

  ModelParts build(int batch, std::int64_t sample_bytes) {
    builder_.enter(Phase::forward);
    const int first_reader = static_cast<int>(builder_.plan().operations.size());
    builder_.launch(
        "ingest the batch", "ingest",
        {.rows = rows_, .columns = hidden_, .depth = sample_bytes / word_bytes},
        {builder_.whole(batch), builder_.whole(activations_.front()), builder_.whole(labels_)});
    for (std::int64_t layer = 0; layer < layers_; ++layer) forward(layer);
    const int gradient = activation_gradients_[0];
    builder_.launch("loss", "cross_entropy", {.rows = rows_, .columns = hidden_},
                    {builder_.whole(activations_.back()), builder_.whole(labels_),
                     builder_.whole(gradient), builder_.whole(ends_.row_losses)});
    report_loss(builder_, ends_, rows_);
    builder_.enter(Phase::backward);
    if (accumulates()) builder_.act("zero the gradients", FillZero{builder_.whole(gradients_)});
    for (std::int64_t layer = layers_ - 1; layer >= 0; --layer) backward(layer);
    builder_.enter(Phase::optimizer);
    optimize();
    return {ends_.loss, first_reader, weights_};
  }

 private:
  bool accumulates() const { return knobs_.memory.zero_grad == ZeroGrad::memset; }
  int activation(const std::string& name) {
    return builder_.add(
        {.name = name, .purpose = Purpose::activations, .bytes = shape_.activation_bytes()});
  }

  void add_buffers() {
    const std::int64_t flat_bytes = shape_.flat_bytes();
    builder_.plan().param_bytes = flat_bytes;
    weights_ = builder_.add({.name = "weights",
                             .purpose = Purpose::weights,
                             .bytes = flat_bytes,
                             .content = Content::weights,
                             .dtype = knobs_.model.dtype,
                             .scale = 1.0 / std::sqrt(static_cast<double>(hidden_))});
    gradients_ = builder_.add({.name = "gradients",
                               .purpose = Purpose::gradients,
                               .bytes = flat_bytes,
                               .dtype = knobs_.model.dtype});
    if (knobs_.optim.kind == OptimKind::adamw) {
      for (const char* name : {"first moments", "second moments"}) {
        moments_.push_back(builder_.add({.name = name,
                                         .purpose = Purpose::optimizer_state,
                                         .bytes = shape_.parameters() * word_bytes}));
      }
    }
    activations_.push_back(activation("features"));
    for (std::int64_t layer = 1; layer < layers_; ++layer) {
      activations_.push_back(activation("hidden " + std::to_string(layer)));
    }
    activations_.push_back(activation("logits"));
    activation_gradients_ = {activation("activation gradient 0"),
                             activation("activation gradient 1")};
    labels_ = builder_.add(
        {.name = "labels", .purpose = Purpose::activations, .bytes = rows_ * word_bytes});
    ends_ = add_ends(builder_, rows_);
    if (!knobs_.model.inplace) add_own_products();
    if (knobs_.model.workspace_bytes == 0) return;
    builder_.add({.name = "product workspace",
                  .purpose = Purpose::workspace,
                  .bytes = knobs_.model.workspace_bytes});
  }

  // Instead of being overwritten, a product is kept beside its activation, and the gradient of the
  // one beside that of the other.
  void add_own_products() {
    for (std::int64_t layer = 0; layer < layers_; ++layer)
      products_.push_back(activation("product " + std::to_string(layer)));
    for (std::int64_t layer = 0; layer + 1 < layers_; ++layer)
      product_gradients_.push_back(activation("product gradient " + std::to_string(layer)));
  }

  void forward(std::int64_t layer) {
    const int out = activations_[layer + 1];
    forward_layer(builder_, shape_, layer,
                  {.weights = weights_,
                   .in = activations_[layer],
                   .product = knobs_.model.inplace ? out : products_[layer],
                   .out = out});
  }

  void backward(std::int64_t layer) {
    const std::string name = "layer " + std::to_string(layer);
    const double accumulate = accumulates() ? 1 : 0;
    // The two gradient buffers take turns, from the loss downwards.
    const std::size_t turn = static_cast<std::size_t>((layers_ - 1 - layer) % 2);
    BufferUse gradient = builder_.whole(activation_gradients_[turn]);
    if (layer + 1 < layers_) {
      const BufferUse of_activation = gradient;
      if (!knobs_.model.inplace) gradient = builder_.whole(product_gradients_[layer]);
      builder_.launch(name + ": activation gradient", "relu_gradient", {rows_, hidden_},
                      {builder_.whole(activations_[layer + 1]), of_activation, gradient});
    }
    builder_.launch(name + ": bias gradient", "bias_gradient", {rows_, hidden_},
                    {gradient, shape_.bias(gradients_, layer)}, {accumulate});
    builder_.launch(
        name + ": weight gradient", "matmul", {hidden_, hidden_, rows_},
        {gradient, builder_.whole(activations_[layer]), shape_.weight(gradients_, layer)},
        {1, 0, accumulate});
    if (layer > 0) {
      builder_.launch(name + ": input gradient", "matmul", {rows_, hidden_, hidden_},
                      {gradient, shape_.weight(weights_, layer),
                       builder_.whole(activation_gradients_[1 - turn])});
    }
  }

  void optimize() {
    if (knobs_.optim.impl == OptimImpl::fused) {
      update("update all parameters", 0, shape_.parameters());
      return;
    }
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const std::string name = "layer " + std::to_string(layer);
      const std::int64_t first = layer * hidden_ * (hidden_ + 1);
      update(name + ": update the weight", first, hidden_ * hidden_);
      update(name + ": update the bias", first + hidden_ * hidden_, hidden_);
    }
  }

  void update(const std::string& name, std::int64_t first, std::int64_t count) {
    const auto range = [&](int flat, std::int64_t element) {
      return StepBuilder::part(flat, first * element, count * element);
    };
    std::vector<BufferUse> operands = {range(weights_, shape_.element_bytes),
                                       range(gradients_, shape_.element_bytes)};
    if (knobs_.optim.kind == OptimKind::sgd) {
      builder_.launch(name, "sgd", {.columns = count}, operands, {sgd_learning_rate});
      return;
    }
    for (const int moments : moments_) operands.push_back(range(moments, word_bytes));
    operands.push_back(builder_.whole(ends_.counter));
    builder_.launch(name, "adamw", {.columns = count}, operands, adamw_scalars);
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  MlpShape shape_;
  std::int64_t layers_, hidden_, rows_;
  int weights_ = 0, gradients_ = 0, labels_ = 0;
  std::vector<int> moments_, activations_, activation_gradients_;
  std::vector<int> products_, product_gradients_;  // by layer, where they are not overwritten
  Ends ends_{};
};

// Kernels of a given length on the device's clock; the "loss" is the mean of the batch, so a batch
// that arrived late or was overwritten shows.
ModelParts build_spin(StepBuilder& builder, const Knobs& knobs, int batch,
                      std::int64_t sample_bytes) {
  const std::int64_t words = sample_bytes / word_bytes;
  const std::int64_t features = std::min<std::int64_t>(words - 1, most_spin_features);
  const std::int64_t rows = knobs.batch.size;
  const Ends ends = add_ends(builder, rows * features);
  const int labels =
      builder.add({.name = "labels", .purpose = Purpose::activations, .bytes = rows * word_bytes});
  const int word =
      builder.add({.name = "spin word", .purpose = Purpose::bookkeeping, .bytes = word_bytes});
  builder.enter(Phase::forward);
  const int first_reader = static_cast<int>(builder.plan().operations.size());
  builder.launch_as(DType::fp32, "ingest the batch", "ingest", {rows, features, words},
                    {builder.whole(batch), builder.whole(ends.row_losses), builder.whole(labels)});
  for (std::int64_t index = 0; index < knobs.model.kernels; ++index) {
    builder.launch_as(DType::fp32, "spin " + std::to_string(index), "spin", {},
                      {builder.whole(word)}, {static_cast<double>(knobs.model.kernel_us)});
  }
  report_loss(builder, ends, rows * features);
  return {ends.loss, first_reader};
}

}  // namespace

std::int64_t model_sample_bytes(const ModelKnobs& model) {
  const std::int64_t features = model.kind == ModelKind::mlp ? model.hidden : 1;
  return (features + 1) * word_bytes;
}

ModelParts build_model(StepBuilder& builder, const Knobs& knobs, int batch,
                       std::int64_t sample_bytes) {
  switch (knobs.model.kind) {
    case ModelKind::mlp:
      return Mlp(builder, knobs).build(batch, sample_bytes);
    case ModelKind::spin:
      return build_spin(builder, knobs, batch, sample_bytes);
  }
  require(false, "every model kind is built");
  return {};
}

}  // namespace stepgate
