// SPDX-License-Identifier: MIT
// Convolutions by cuDNN 9. Knows no cuDNN types; cudnn/graph.h turns graphs into plans. Every plan
// gives the same bits twice. In fp32 it keeps all bits of the factors; in tf32 tensor cores may
// round them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/convolution/convolution.h"
#include "kernels/cudnn/open_cudnn.h"

namespace stepgate {

struct ConvolutionRequest {
  std::string_view kernel;  // "convolution", and so on; chooses the pass
  ConvolutionShape shape;
  DType dtype = DType::bf16;
  bool accumulate = false;  // of the weight gradient
};

// The sizes of the kernel's operands in numbers, in its order; the last is the result.
std::vector<std::int64_t> operand_elements(const ConvolutionRequest&);

// Returns the index of the launch to keep, of two or more, by engines that cuDNN's heuristics rank
// in this order.
using ChooseLaunch = std::function<std::size_t(const std::vector<Launch>&)>;

// A launch on the kernel's operands, in their order, which are aligned to 16 bytes: the first by
// cuDNN's ranking, or that which `choose` chooses, once for each request and workspace. nullopt
// where cuDNN has none that needs at most workspace_bytes; *reason then says why. Launches follow
// each other, since they share the workspace. A launch throws std::runtime_error where cuDNN
// refuses it.
std::optional<Launch> cudnn_convolution(Cudnn&, const ConvolutionRequest&, void* workspace,
                                        std::int64_t workspace_bytes, std::string* reason,
                                        const ChooseLaunch& choose = nullptr);

}  // namespace stepgate
