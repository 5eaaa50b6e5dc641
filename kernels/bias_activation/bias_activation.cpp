// SPDX-License-Identifier: MIT
// The host side of bias_activation: operands, work and the reference. Meaning and shapes:
// bias_activation.h.
#include "kernels/bias_activation/bias_activation.h"

#include <tuple>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand bias_activation_operands[] = {
    {"x", Access::read, extent::elements},
    {"bias", Access::read, extent::columns},
    {.name = "y", .access = Access::write, .elements = extent::elements, .may_replace = 0},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize bias_activation_flops(const CheckedShape& shape, const KernelAttributes& attributes) {
  return elements_of(shape) * (attributes.as<kernels::BiasActivation>().relu ? 2 : 1);
}

// --- reference -----------------------------------------------------------------------------------

void bias_activation_reference(const KernelCall& call) {
  const auto [x, bias, y] = std::tuple{call.buffers[0], call.buffers[1], call.buffers[2]};
  const bool relu = call.attributes.as<kernels::BiasActivation>().relu;
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const double sum =
        number_at(x, call.dtype, i) + number_at(bias, call.dtype, i % call.shape.columns);
    set_number(y, call.dtype, i, relu && sum < 0 ? 0.0 : sum);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> bias_activation_kernels() {
  return {{kernels::BiasActivation::name, bias_activation_operands, bias_activation_flops,
           bias_activation_reference, in_cuda_builds<prepare_bias_activation>()}};
}

}  // namespace stepgate
