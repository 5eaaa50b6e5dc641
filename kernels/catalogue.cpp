// SPDX-License-Identifier: MIT
#include "kernels/catalogue.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels/accumulate_loss/accumulate_loss.h"
#include "kernels/adamw/adamw.h"
#include "kernels/add/add.h"
#include "kernels/bias_activation/bias_activation.h"
#include "kernels/bias_gradient/bias_gradient.h"
#include "kernels/column_parts/column_parts.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/embedding/embedding.h"
#include "kernels/embedding_gradient/embedding_gradient.h"
#include "kernels/gelu/gelu.h"
#include "kernels/ingest/ingest.h"
#include "kernels/ingest_tokens/ingest_tokens.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/layer_norm_gradient/layer_norm_gradient.h"
#include "kernels/matmul/matmul.h"
#include "kernels/mean_loss/mean_loss.h"
#include "kernels/relu_gradient/relu_gradient.h"
#include "kernels/report_loss/report_loss.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rms_norm_gradient/rms_norm_gradient.h"
#include "kernels/sgd/sgd.h"
#include "kernels/spin/spin.h"
#include "kernels/sum_parts/sum_parts.h"

namespace stepgate {

std::span<const Kernel> kernel_catalogue() {
  static const std::vector<Kernel> catalogue = {
      ingest_kernel(),
      ingest_tokens_kernel(),
      embedding_kernel(),
      embedding_gradient_kernel(),
      add_kernel(),
      gelu_kernel(),
      gelu_gradient_kernel(),
      bias_gelu_kernel(),
      layer_norm_kernel(),
      residual_layer_norm_kernel(),
      layer_norm_gradient_kernel(),
      rms_norm_kernel(),
      residual_rms_norm_kernel(),
      rms_norm_gradient_kernel(),
      sum_parts_kernel(),
      matmul_kernel(),
      bias_activation_kernel(),
      relu_gradient_kernel(),
      bias_gradient_kernel(),
      column_parts_kernel(),
      cross_entropy_kernel(),
      scaled_cross_entropy_kernel(),
      report_loss_kernel(),
      accumulate_loss_kernel(),
      mean_loss_kernel(),
      sgd_kernel(),
      adamw_kernel(),
      spin_kernel(),
  };
  return catalogue;
}

const Kernel& kernel(std::string_view name) {
  for (const Kernel& candidate : kernel_catalogue()) {
    if (candidate.name == name) return candidate;
  }
  std::fprintf(stderr, "no kernel is named '%.*s'\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

}  // namespace stepgate
