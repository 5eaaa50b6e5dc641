// SPDX-License-Identifier: MIT
// Where it is decided whether cuDNN or a kernel of ours carries attention out, and said why. How
// cuDNN does it is cudnn_attention.h's; our kernels are the launchers', which ask here first.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/kernel.h"

namespace stepgate {

// cuDNN's launch of `attention`; nothing where ours is to be taken. Tells the context's choices
// which, but of numbers of 32 bits, for which cuDNN has none and so there is no choice.
std::optional<Launch> attention_by_cudnn(const PackedHeadsShape&, DType, const LaunchContext&);

// The same of `attention_gradient`, whose scratch may take so many bytes for cuDNN: one launch for
// each share of the sequences.
std::optional<Launch> attention_gradient_by_cudnn(const PackedHeadsShape&, DType,
                                                  std::int64_t most_scratch, const LaunchContext&);

}  // namespace stepgate
