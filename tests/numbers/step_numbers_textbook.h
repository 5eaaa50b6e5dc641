// SPDX-License-Identifier: MIT
// The training step of a plan as a textbook describes it: naive loops in double, from the same
// initial weights and batches. It uses nothing of the kernel catalogue. step_numbers_test.cpp
// compares steps with it.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Weights are [layer][output * hidden + input], biases [layer][output].
struct Parameters {
  std::vector<std::vector<double>> weights;
  std::vector<std::vector<double>> biases;

  // Parameters in the order of a plan's flat buffers: each layer's weights, then its biases.
  std::vector<double> flat() const;
};

// Softmax cross-entropy on a stack of layers a = relu(W a + b), the last without relu (Goodfellow,
// Bengio, Courville: Deep Learning, 2016, section 6.5 and equation 6.54), trained by SGD or AdamW.
class TextbookStep {
 public:
  // Takes hyper-parameters from the plan and initial numbers from `fill_contents`.
  TextbookStep(const StepPlan&, const Knobs&);

  // Carries out the next step and returns its loss.
  double run();

  const Parameters& parameters() const { return parameters_; }
  const Parameters& gradients() const { return gradients_; }  // of the last step

 private:
  using Vector = std::vector<double>;

  double add_sample(const std::vector<float>& batch, std::int64_t sample);
  double backward(const std::vector<Vector>& activations, std::int64_t label);
  void update(Vector& values, const Vector& gradients, Vector& means, Vector& squares) const;

  std::int64_t layers_, hidden_, samples_;
  std::vector<std::vector<float>> batches_;
  Parameters parameters_, gradients_, means_, squares_;
  OptimKind optimizer_;
  KernelAttributes hyper_parameters_{};
  std::int64_t steps_ = 0;
};

}  // namespace stepgate
