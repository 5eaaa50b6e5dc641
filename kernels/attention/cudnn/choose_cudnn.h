// SPDX-License-Identifier: MIT
// Chooses between cuDNN and the project's own kernels for attention, and records the reason.
// cudnn_attention.h makes the launches of cuDNN. The launchers of attention call this before they
// use their own kernels.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/kernel.h"

namespace stepgate {

// Returns cuDNN's launch of `attention`; nullopt if the project's own kernel should be used.
// Records the choice in context.choices, except for 32-bit numbers: cuDNN has no such kernel, so
// there is no choice.
std::optional<Launch> attention_by_cudnn(const AttentionShape&, DType, const LaunchContext&,
                                         bool causal = true);

// Like attention_by_cudnn, for `attention_gradient`. cuDNN may use at most `most_scratch` bytes of
// scratch, so each launch takes a part of the sequences. The record says so if the sums have any
// order.
std::optional<Launch> attention_gradient_by_cudnn(const AttentionShape&, DType,
                                                  std::int64_t most_scratch, SumOrder,
                                                  const LaunchContext&, bool causal = true);

}  // namespace stepgate
