// SPDX-License-Identifier: MIT
// Parts that layer_norm, rms_norm and their gradients share on the host: the kinds, their work and
// the references. The kernels' operands are in their own folders.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

// layer: y = (x - mean) / deviation * weight + bias; rms: y = x / root mean square * weight.
enum class NormKind { layer, rms };

// layer: the mean and the reciprocal of the deviation; rms: the reciprocal of the root mean square.
constexpr std::int64_t statistics_of(NormKind kind) {
  return kind == NormKind::layer ? 2 : 1;
}

// layer: weight and bias; rms: weight.
constexpr std::int64_t parameters_of(NormKind kind) {
  return kind == NormKind::layer ? 2 : 1;
}

struct NormAttributes {
  double epsilon = 0;
};

struct NormGradientAttributes {
  bool accumulate = false;  // d_x is added to
  bool sums_d_x = false;    // partials end with those of d_x
};

// How many parts the rows of a gradient are divided among; part p takes rows p, p + parts, ... A
// block takes a part, and two fit each of the 132 multiprocessors of an H200, so that all run at
// once and end at once. Eight rows a part at least keep the partial sums small
// beside the rows.
constexpr std::int64_t norm_parts(std::int64_t rows) {
  constexpr std::int64_t most = 2 * 132, least_rows = 8;
  const std::int64_t parts = rows / least_rows;
  return parts < 1 ? 1 : parts < most ? parts : most;
}

// Numbers of a gradient's partials: [parts][parameters], then, where asked for, [parts][columns] of
// the sums of d_x before it is rounded.
constexpr CheckedSize norm_partial_elements(NormKind kind, const CheckedShape& shape,
                                            const NormGradientAttributes& attributes) {
  return shape.depth * (parameters_of(kind) + (attributes.sums_d_x ? 1 : 0)) * shape.columns;
}

struct HostNorm {
  const void* x;
  const void* weight;
  const void* bias;  // null for rms
  void* y;
  float* statistics;
};

void norm_reference(NormKind, const KernelCall&, double epsilon, const HostNorm&);

// sum = x + branch + branch_bias, as it is stored; a bias that is null is none.
void residual_reference(const KernelCall&, const void* x, const void* branch,
                        const void* branch_bias, void* sum);

// Operands d_y, x, weight, statistics, d_x, partials.
void norm_gradient_reference(NormKind, const KernelCall&, const NormGradientAttributes&);

// Operations for each element of the norm and of its gradient.
std::int64_t norm_operations(NormKind);
std::int64_t norm_gradient_operations(NormKind, const NormGradientAttributes&);

}  // namespace stepgate
