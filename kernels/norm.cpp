// SPDX-License-Identifier: MIT
// Operations and references of the norms and their gradients. Meaning: norm.h and the kernels'
// headers.
#include "kernels/norm.h"

#include <cmath>
#include <vector>

#include "kernels/number_format.h"

namespace stepgate {

// --- work ----------------------------------------------------------------------------------------

// layer: sum; subtract, square, sum; subtract, scale, weigh, shift. rms: square, sum; scale, weigh.
std::int64_t norm_operations(NormKind kind) {
  return kind == NormKind::layer ? 8 : 4;
}

// rms: normalise, weigh; multiply, sum; multiply, sum for the weight; multiply, subtract, scale.
// layer also subtracts the mean, sums twice more (rows, bias) and subtracts.
std::int64_t norm_gradient_operations(NormKind kind, const NormGradientAttributes& attributes) {
  return (kind == NormKind::layer ? 13 : 9) + (attributes.accumulate ? 1 : 0) +
         (attributes.sums_d_x ? 1 : 0);
}

// --- references ----------------------------------------------------------------------------------

void residual_reference(const KernelCall& call, const void* x, const void* branch,
                        const void* branch_bias, void* sum) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const double bias =
        branch_bias == nullptr ? 0 : number_at(branch_bias, call.dtype, i % call.shape.columns);
    const double added = number_at(branch, call.dtype, i) + bias;
    set_number(sum, call.dtype, i, number_at(x, call.dtype, i) + added);
  }
}

void norm_reference(NormKind kind, const KernelCall& call, double epsilon, const HostNorm& host) {
  const std::int64_t columns = call.shape.columns;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const auto x = [&](std::int64_t c) { return number_at(host.x, call.dtype, row * columns + c); };
    double mean = 0, squares = 0;
    if (kind == NormKind::layer) {
      for (std::int64_t c = 0; c < columns; ++c) mean += x(c);
      mean /= static_cast<double>(columns);
    }
    for (std::int64_t c = 0; c < columns; ++c) squares += (x(c) - mean) * (x(c) - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    float* statistics = host.statistics + row * statistics_of(kind);
    if (kind == NormKind::layer) *statistics++ = static_cast<float>(mean);
    *statistics = static_cast<float>(scale);
    for (std::int64_t c = 0; c < columns; ++c) {
      const double shift = host.bias == nullptr ? 0 : number_at(host.bias, call.dtype, c);
      set_number(host.y, call.dtype, row * columns + c,
                 (x(c) - mean) * scale * number_at(host.weight, call.dtype, c) + shift);
    }
  }
}

// With n = (x - mean) scale and g = d_y weight, both of the row:
//   d_x = scale (g - mean of g - n mean of (g n));  rms without the mean of g.
void norm_gradient_reference(NormKind kind, const KernelCall& call,
                             const NormGradientAttributes& attributes) {
  const auto [rows, columns, parts, unused] = call.shape;
  const bool is_layer = kind == NormKind::layer;
  const auto count = static_cast<std::size_t>(columns);
  std::vector<double> partials(
      static_cast<std::size_t>(norm_partial_elements(kind, checked(call.shape), attributes)));
  double* of_d_x = partials.data() + parts * parameters_of(kind) * columns;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* statistics =
        static_cast<const float*>(call.buffers[3]) + row * statistics_of(kind);
    const double mean = is_layer ? statistics[0] : 0;
    const double scale = statistics[is_layer ? 1 : 0];
    double* part = partials.data() + row % parts * parameters_of(kind) * columns;
    std::vector<double> normalised(count), weighed(count);
    double sum = 0, projection = 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double d_y = number_at(call.buffers[0], call.dtype, row * columns + c);
      normalised[c] = (number_at(call.buffers[1], call.dtype, row * columns + c) - mean) * scale;
      weighed[c] = d_y * number_at(call.buffers[2], call.dtype, c);
      sum += is_layer ? weighed[c] : 0;
      projection += weighed[c] * normalised[c];
      part[c] += d_y * normalised[c];
      if (is_layer) part[columns + c] += d_y;
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t i = row * columns + c;
      const double old = attributes.accumulate ? number_at(call.buffers[4], call.dtype, i) : 0;
      const double inner =
          weighed[c] - (sum + normalised[c] * projection) / static_cast<double>(columns);
      set_number(call.buffers[4], call.dtype, i, old + scale * inner);
      if (attributes.sums_d_x) of_d_x[row % parts * columns + c] += old + scale * inner;
    }
  }
  auto* stored = static_cast<float*>(call.buffers[5]);
  for (std::size_t i = 0; i < partials.size(); ++i) stored[i] = static_cast<float>(partials[i]);
}

}  // namespace stepgate
