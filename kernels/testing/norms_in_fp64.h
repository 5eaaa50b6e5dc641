// SPDX-License-Identifier: MIT
// Batch norms whose references run in fp64, and the comparison of a chain's gradients with central
// differences along random directions. It contains no formula of a norm.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "kernels/catalogue.h"
#include "kernels/kernels.h"

namespace stepgate {

using Doubles = std::vector<double>;
using Bytes = std::vector<std::uint8_t>;

// Calls the reference of a kernel in fp64 on these buffers, one per operand.
template <class Kernel>
void run_in_fp64(const typename Kernel::Shape& shape, const typename Kernel::Attributes& attributes,
                 const std::vector<void*>& buffers) {
  kernel(Kernel::name).reference({shape, DType::fp64, attributes, buffers});
}

inline Doubles random_doubles(std::int64_t count, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  Doubles numbers(static_cast<std::size_t>(count));
  for (double& number : numbers) number = uniform(random);
  return numbers;
}

// A batch norm with its own input and parameters.
struct NormInFp64 {
  PartsShape shape;
  Doubles x, weight, bias;
  Doubles running_mean, running_variance;
  Doubles partials = Doubles(of(2 * shape.parts)), statistics = Doubles(of(4));
  Doubles d_x = Doubles(x.size()), d_weight = Doubles(of(1)), d_bias = Doubles(of(1));
  Doubles means = Doubles(of(2));
  kernels::BatchNormFinish::Attributes told = {.epsilon = 1e-5, .momentum = 0.1};

  NormInFp64(const PartsShape& sizes, std::mt19937_64& random)
      : shape(sizes),
        x(random_doubles(sizes.rows * sizes.columns, random)),
        weight(random_doubles(sizes.columns, random)),
        bias(random_doubles(sizes.columns, random)),
        running_mean(of(1)),
        running_variance(of(1), 1.0) {}

  std::size_t of(std::int64_t vectors) const {
    return static_cast<std::size_t>(vectors * shape.columns);
  }
  void find_statistics() {
    run_in_fp64<kernels::BatchNormSums>(shape, {}, {x.data(), partials.data()});
    run_in_fp64<kernels::BatchNormFinish>(
        shape, told,
        {x.data(), partials.data(), weight.data(), bias.data(), running_mean.data(),
         running_variance.data(), statistics.data()});
  }
  // Ends the sums that stand in the partials.
  void finish_gradient() {
    run_in_fp64<kernels::BatchNormGradientFinish>(
        shape, {false}, {partials.data(), d_weight.data(), d_bias.data(), means.data()});
  }
  // Computes all gradients for this d_y, with or without a relu.
  void find_gradients(Doubles& d_y, bool relu) {
    run_in_fp64<kernels::BatchNormGradientSums>(
        shape, {relu}, {d_y.data(), x.data(), statistics.data(), partials.data()});
    finish_gradient();
    run_in_fp64<kernels::BatchNormGradientApply>(
        {shape.rows, shape.columns}, {relu},
        {d_y.data(), x.data(), statistics.data(), means.data(), d_x.data()});
  }
};

// A parameter and the gradient to compare.
struct Compared {
  Doubles* parameter;
  const Doubles* gradient;
};

// A loss, and the decisions on its way: it has a slope where they stay the same.
struct LossAndDecisions {
  double value = 0;
  Bytes decisions = {};
};

// Returns how far the gradients are from the slopes of the loss along eight random directions,
// relative to the slopes. A direction that changes a decision is drawn anew.
inline double slope_error(const std::vector<Compared>& all,
                          const std::function<LossAndDecisions()>& loss, std::mt19937_64& random) {
  constexpr double distance = 1e-6;
  double squares = 0, errors = 0;
  for (int compared = 0, drawn = 0; compared < 8; ++drawn) {
    if (drawn > 1000) return std::nan("");
    double projected = 0;
    std::vector<Doubles> directions, old;
    for (const auto& [parameter, gradient] : all) {
      directions.push_back(random_doubles(static_cast<std::int64_t>(parameter->size()), random));
      old.push_back(*parameter);
      for (std::size_t i = 0; i < parameter->size(); ++i)
        projected += (*gradient)[i] * directions.back()[i];
    }
    const auto loss_at = [&](double along) {
      for (std::size_t one = 0; one < all.size(); ++one)
        for (std::size_t i = 0; i < old[one].size(); ++i)
          (*all[one].parameter)[i] = old[one][i] + along * directions[one][i];
      return loss();
    };
    const LossAndDecisions above = loss_at(distance), below = loss_at(-distance);
    (void)loss_at(0);
    if (above.decisions != below.decisions) continue;
    const double slope = (above.value - below.value) / (2 * distance);
    squares += slope * slope;
    errors += (slope - projected) * (slope - projected);
    ++compared;
  }
  return std::sqrt(errors / squares);
}

}  // namespace stepgate
