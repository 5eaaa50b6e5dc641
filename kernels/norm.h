// SPDX-License-Identifier: MIT
// What layer_norm, rms_norm and their gradients share on the host: the kinds, their work and the
// references. The kernels' operands are in their own folders.
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

// Indices into KernelScalars.
namespace norm_scalar {
constexpr std::size_t epsilon = 0;
}
namespace norm_gradient_scalar {
constexpr std::size_t accumulate = 0;  // d_x += where it is not 0
constexpr std::size_t sums_d_x = 1;    // where it is not 0, partials end with those of d_x
}  // namespace norm_gradient_scalar

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
constexpr std::int64_t norm_partial_elements(NormKind kind, const KernelShape& shape,
                                             const KernelScalars& scalars) {
  const std::int64_t sums = scalars[norm_gradient_scalar::sums_d_x] != 0 ? 1 : 0;
  return shape.depth * (parameters_of(kind) + sums) * shape.columns;
}

struct HostNorm {
  const void* x;
  const void* weight;
  const void* bias;  // null for rms
  void* y;
  float* statistics;
};

void norm_reference(NormKind, const KernelCall&, const HostNorm&);

// sum = x + branch + branch_bias, as it is stored.
void residual_reference(const KernelCall&, const void* x, const void* branch,
                        const void* branch_bias, void* sum);

// Operands d_y, x, weight, statistics, d_x, partials.
void norm_gradient_reference(NormKind, const KernelCall&);

KernelWork norm_work(NormKind, const KernelShape&, DType);
KernelWork residual_bias_norm_work(NormKind, const KernelShape&, DType);
KernelWork norm_gradient_work(NormKind, const KernelShape&, DType, const KernelScalars&);

}  // namespace stepgate
