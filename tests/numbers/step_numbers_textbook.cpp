// SPDX-License-Identifier: MIT
// This implementation is deliberately naive: it processes one sample, one unit and one weight at a
// time.
#include "tests/numbers/step_numbers_textbook.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "base/require.h"
#include "device/contents.h"
#include "kernels/optimizer/optimizer.h"

namespace stepgate {
namespace {

std::vector<float> initial_floats(const StepPlan& plan, const Buffer& buffer, std::int64_t slot) {
  std::vector<float> numbers(static_cast<std::size_t>(buffer.bytes) / sizeof(float));
  fill_contents(buffer, slot, plan.seed, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

// Returns the batch in words, converted as a loader would convert bytes.
std::vector<float> batch_in_words(const StepPlan& plan, const Buffer& buffer, std::int64_t slot,
                                  BatchFormat format) {
  if (format == BatchFormat::fp32) return initial_floats(plan, buffer, slot);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(buffer.bytes));
  fill_contents(buffer, slot, plan.seed, std::as_writable_bytes(std::span(bytes)));
  std::vector<float> words;
  for (const std::uint8_t byte : bytes) words.push_back(static_cast<float>((byte - 127.5) / 127.5));
  return words;
}

Parameters zeros(std::int64_t layers, std::int64_t hidden) {
  const auto units = static_cast<std::size_t>(hidden);
  Parameters made;
  made.weights.assign(static_cast<std::size_t>(layers), std::vector<double>(units * units));
  made.biases.assign(static_cast<std::size_t>(layers), std::vector<double>(units));
  return made;
}

// The attributes of the plan's optimizer: the learning rate first, then AdamW's.
KernelAttributes attributes_of_optimizer(const StepPlan& plan) {
  for (const Operation& operation : plan.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch && operation.phase == Phase::optimizer) return launch->attributes;
  }
  require(false, "the step has an optimizer");
  return {};
}

// Feature h is the mean of the words h, h + H, h + 2 H, ... without the last word of the sample.
std::vector<double> features_of(std::span<const float> sample, std::size_t features) {
  std::vector<double> means(features);
  std::vector<double> counts(features);
  for (std::size_t word = 0; word + 1 < sample.size(); ++word) {
    means[word % features] += sample[word];
    counts[word % features] += 1;
  }
  for (std::size_t feature = 0; feature < features; ++feature) means[feature] /= counts[feature];
  return means;
}

}  // namespace

std::vector<double> Parameters::flat() const {
  std::vector<double> all;
  for (std::size_t layer = 0; layer < weights.size(); ++layer) {
    all.insert(all.end(), weights[layer].begin(), weights[layer].end());
    all.insert(all.end(), biases[layer].begin(), biases[layer].end());
  }
  return all;
}

TextbookStep::TextbookStep(const StepPlan& plan, const Knobs& knobs)
    : layers_(knobs.model.layers),
      hidden_(knobs.model.hidden),
      samples_(plan.batch_sizes.front()),
      parameters_(zeros(layers_, hidden_)),
      gradients_(parameters_),
      means_(parameters_),
      squares_(parameters_),
      optimizer_(knobs.optim.kind),
      hyper_parameters_(attributes_of_optimizer(plan)) {
  require(knobs.model.dtype == DType::fp32, "the textbook starts from fp32");
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.content == Content::payload) {
      for (std::int64_t slot = 0; slot < buffer.slots; ++slot)
        batches_.push_back(batch_in_words(plan, buffer, slot, knobs.batch.format));
    }
    if (buffer.content != Content::weights) continue;
    const std::vector<float> flat = initial_floats(plan, buffer, 0);
    auto next = flat.begin();
    for (std::size_t layer = 0; layer < parameters_.weights.size(); ++layer) {
      for (double& weight : parameters_.weights[layer]) weight = *next++;
      for (double& bias : parameters_.biases[layer]) bias = *next++;
    }
  }
}

double TextbookStep::run() {
  gradients_ = zeros(layers_, hidden_);
  const std::vector<float>& batch = batches_[static_cast<std::size_t>(steps_) % batches_.size()];
  double loss = 0;
  for (std::int64_t sample = 0; sample < samples_; ++sample) loss += add_sample(batch, sample);
  ++steps_;
  for (std::size_t layer = 0; layer < parameters_.weights.size(); ++layer) {
    update(parameters_.weights[layer], gradients_.weights[layer], means_.weights[layer],
           squares_.weights[layer]);
    update(parameters_.biases[layer], gradients_.biases[layer], means_.biases[layer],
           squares_.biases[layer]);
  }
  return loss / static_cast<double>(samples_);
}

// Runs forward and backward for one sample; returns its loss.
double TextbookStep::add_sample(const std::vector<float>& batch, std::int64_t sample) {
  const std::size_t words = batch.size() / static_cast<std::size_t>(samples_);
  const std::span row(batch.data() + static_cast<std::size_t>(sample) * words, words);
  const auto units = static_cast<std::size_t>(hidden_);
  const auto label = std::bit_cast<std::uint32_t>(row.back()) % static_cast<std::uint32_t>(hidden_);
  std::vector<Vector> activations = {features_of(row, units)};
  for (std::size_t layer = 0; layer < parameters_.weights.size(); ++layer) {
    Vector out(units);
    for (std::size_t to = 0; to < units; ++to) {
      out[to] = parameters_.biases[layer][to];
      for (std::size_t from = 0; from < units; ++from)
        out[to] += parameters_.weights[layer][to * units + from] * activations[layer][from];
      if (layer + 1 < parameters_.weights.size()) out[to] = std::max(out[to], 0.0);
    }
    activations.push_back(out);
  }
  return backward(activations, label);
}

double TextbookStep::backward(const std::vector<Vector>& activations, std::int64_t label) {
  const auto units = static_cast<std::size_t>(hidden_);
  const Vector& logits = activations.back();
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  Vector gradient(units);
  for (std::size_t unit = 0; unit < units; ++unit) {
    const double target = static_cast<std::int64_t>(unit) == label ? 1 : 0;
    gradient[unit] = (std::exp(logits[unit]) / sum - target) / static_cast<double>(samples_);
  }
  for (std::size_t left = parameters_.weights.size(); left > 0; --left) {
    const std::size_t layer = left - 1;
    Vector below(units);
    for (std::size_t to = 0; to < units; ++to) {
      gradients_.biases[layer][to] += gradient[to];
      for (std::size_t from = 0; from < units; ++from) {
        gradients_.weights[layer][to * units + from] += gradient[to] * activations[layer][from];
        if (layer > 0 && activations[layer][from] > 0)
          below[from] += gradient[to] * parameters_.weights[layer][to * units + from];
      }
    }
    gradient = below;
  }
  return std::log(sum) - logits[static_cast<std::size_t>(label)];
}

// Lion is from Chen et al., NeurIPS 2023, AdamW from Loshchilov and Hutter, ICLR 2019. The weight
// decays by learning rate times decay. Momentum is that of torch.optim.SGD, where the decay is part
// of the gradient.
void TextbookStep::update(Vector& values, const Vector& gradients, Vector& means,
                          Vector& squares) const {
  const auto step = static_cast<double>(steps_);
  for (std::size_t index = 0; index < values.size(); ++index) {
    const double gradient = gradients[index];
    if (optimizer_ == OptimKind::sgd) {
      values[index] -= hyper_parameters_.as<kernels::Sgd>().learning_rate * gradient;
      continue;
    }
    if (optimizer_ == OptimKind::lion) {
      const auto lion = hyper_parameters_.as<kernels::Lion>();
      const double blend = lion.beta1 * means[index] + (1 - lion.beta1) * gradient;
      const double sign = static_cast<double>(blend > 0) - static_cast<double>(blend < 0);
      values[index] -= lion.learning_rate * (sign + lion.weight_decay * values[index]);
      means[index] = lion.beta2 * means[index] + (1 - lion.beta2) * gradient;
      continue;
    }
    if (optimizer_ == OptimKind::momentum) {
      const auto [rate, momentum, decay] = hyper_parameters_.as<kernels::Momentum>();
      means[index] = momentum * means[index] + gradient + decay * values[index];
      values[index] -= rate * means[index];
      continue;
    }
    const auto [rate, beta1, beta2, epsilon, decay] = hyper_parameters_.as<kernels::Adamw>();
    means[index] += (1 - beta1) * (gradient - means[index]);
    squares[index] += (1 - beta2) * (gradient * gradient - squares[index]);
    const double mean = means[index] / (1 - std::pow(beta1, step));
    const double square = squares[index] / (1 - std::pow(beta2, step));
    values[index] *= 1 - rate * decay;
    values[index] -= rate * mean / (std::sqrt(square) + epsilon);
  }
}

}  // namespace stepgate
