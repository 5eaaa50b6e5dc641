// SPDX-License-Identifier: MIT
// Where it is decided whether cuDNN or a kernel of ours carries attention out, and said why. How
// cuDNN does it is cudnn_attention.h's; our kernels are the launchers', which ask here first.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/kernel.h"

namespace stepgate {

// cuDNN's launch of `attention`; nothing if our kernel should be used. Records the choice in
// context.choices, except for 32-bit numbers: cuDNN has no such kernel, so there is no choice.
std::optional<Launch> attention_by_cudnn(const PackedHeadsShape&, DType, const LaunchContext&);

// Like attention_by_cudnn, for `attention_gradient`. cuDNN may use at most `most_scratch` bytes of
// scratch, so each launch takes a part of the sequences.
std::optional<Launch> attention_gradient_by_cudnn(const PackedHeadsShape&, DType,
                                                  std::int64_t most_scratch, const LaunchContext&);

}  // namespace stepgate
