// SPDX-License-Identifier: MIT
#include "kernels/catalogue.h"

#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#include "kernels/kernels.h"

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
      residual_bias_layer_norm_kernel(),
      layer_norm_gradient_kernel(),
      rms_norm_kernel(),
      residual_bias_rms_norm_kernel(),
      rms_norm_gradient_kernel(),
      sum_parts_kernel(),
      matmul_kernel(),
      linear_kernel(),
      split_heads_kernel(),
      causal_softmax_kernel(),
      causal_softmax_gradient_kernel(),
      merge_heads_kernel(),
      attention_kernel(),
      attention_gradient_kernel(),
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
      square_sums_kernel(),
      clip_kernel(),
      adamw_master_kernel(),
      adamw_clipped_kernel(),
      lion_kernel(),
      lion_clipped_kernel(),
      lion_master_kernel(),
      foreach_kernel(ForeachPass::unscale),
      foreach_kernel(ForeachPass::decay),
      foreach_kernel(ForeachPass::lerp),
      foreach_kernel(ForeachPass::mul),
      foreach_kernel(ForeachPass::addcmul),
      foreach_kernel(ForeachPass::sqrt),
      foreach_kernel(ForeachPass::div),
      foreach_kernel(ForeachPass::add),
      foreach_kernel(ForeachPass::addcdiv),
      strided_scale_kernel(),
      spin_kernel(),
  };
  return catalogue;
}

const Kernel& kernel(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Kernel*> all;
    for (const Kernel& kernel : kernel_catalogue()) all.emplace(kernel.name, &kernel);
    return all;
  }();
  const auto found = by_name.find(name);
  if (found != by_name.end()) return *found->second;
  std::fprintf(stderr, "no kernel is named '%.*s'\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

}  // namespace stepgate
