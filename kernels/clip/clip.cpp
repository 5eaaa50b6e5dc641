// SPDX-License-Identifier: MIT
// The host side of clip: operands, work and the reference. Meaning and shapes: clip.h.
#include "kernels/clip/clip.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda_build.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand clip_operands[] = {
    {"partials", Access::read},
    {"control", Access::read_write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork clip_work(const KernelShape& shape, DType, const KernelScalars&) {
  return {.bytes_read = 4 * shape.depth + update_control::bytes,
          .bytes_written = update_control::bytes,
          .flops = shape.depth};
}

// --- reference -----------------------------------------------------------------------------------

double clipped(double norm, double max_norm) {
  return max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + clip_epsilon));
}

void skip(float* control, const KernelScalars& scalars) {
  control[update_control::factor] = 0;
  control[update_control::good_updates] = 0;
  if (scalars[clip_scalar::growth_interval] == 0) return;
  control[update_control::loss_scale] *= static_cast<float>(scalars[clip_scalar::backoff]);
}

void count_good_update(float* control, const KernelScalars& scalars) {
  control[update_control::updates] += 1;
  control[update_control::good_updates] += 1;
  const double interval = scalars[clip_scalar::growth_interval];
  if (interval == 0 || control[update_control::good_updates] < interval) return;
  control[update_control::loss_scale] *= static_cast<float>(scalars[clip_scalar::growth]);
  control[update_control::good_updates] = 0;
}

void clip_reference(const KernelCall& call) {
  const auto* partials = static_cast<const float*>(call.buffers[0]);
  auto* control = static_cast<float*>(call.buffers[1]);
  double sum = 0;
  for (std::int64_t i = 0; i < call.shape.depth; ++i) sum += partials[i];
  const double scale = control[update_control::loss_scale];
  const double norm = std::sqrt(sum) / scale;
  control[update_control::norm] = static_cast<float>(norm);
  if (!std::isfinite(norm)) return skip(control, call.scalars);
  control[update_control::factor] =
      static_cast<float>(clipped(norm, call.scalars[clip_scalar::max_norm]) / scale);
  count_good_update(control, call.scalars);
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel clip_kernel() {
  return {"clip", clip_operands, clip_work, clip_reference, in_cuda_builds<prepare_clip>()};
}

}  // namespace stepgate
