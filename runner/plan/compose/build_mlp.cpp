// SPDX-License-Identifier: MIT
#include "plan/compose/build_model.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "base/require.h"
#include "kernels/kernels.h"
#include "plan/compose/build_offload.h"
#include "plan/compose/decode_batch.h"
#include "plan/compose/mlp_layers.h"
#include "plan/compose/model_ends.h"
#include "plan/compose/recommender/embedding_tables.h"
#include "plan/compose/update/build_update.h"
#include "plan/compose/update/update_rule.h"

namespace stepgate {
namespace {

class Mlp {
 public:
  Mlp(StepBuilder& builder, const Knobs& knobs)
      : builder_(builder),
        knobs_(knobs),
        shape_(mlp_shape(knobs)),
        layers_(shape_.layers),
        hidden_(shape_.hidden),
        rows_(shape_.rows) {
    if (knobs.model.kind == ModelKind::recommender) add_tables();
    add_buffers();
  }

  ModelParts build(int batch, std::int64_t sample_bytes) {
    if (!tables_) name_parameters();
    builder_.enter(Phase::forward);
    if (visitors_) visitors_->begin();
    if (tables_)
      tables_->look_up(batch, sample_bytes, weights_, activations_.front(), labels_);
    else
      ingest(batch, sample_bytes);
    if (offloaded_) offloaded_->is_written(0);
    for (std::int64_t layer = 0; layer < layers_; ++layer) forward(layer);
    if (visitors_) visitors_->begin_to_return();
    const int gradient = activation_gradients_[0];
    builder_.launch<kernels::CrossEntropy>(
        "loss", {.rows = rows_, .columns = hidden_},
        {builder_.whole(activations_.back()), builder_.whole(labels_), builder_.whole(gradient),
         builder_.whole(ends_.row_losses)});
    report_loss(builder_, ends_, rows_);
    builder_.enter(Phase::backward);
    if (offloaded_) offloaded_->begin_to_return();
    if (accumulates()) builder_.act("zero the gradients", FillZero{builder_.whole(gradients_)});
    for (std::int64_t layer = layers_ - 1; layer >= 0; --layer) {
      backward(layer);
      if (visitors_) update_visitor(layer);
    }
    if (tables_) tables_->add_gradient(activation_gradient(-1), gradients_, !accumulates());
    builder_.enter(Phase::optimizer);
    if (!visitors_) optimize();
    ModelParts parts{.loss = ends_.loss, .weights = weights_};
    if (!visitors_) parts.learned = LearnedParts{weights_, gradients_, places(), elements()};
    return parts;
  }

 private:
  CheckedSize elements() const {
    return tables_ ? CheckedSize(parameters_.elements()) : shape_.parameters();
  }
  // Position of each parameter in the flat buffer.
  std::vector<FlatTensor> places() const {
    if (tables_) return parameters_.places();
    std::vector<FlatTensor> places;
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const std::int64_t first = layer * shape_.layer_parameters();
      places.push_back({first, hidden_ * hidden_});
      places.push_back({first + hidden_ * hidden_, hidden_});
    }
    return places;
  }

  void name_parameters() {
    std::vector<Parameter>& named = builder_.plan().parameters;
    named.clear();
    for (const FlatTensor& tensor : places()) {
      const bool is_weight = named.size() % 2 == 0;
      named.push_back({fmt::format("layer {} {}", named.size() / 2, is_weight ? "weight" : "bias"),
                       tensor.first, tensor.elements});
    }
  }

  // Adds the tensors of the layers and then those of the tables, in the order of ParameterList.
  void add_tables() {
    const double scale = scale_of_layers();
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const std::string name = "layer " + std::to_string(layer);
      parameters_.add(name + " weight", hidden_ * hidden_, scale);
      parameters_.add(name + " bias", hidden_, scale);
    }
    tables_.emplace(builder_, knobs_, parameters_);
  }

  double scale_of_layers() const { return 1.0 / std::sqrt(static_cast<double>(hidden_)); }

  void ingest(int batch, std::int64_t sample_bytes) {
    const int words = add_words(builder_, knobs_.batch, batch, sample_bytes, "decoded batch");
    launch_decode(builder_, knobs_.batch, batch, words, sample_bytes);
    builder_.launch<kernels::Ingest>(
        "ingest the batch",
        {.samples = rows_, .features = hidden_, .words = sample_bytes / word_bytes},
        {builder_.whole(words), builder_.whole(activations_.front()), builder_.whole(labels_)});
  }

  bool accumulates() const { return knobs_.memory.zero_grad == ZeroGrad::memset; }
  int activation(const std::string& name) {
    return builder_.add(
        {.name = name, .purpose = Purpose::activations, .bytes = shape_.activation_bytes()});
  }

  // The buffer from which the backward pass reads this activation.
  int left_behind(std::int64_t index) const {
    return offloaded_ ? offloaded_->coming_back(index)
                      : activations_[static_cast<std::size_t>(index)];
  }

  // Adds what the update keeps besides the weights.
  void add_state(const Buffer& weights) {
    if (tables_) {
      update_.weights = weights_;
      update_.gradients = gradients_;
      add_update_buffers(builder_, knobs_, parameters_, update_);
      return;
    }
    if (knobs_.optim.average > 0) {
      Buffer average = weights;
      average.name = "average weights";
      average.purpose = Purpose::optimizer_state;
      average.bytes = shape_.parameters() * word_bytes;
      average.dtype = DType::fp32;
      average.numbers_of = weights.name;
      average_ = builder_.add(average);
    }
    if (knobs_.memory.offload == Offload::optimizer) {
      offloaded_moments_.emplace(builder_, knobs_.memory.offload_via, layers_,
                                 shape_.layer_parameters() * word_bytes);
      return;
    }
    for (const char* name : moments_of(knobs_.optim.kind)) {
      moments_.push_back(builder_.add({.name = name,
                                       .purpose = Purpose::optimizer_state,
                                       .bytes = shape_.parameters() * word_bytes}));
    }
  }

  void add_activations() {
    const bool offloads = knobs_.memory.offload == Offload::activations;
    if (offloads)
      offloaded_.emplace(builder_, knobs_.memory.offload_via, layers_, shape_.activation_bytes());
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const std::string name = layer == 0 ? "features" : "hidden " + std::to_string(layer);
      activations_.push_back(offloads ? offloaded_->going_out(layer) : activation(name));
    }
    activations_.push_back(activation("logits"));
  }

  void add_parameters(const Buffer& weights) {
    weights_ = builder_.add(weights);
    gradients_ = builder_.add({.name = "gradients",
                               .purpose = Purpose::gradients,
                               .bytes = weights.bytes,
                               .dtype = weights.dtype});
    add_state(weights);
  }

  void add_visitors(const Buffer& weights) {
    require(!tables_ && knobs_.eval.every == 0 && !accumulates() &&
                knobs_.optim.impl != OptimImpl::fused,
            "parameters that visit the device are used layer by layer, and only by the step");
    visitors_.emplace(builder_, knobs_.memory.offload_via, knobs_.optim.kind, weights, layers_);
    weights_ = visitors_->weights_at_home();
  }

  // The place of the layer's weights while the layer is computed and updated.
  LayerPlace weights_of(std::int64_t layer) const {
    return visitors_ ? LayerPlace{visitors_->weights(layer)} : LayerPlace{weights_, layer};
  }
  LayerPlace gradients_of(std::int64_t layer) const {
    return visitors_ ? LayerPlace{visitors_->gradients()} : LayerPlace{gradients_, layer};
  }
  std::vector<LayerPlace> moments_of_layer(std::int64_t layer) const {
    std::vector<LayerPlace> places;
    for (const int flat : moments_) places.push_back({flat, layer});
    if (offloaded_moments_)
      for (const int visiting : offloaded_moments_->visiting(layer)) places.push_back({visiting});
    if (visitors_)
      for (const int visiting : visitors_->moments(layer)) places.push_back({visiting});
    return places;
  }

  void add_buffers() {
    const std::int64_t flat_bytes =
        tables_ ? CheckedSize(parameters_.elements()) * shape_.element_bytes : shape_.flat_bytes();
    builder_.plan().param_bytes = flat_bytes;
    const Buffer weights{.name = "weights",
                         .purpose = Purpose::weights,
                         .bytes = flat_bytes,
                         .content = Content::weights,
                         .dtype = knobs_.model.dtype,
                         .scale = scale_of_layers(),
                         .parts = parameters_.contents()};
    if (knobs_.memory.offload == Offload::weights)
      add_visitors(weights);
    else
      add_parameters(weights);
    add_activations();
    activation_gradients_ = {activation("activation gradient 0"),
                             activation("activation gradient 1")};
    if (tables_) tables_->add_buffers();
    labels_ = builder_.add(
        {.name = "labels", .purpose = Purpose::activations, .bytes = rows_ * word_bytes});
    ends_ = add_ends(builder_, rows_);
    if (!knobs_.model.inplace) add_own_gemms();
    if (knobs_.model.workspace_bytes == 0) return;
    builder_.add({.name = "gemm workspace",
                  .purpose = Purpose::workspace,
                  .bytes = knobs_.model.workspace_bytes});
  }

  // Adds separate buffers for the result of each GEMM and its gradient, which activations otherwise
  // overwrite.
  void add_own_gemms() {
    for (std::int64_t layer = 0; layer < layers_; ++layer)
      gemms_.push_back(activation("gemm " + std::to_string(layer)));
    for (std::int64_t layer = 0; layer + 1 < layers_; ++layer)
      gemm_gradients_.push_back(activation("gemm gradient " + std::to_string(layer)));
  }

  void forward(std::int64_t layer) {
    const int out = activations_[layer + 1];
    const LayerBuffers buffers{.weights = weights_of(layer),
                               .in = activations_[layer],
                               .gemm = knobs_.model.inplace ? out : gemms_[layer],
                               .out = out};
    const bool leaves_it = offloaded_ && layer + 1 < layers_;
    if (leaves_it) offloaded_->make_room(layer + 1);
    if (visitors_) visitors_->is_needed(layer);
    launch_gemm(builder_, shape_, layer, buffers);
    if (offloaded_) offloaded_->is_read(layer);
    launch_activation(builder_, shape_, layer, buffers);
    if (visitors_) visitors_->is_read(layer);
    if (leaves_it) offloaded_->is_written(layer + 1);
  }

  // The gradient of the layer's output; layer -1 stands for the features. Two buffers alternate,
  // starting with the last layer.
  int activation_gradient(std::int64_t layer) const {
    return activation_gradients_[static_cast<std::size_t>((layers_ - 1 - layer) % 2)];
  }

  void backward(std::int64_t layer) {
    const std::string name = "layer " + std::to_string(layer);
    const bool accumulate = accumulates();
    BufferUse gradient = builder_.whole(activation_gradient(layer));
    if (layer + 1 < layers_) {
      const BufferUse of_activation = gradient;
      if (!knobs_.model.inplace) gradient = builder_.whole(gemm_gradients_[layer]);
      builder_.launch<kernels::ReluGradient>(
          name + ": activation gradient", {rows_, hidden_},
          {builder_.whole(left_behind(layer + 1)), of_activation, gradient});
      if (offloaded_) offloaded_->is_used_up(layer + 1);
    }
    builder_.launch<kernels::BiasGradient>(name + ": bias gradient", {rows_, hidden_},
                                           {gradient, shape_.bias(gradients_of(layer))},
                                           {.accumulate = accumulate});
    if (offloaded_) offloaded_->is_needed(layer);
    builder_.launch<kernels::Matmul>(
        name + ": weight gradient", {hidden_, hidden_, rows_},
        {gradient, builder_.whole(left_behind(layer)), shape_.weight(gradients_of(layer))},
        {.transpose_a = true, .accumulate = accumulate});
    if (visitors_) visitors_->is_needed_again(layer);
    if (layer > 0 || tables_) {
      builder_.launch<kernels::Matmul>(name + ": input gradient", {rows_, hidden_, hidden_},
                                       {gradient, shape_.weight(weights_of(layer)),
                                        builder_.whole(activation_gradient(layer - 1))});
    }
  }

  void optimize() {
    if (tables_) {
      update_.counter = ends_.counter;
      build_update(builder_, knobs_, parameters_, update_);
      return;
    }
    if (knobs_.optim.impl == OptimImpl::fused) {
      require(!offloaded_moments_, "moments that visit the device are used layer by layer");
      update("update all parameters", 0, 0, shape_.parameters());
      return;
    }
    if (offloaded_moments_) offloaded_moments_->begin();
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      if (offloaded_moments_) offloaded_moments_->is_needed(layer);
      update_layer(layer);
      if (offloaded_moments_) offloaded_moments_->is_updated(layer);
    }
  }

  // Updates a layer as soon as its gradient is complete, since the next layer's gradient needs the
  // memory.
  void update_visitor(std::int64_t layer) {
    builder_.enter(Phase::optimizer);
    update_layer(layer);
    visitors_->is_updated(layer);
    builder_.enter(Phase::backward);
  }

  void update_layer(std::int64_t layer) {
    const std::string name = "layer " + std::to_string(layer);
    update(name + ": update the weight", layer, 0, hidden_ * hidden_);
    update(name + ": update the bias", layer, hidden_ * hidden_, hidden_);
  }

  // Updates `count` parameters of the layer, from `first` on.
  void update(const std::string& name, std::int64_t layer, std::int64_t first, std::int64_t count) {
    const auto from = [&](const LayerPlace& place) {
      return StepBuilder::Operand::from(place.flat,
                                        place.layer * shape_.layer_parameters() + first);
    };
    std::vector<StepBuilder::Operand> moments;
    for (const LayerPlace& place : moments_of_layer(layer)) moments.push_back(from(place));
    launch_update(builder_, knobs_.optim.kind, name,
                  {layer * shape_.layer_parameters() + first, count},
                  {.weights = from(weights_of(layer)),
                   .gradients = from(gradients_of(layer)),
                   .moments = moments,
                   .counter = builder_.whole(ends_.counter)});
    if (average_)
      launch_average(builder_, name + ", average", count, knobs_.optim.average,
                     builder_.plan().dtype, from({*average_, layer}), from(weights_of(layer)));
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  MlpShape shape_;
  std::int64_t layers_, hidden_, rows_;
  int weights_ = 0, gradients_ = 0, labels_ = 0;
  std::optional<int> average_;  // of the weights
  std::vector<int> moments_, activations_, activation_gradients_;
  std::vector<int> gemms_, gemm_gradients_;  // by layer, where activations do not overwrite them
  std::optional<EmbeddingTables> tables_;
  ParameterList parameters_;  // of a model with tables
  UpdateBuffers update_;      // of a model with tables
  std::optional<OffloadedActivations> offloaded_;
  std::optional<OffloadedMoments> offloaded_moments_;
  std::optional<OffloadedParameters> visitors_;
  ModelEnds ends_{};
};

}  // namespace

ModelParts build_mlp(StepBuilder& builder, const Knobs& knobs, int batch,
                     std::int64_t sample_bytes) {
  return Mlp(builder, knobs).build(batch, sample_bytes);
}

}  // namespace stepgate
