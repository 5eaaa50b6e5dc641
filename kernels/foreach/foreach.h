// SPDX-License-Identifier: MIT
// AdamW as a "foreach" optimizer makes it: one pass over all tensors for each elementary operation,
// with every intermediate in memory (torch.optim.AdamW(foreach=True) of PyTorch 2). All passes in
// order equal adamw_clipped to rounding; each reads and writes what its operation needs, so that
// together they move 88 bytes a parameter in fp32 where adamw_clipped moves 28.
//   shape     rows x columns numbers
//   operands  the target, other tensors, control (fp32 [8], see update_control.h); m, v and
//             denominators are fp32
//   attributes   those of adamw.h; t = control's updates
// Where the control's factor is 0 no weight, gradient or moment changes.
#pragma once

#include "kernels/adamw/adamw.h"
#include "kernels/kernel.h"

namespace stepgate {

enum class ForeachPass {
  unscale,  // gradients *= factor
  decay,    // weights *= 1 - learning_rate * weight_decay
  lerp,     // m += (1 - beta1) (gradients - m)
  mul,      // v *= beta2
  addcmul,  // v += (1 - beta2) gradients^2
  sqrt,     // denominators = sqrt(v); no control, since nothing else is lost
  div,      // denominators /= sqrt(1 - beta2^t)
  add,      // denominators += epsilon; no control
  addcdiv,  // weights -= learning_rate / (1 - beta1^t) * m / denominators
};

namespace kernels {

// In the order of ForeachPass.
inline constexpr std::string_view foreach_names[] = {
    "foreach_unscale", "foreach_decay", "foreach_lerp", "foreach_mul",    "foreach_addcmul",
    "foreach_sqrt",    "foreach_div",   "foreach_add",  "foreach_addcdiv"};

template <ForeachPass pass>
struct Foreach {
  static constexpr std::string_view name = foreach_names[static_cast<std::size_t>(pass)];
  using Attributes = Adamw::Attributes;
};

}  // namespace kernels

std::vector<Kernel> foreach_kernels();

// Only in CUDA builds.
template <ForeachPass pass>
Launch prepare_foreach(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
