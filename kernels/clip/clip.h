// SPDX-License-Identifier: MIT
// Decides one update from the norm of all gradients: by what every gradient is multiplied, whether
// the update is skipped, and the next loss scale. Clipping as torch.nn.utils.clip_grad_norm_ does
// it, the scale as torch.amp.GradScaler does (there growth 2, backoff 0.5, growth_interval 2000).
//   shape     depth partial sums
//   operands  partials (fp32 [depth], of square_sums), control (fp32 [8], see update_control.h)
//   norm = sqrt(sum of partials) / loss_scale
//   norm finite:  factor = min(1, max_norm / (norm + 1e-6)) / loss_scale;  updates += 1
//                 good_updates += 1; at growth_interval: loss_scale *= growth, good_updates = 0
//   otherwise:    factor = 0;  good_updates = 0;  loss_scale *= backoff unless it is fixed
// The factor is of the scale before it changes, with which the gradients were computed.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Clip {
  static constexpr std::string_view name = "clip";
  struct Attributes {
    double max_norm = 0;         // 0: no clipping
    double growth_interval = 0;  // 0: the scale is fixed, but inf and NaN still skip
    double growth = 2;
    double backoff = 0.5;
  };
};

}  // namespace kernels

constexpr double clip_epsilon = 1e-6;

std::vector<Kernel> clip_kernels();

// Only in CUDA builds.
Launch prepare_clip(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
