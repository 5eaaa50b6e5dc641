// SPDX-License-Identifier: MIT
#include "plan/build_model.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "plan/build_offload.h"
#include "support/require.h"

namespace stepgate {
namespace {

constexpr std::int64_t word_bytes = 4;
constexpr std::int64_t steps_kept = 8192;  // losses and stamps; a device reads them in time
// Spinning kernels have no features of their own; this many let the batch be read at full speed.
constexpr std::int64_t most_spin_features = 256;
constexpr std::int64_t workspace_bytes = 32 * 1024 * 1024;  // what cuBLAS recommends for Hopper

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
        layers_(knobs.model.layers),
        hidden_(knobs.model.hidden),
        rows_(knobs.batch.size),
        element_(bytes_of(knobs.model.dtype)) {
    add_buffers();
  }

  ModelParts build(int batch, std::int64_t sample_bytes) {
    builder_.enter(Phase::forward);
    const int first_reader = static_cast<int>(builder_.plan().operations.size());
    builder_.launch(
        "ingest the batch", "ingest",
        {.rows = rows_, .columns = hidden_, .depth = sample_bytes / word_bytes},
        {builder_.whole(batch), builder_.whole(activations_.front()), builder_.whole(labels_)});
    if (offloaded_) offloaded_->is_written(0);
    for (std::int64_t layer = 0; layer < layers_; ++layer) forward(layer);
    const int gradient = activation_gradients_[0];
    builder_.launch("loss", "cross_entropy", {.rows = rows_, .columns = hidden_},
                    {builder_.whole(activations_.back()), builder_.whole(labels_),
                     builder_.whole(gradient), builder_.whole(ends_.row_losses)});
    report_loss(builder_, ends_, rows_);
    builder_.enter(Phase::backward);
    if (offloaded_) offloaded_->begin_to_return();
    if (accumulates()) builder_.act("zero the gradients", FillZero{builder_.whole(gradients_)});
    for (std::int64_t layer = layers_ - 1; layer >= 0; --layer) backward(layer);
    builder_.enter(Phase::optimizer);
    optimize();
    return {ends_.loss, first_reader};
  }

 private:
  bool accumulates() const { return knobs_.memory.zero_grad == ZeroGrad::memset; }
  std::int64_t weight_bytes() const { return hidden_ * hidden_ * element_; }
  std::int64_t layer_bytes() const { return weight_bytes() + hidden_ * element_; }
  std::int64_t parameters() const { return layers_ * hidden_ * (hidden_ + 1); }
  BufferUse weight(int flat, std::int64_t layer) const {
    return StepBuilder::part(flat, layer * layer_bytes(), weight_bytes());
  }
  BufferUse bias(int flat, std::int64_t layer) const {
    return StepBuilder::part(flat, layer * layer_bytes() + weight_bytes(), hidden_ * element_);
  }
  int activation(const std::string& name) {
    return builder_.add(
        {.name = name, .purpose = Purpose::activations, .bytes = rows_ * hidden_ * element_});
  }

  // What the backward pass reads of what the forward pass has written.
  int left_behind(std::int64_t index) const {
    return offloaded_ ? offloaded_->coming_back(index)
                      : activations_[static_cast<std::size_t>(index)];
  }

  void add_moments() {
    if (knobs_.optim.kind != OptimKind::adamw) return;
    if (knobs_.memory.offload == Offload::optimizer) {
      offloaded_moments_.emplace(builder_, knobs_.memory.offload_via, layers_,
                                 parameters() / layers_ * word_bytes);
      return;
    }
    for (const char* name : {"first moments", "second moments"}) {
      moments_.push_back(builder_.add(
          {.name = name, .purpose = Purpose::optimizer_state, .bytes = parameters() * word_bytes}));
    }
  }

  void add_activations() {
    const bool offloads = knobs_.memory.offload == Offload::activations;
    if (offloads)
      offloaded_.emplace(builder_, knobs_.memory.offload_via, layers_, rows_ * hidden_ * element_);
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const std::string name = layer == 0 ? "features" : "hidden " + std::to_string(layer);
      activations_.push_back(offloads ? offloaded_->going_out(layer) : activation(name));
    }
    activations_.push_back(activation("logits"));
  }

  void add_buffers() {
    const std::int64_t flat_bytes = layers_ * layer_bytes();
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
    add_moments();
    add_activations();
    activation_gradients_ = {activation("activation gradient 0"),
                             activation("activation gradient 1")};
    labels_ = builder_.add(
        {.name = "labels", .purpose = Purpose::activations, .bytes = rows_ * word_bytes});
    ends_ = add_ends(builder_, rows_);
    builder_.add(
        {.name = "product workspace", .purpose = Purpose::workspace, .bytes = workspace_bytes});
  }

  void forward(std::int64_t layer) {
    const std::string name = "layer " + std::to_string(layer);
    const BufferUse in = builder_.whole(activations_[layer]);
    const BufferUse out = builder_.whole(activations_[layer + 1]);
    const bool leaves_it = offloaded_ && layer + 1 < layers_;
    if (leaves_it) offloaded_->make_room(layer + 1);
    builder_.launch(name + ": product", "matmul", {rows_, hidden_, hidden_},
                    {in, weight(weights_, layer), out}, {0, 1, 0});
    if (offloaded_) offloaded_->is_read(layer);
    const double relu = layer + 1 < layers_ ? 1 : 0;
    builder_.launch(name + ": bias and activation", "bias_activation", {rows_, hidden_},
                    {out, bias(weights_, layer), out}, {relu});
    if (leaves_it) offloaded_->is_written(layer + 1);
  }

  void backward(std::int64_t layer) {
    const std::string name = "layer " + std::to_string(layer);
    const double accumulate = accumulates() ? 1 : 0;
    // The two gradient buffers take turns, from the loss downwards.
    const std::size_t turn = static_cast<std::size_t>((layers_ - 1 - layer) % 2);
    const BufferUse gradient = builder_.whole(activation_gradients_[turn]);
    if (layer + 1 < layers_) {
      builder_.launch(name + ": activation gradient", "relu_gradient", {rows_, hidden_},
                      {builder_.whole(left_behind(layer + 1)), gradient, gradient});
      if (offloaded_) offloaded_->is_used_up(layer + 1);
    }
    builder_.launch(name + ": bias gradient", "bias_gradient", {rows_, hidden_},
                    {gradient, bias(gradients_, layer)}, {accumulate});
    if (offloaded_) offloaded_->is_needed(layer);
    builder_.launch(name + ": weight gradient", "matmul", {hidden_, hidden_, rows_},
                    {gradient, builder_.whole(left_behind(layer)), weight(gradients_, layer)},
                    {1, 0, accumulate});
    if (layer > 0) {
      builder_.launch(
          name + ": input gradient", "matmul", {rows_, hidden_, hidden_},
          {gradient, weight(weights_, layer), builder_.whole(activation_gradients_[1 - turn])});
    }
  }

  void optimize() {
    if (knobs_.optim.impl == OptimImpl::fused) {
      require(!offloaded_moments_, "moments that visit the device are used layer by layer");
      update("update all parameters", 0, parameters());
      return;
    }
    if (offloaded_moments_) offloaded_moments_->begin();
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const std::string name = "layer " + std::to_string(layer);
      const std::int64_t first = layer * hidden_ * (hidden_ + 1);
      if (offloaded_moments_) offloaded_moments_->is_needed(layer);
      update(name + ": update the weight", first, hidden_ * hidden_);
      update(name + ": update the bias", first + hidden_ * hidden_, hidden_);
      if (offloaded_moments_) offloaded_moments_->is_updated(layer);
    }
  }

  // Parts of both moments, which are all of the layer's where only those are on the device.
  void add_moments_of(std::int64_t first, std::int64_t count, std::vector<BufferUse>& operands) {
    const std::int64_t of_a_layer = parameters() / layers_;
    const auto add = [&](int buffer, std::int64_t start) {
      operands.push_back(
          StepBuilder::part(buffer, (first - start) * word_bytes, count * word_bytes));
    };
    if (offloaded_moments_) {
      const std::int64_t layer = first / of_a_layer;
      for (const int buffer : offloaded_moments_->visiting(layer)) add(buffer, layer * of_a_layer);
    }
    for (const int buffer : moments_) add(buffer, 0);
  }

  void update(const std::string& name, std::int64_t first, std::int64_t count) {
    const auto range = [&](int flat, std::int64_t element) {
      return StepBuilder::part(flat, first * element, count * element);
    };
    std::vector<BufferUse> operands = {range(weights_, element_), range(gradients_, element_)};
    if (knobs_.optim.kind == OptimKind::sgd) {
      builder_.launch(name, "sgd", {.columns = count}, operands, {sgd_learning_rate});
      return;
    }
    add_moments_of(first, count, operands);
    operands.push_back(builder_.whole(ends_.counter));
    builder_.launch(name, "adamw", {.columns = count}, operands, adamw_scalars);
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  std::int64_t layers_, hidden_, rows_, element_;
  int weights_ = 0, gradients_ = 0, labels_ = 0;
  std::vector<int> moments_, activations_, activation_gradients_;
  std::optional<OffloadedActivations> offloaded_;
  std::optional<OffloadedMoments> offloaded_moments_;
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
