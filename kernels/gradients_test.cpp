// SPDX-License-Identifier: MIT
// Chains the kernels of a layer and of the loss as a step does, and compares with finite
// differences of the loss. A wrong sign, transposition or scale in any of them makes the test fail.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/trial/kernel_trial.h"

namespace stepgate {
namespace {

using Numbers = std::vector<float>;

// The model is logits = relu(x W1 + b1) W2 + b2; loss = mean cross-entropy.
struct TwoLayers {
  static constexpr std::int64_t samples = 6, inputs = 5, hidden = 7, classes = 4;
  Numbers x = Numbers(samples * inputs), w1 = Numbers(inputs * hidden), b1 = Numbers(hidden);
  Numbers w2 = Numbers(hidden * classes), b2 = Numbers(classes);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(samples);
  Numbers activation = Numbers(samples * hidden), logits = Numbers(samples * classes);
  Numbers row_losses = Numbers(samples);

  explicit TwoLayers(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    // Small numbers, so that third derivatives do not affect a central difference.
    std::uniform_real_distribution<float> uniform(-0.7f, 0.7f);
    for (Numbers* numbers : {&x, &w1, &b1, &w2, &b2}) {
      for (float& number : *numbers) number = uniform(random);
    }
    for (auto& label : labels) label = static_cast<std::int32_t>(random() % classes);
  }

  double forward() {
    run_in_fp32<kernels::Matmul>({samples, hidden, inputs}, {},
                                 {x.data(), w1.data(), activation.data()});
    run_in_fp32<kernels::BiasActivation>({samples, hidden}, {.relu = true},
                                         {activation.data(), b1.data(), activation.data()});
    run_in_fp32<kernels::Matmul>({samples, classes, hidden}, {},
                                 {activation.data(), w2.data(), logits.data()});
    run_in_fp32<kernels::BiasActivation>({samples, classes}, {},
                                         {logits.data(), b2.data(), logits.data()});
    run_in_fp32<kernels::CrossEntropy>(
        {samples, classes}, {}, {logits.data(), labels.data(), logits.data(), row_losses.data()});
    double sum = 0;
    for (const float loss : row_losses) sum += loss;
    return sum / samples;
  }

  struct Gradients {
    Numbers x, w1, b1, w2, b2;
  };

  Gradients backward() {
    forward();  // overwrites the logits with their gradient
    Gradients d{Numbers(x.size()), Numbers(w1.size()), Numbers(b1.size()), Numbers(w2.size()),
                Numbers(b2.size())};
    Numbers d_activation(activation.size());
    run_in_fp32<kernels::BiasGradient>({samples, classes}, {.accumulate = false},
                                       {logits.data(), d.b2.data()});
    run_in_fp32<kernels::Matmul>({hidden, classes, samples}, {.transpose_a = true},
                                 {activation.data(), logits.data(), d.w2.data()});
    run_in_fp32<kernels::Matmul>({samples, hidden, classes}, {.transpose_b = true},
                                 {logits.data(), w2.data(), d_activation.data()});
    run_in_fp32<kernels::ReluGradient>(
        {samples, hidden}, {}, {activation.data(), d_activation.data(), d_activation.data()});
    run_in_fp32<kernels::BiasGradient>({samples, hidden}, {.accumulate = false},
                                       {d_activation.data(), d.b1.data()});
    run_in_fp32<kernels::Matmul>({inputs, hidden, samples}, {.transpose_a = true},
                                 {x.data(), d_activation.data(), d.w1.data()});
    run_in_fp32<kernels::Matmul>({samples, inputs, hidden}, {.transpose_b = true},
                                 {d_activation.data(), w1.data(), d.x.data()});
    return d;
  }
};

// The hidden units of each sample whose relu is active.
std::vector<bool> passed(const TwoLayers& model) {
  std::vector<bool> pattern;
  for (const float number : model.activation) pattern.push_back(number > 0);
  return pattern;
}

// Compares with central differences of the loss. An element whose difference switches a relu has no
// slope there and is skipped; few elements may be.
void expect_gradient(TwoLayers& model, Numbers& parameter, const Numbers& gradient) {
  int compared = 0;
  for (std::size_t i = 0; i < parameter.size(); ++i) {
    constexpr float distance = 1.0f / 256;
    const float old = parameter[i];
    parameter[i] = old + distance;
    const double width_above = parameter[i];
    const double above = model.forward();
    const std::vector<bool> passed_above = passed(model);
    parameter[i] = old - distance;
    const double width = width_above - parameter[i];
    const double below = model.forward();
    const std::vector<bool> passed_below = passed(model);
    parameter[i] = old;
    if (passed_above != passed_below) continue;
    EXPECT_NEAR(gradient[i], (above - below) / width, 3e-4) << "element " << i;
    ++compared;
  }
  EXPECT_GE(4 * compared, static_cast<int>(parameter.size()));
}

TEST(Gradients, OfEveryParameterAgreeWithFiniteDifferencesOfTheLoss) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  TwoLayers model(seed);
  const TwoLayers::Gradients d = model.backward();
  expect_gradient(model, model.x, d.x);
  expect_gradient(model, model.w1, d.w1);
  expect_gradient(model, model.b1, d.b1);
  expect_gradient(model, model.w2, d.w2);
  expect_gradient(model, model.b2, d.b2);
}

TEST(Gradients, LowerTheLossWhenFollowed) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  TwoLayers model(seed);
  const double before = model.forward();
  TwoLayers::Gradients d = model.backward();
  const auto follow = [](Numbers& weights, Numbers& gradient) {
    run_in_fp32<kernels::Sgd>({1, static_cast<std::int64_t>(weights.size())},
                              {.learning_rate = 0.001}, {weights.data(), gradient.data()});
  };
  follow(model.w1, d.w1);
  follow(model.b1, d.b1);
  follow(model.w2, d.w2);
  follow(model.b2, d.b2);
  EXPECT_LT(model.forward(), before);
}

}  // namespace
}  // namespace stepgate
