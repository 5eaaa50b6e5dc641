// SPDX-License-Identifier: MIT
// Samples of raw words become token sequences and the next token of each position. Every word of a
// sample takes part, so that a transfer that lost one shows.
//   shape     rows = samples; columns = T, positions of a sample; depth = words of a sample, more
//             than T
//   operands  payload (32-bit words [rows][depth]), tokens, labels (int32 [rows][T], each in
//             [0, vocabulary))
// With word(b, j) the exclusive or of payload[b][j + k (T + 1)] over all k, for j in [0, T]:
// tokens[b][t] = word(b, t) mod vocabulary, labels[b][t] = word(b, t + 1) mod vocabulary.
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace ingest_tokens_scalar {
constexpr std::size_t vocabulary = 0;
}

Kernel ingest_tokens_kernel();

// Only in CUDA builds.
Launch prepare_ingest_tokens(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
