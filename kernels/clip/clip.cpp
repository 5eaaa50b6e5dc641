// SPDX-License-Identifier: MIT
// The host side of clip: operands, work and the reference. Meaning and shapes: clip.h.
#include "kernels/clip/clip.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand clip_operands[] = {
    {"partials", Access::read, extent::depth, OperandFormat::single},
    {"control", Access::read_write, extent::control, OperandFormat::control},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize clip_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.depth;
}

// --- reference -----------------------------------------------------------------------------------

double clipped(double norm, double max_norm) {
  return max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + clip_epsilon));
}

void skip(float* control, const KernelAttributes& attributes) {
  control[update_control::factor] = 0;
  control[update_control::good_updates] = 0;
  if (attributes.as<kernels::Clip>().growth_interval == 0) return;
  control[update_control::loss_scale] *= static_cast<float>(attributes.as<kernels::Clip>().backoff);
}

void count_good_update(float* control, const KernelAttributes& attributes) {
  control[update_control::updates] += 1;
  control[update_control::good_updates] += 1;
  const double interval = attributes.as<kernels::Clip>().growth_interval;
  if (interval == 0 || control[update_control::good_updates] < interval) return;
  control[update_control::loss_scale] *= static_cast<float>(attributes.as<kernels::Clip>().growth);
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
  if (!std::isfinite(norm)) return skip(control, call.attributes);
  control[update_control::factor] =
      static_cast<float>(clipped(norm, call.attributes.as<kernels::Clip>().max_norm) / scale);
  count_good_update(control, call.attributes);
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> clip_kernels() {
  return {{kernels::Clip::name, clip_operands, clip_flops, clip_reference,
           in_cuda_builds<prepare_clip>()}};
}

}  // namespace stepgate
