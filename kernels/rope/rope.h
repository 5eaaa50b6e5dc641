// SPDX-License-Identifier: MIT
// Rotary position embedding (Su et al.: RoFormer, 2021, section 3.2.2), with the halves of a head
// as pairs, as Llama has them in Hugging Face's Transformers: numbers i and i + D/2 of a head of
// the token at position t turn together by the angle a = t base^(-2 i / D).
//   x[i], x[i + D/2]  become  x[i] cos a - x[i + D/2] sin a,  x[i + D/2] cos a + x[i] sin a
//   shape     rows = N tokens, whole sequences one behind the other; columns = numbers of a row;
//             depth = T, the length of a sequence; groups = heads that turn: the first of a row,
//             which are the queries' and the keys' where it is q | k | v
//   operands  rows [N][columns], in place
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Rope {
  static constexpr std::string_view name = "rope";
  struct Attributes {
    std::int64_t width = 2;  // D, even; at most 256 on a GPU
    double base = 10000;     // at least 1
    bool inverse = false;    // by -a: the transpose of that turn, hence its gradient
  };
};

}  // namespace kernels

std::vector<Kernel> rope_kernels();

// Only in CUDA builds. Throws std::runtime_error for heads wider than 256.
Launch prepare_rope(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
