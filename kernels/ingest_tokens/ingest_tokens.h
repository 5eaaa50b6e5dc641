// SPDX-License-Identifier: MIT
// Samples of raw words become token sequences and the next token of each position. Every word of a
// sample takes part, so that a transfer that lost one shows.
//   shape     rows = samples; columns = T, positions of a sample; depth = words of a sample, more
//             than T
//   operands  payload (32-bit words [rows][depth]), tokens, labels (int32 [rows][T], each in
//             [0, vocabulary); labels of padding are -1)
// With word(b, j) the exclusive or of payload[b][j + k (T + 1)] over all k, for j in [0, T]:
// tokens[b][t] = token_of(word(b, t), vocabulary), labels[b][t] = token_of(word(b, t + 1), ...).
// From position `length` on a sample is padding: its tokens are as drawn, since none of the others
// sees them, and its labels are -1, which no loss counts.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct IngestTokens {
  static constexpr std::string_view name = "ingest_tokens";
  struct Attributes {
    std::int64_t vocabulary = 1;
    std::int64_t length = 0;  // tokens of a sample that are no padding; 0: all of them
  };
};

}  // namespace kernels

// Words whose lowest bits are mostly 0, as those of short fractions, still give every token
// (Fibonacci hashing, Knuth: The Art of Computer Programming, volume 3, section 6.4), and the high
// half of a product is as even as a remainder (Lemire: Fast random integer generation in an
// interval, 2019).
constexpr std::int32_t token_of(std::uint32_t word, std::uint32_t vocabulary) {
  const std::uint32_t mixed = word * 0x9e3779b1u;
  return static_cast<std::int32_t>((std::uint64_t{mixed} * vocabulary) >> 32);
}

constexpr std::int32_t label_of_padding = -1;

// Positions of a sample whose labels count.
constexpr std::int64_t labelled_positions(const KernelShape& shape,
                                          const KernelAttributes& attributes) {
  const std::int64_t length = attributes.as<kernels::IngestTokens>().length;
  return length > 0 ? length : shape.columns;
}

std::vector<Kernel> ingest_tokens_kernels();

// Only in CUDA builds.
Launch prepare_ingest_tokens(const KernelShape&, DType, const KernelAttributes&,
                             const LaunchContext&);

}  // namespace stepgate
