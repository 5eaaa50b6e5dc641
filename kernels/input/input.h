// SPDX-License-Identifier: MIT
// Kernels that make the inputs of a step of what the host copied. Launchers are in CUDA builds
// alone.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// Turns the bytes of a batch into the words that a model reads, as ToTensor and Normalize with mean
// and deviation 0.5 do to images in a loader.
//   shape     rows = samples; columns = numbers of a sample
//   operands  bytes (uint8 [rows][columns]), words (fp32 [rows][columns])
// words[b][i] is bytes[b][i] / 127.5 - 1, hence in [-1, 1], rounded once: the same bits on host and
// device, whose labels are bits.
struct Decode {
  static constexpr std::string_view name = "decode";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// The number that the kernel computes for a byte. v / 127.5 - 1 is n / 255 with n = 2 v - 255, and
// 1 / 255 is 2^-8 + 2^-16 + 2^-24 + ... So n times the first two terms is exact, and n times the
// next three is so small that the sum alone rounds, in whichever instructions a compiler has it.
// input.cpp proves that of every byte.
constexpr float decoded(std::uint8_t byte) {
  const auto doubled = static_cast<float>(2 * byte - 255);
  return doubled * 0x1.01p-8f + doubled * 0x1.0101p-24f;
}

namespace kernels {

// Turns a payload of raw words into the model's input and labels.
//   shape     samples; features H; words of a sample W, at least H + 1
//   operands  payload (fp32 [samples][W]), features ([samples][H]), labels (int32 [samples])
// features[b][h] is the mean of payload[b][h + k H] over all k with h + k H < W - 1; the bits of a
// sample's last word modulo H are its label. Every word of the payload is read.
struct Ingest {
  static constexpr std::string_view name = "ingest";
  template <class Size>
  struct Sizes {
    Size samples = 1;
    Size features = 1;
    Size words = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Samples of raw words become one index into each of a model's tables, and a label. Every word of a
// sample takes part, so that a transfer that lost one shows.
//   shape     samples; tables = T; words of a sample, more than T
//   operands  payload (32-bit words [samples][words]), indices (int32, one a sample and a table),
//             labels (int32 [samples], each in [0, classes))
// With word(b, j) the exclusive or of payload[b][j + k (T + 1)] over all k, for j in [0, T], and
// token_of below: sample b looks up row(b, t) = token_of(word(b, t),
// table_rows) of table t, and labels[b] = token_of(word(b, T), classes). The indices are
//   as rows of one table, in which the tables lie one after the other:
//             [samples][T], t table_rows + row(b, t)
//   by table  [T][samples], row(b, t)
struct IngestIndices {
  static constexpr std::string_view name = "ingest_indices";
  template <class Size>
  struct Sizes {
    Size samples = 1;
    Size tables = 1;
    Size words = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    std::int64_t table_rows = 1;
    std::int64_t classes = 1;
    bool by_table = false;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Samples of raw words become token sequences and the next token of each position. Every word of a
// sample takes part, so that a transfer that lost one shows.
//   shape     samples; positions = T, of a sample; words of a sample, more than T
//   operands  payload (32-bit words [samples][words]), tokens, labels (int32 [samples][T], each in
//             [0, vocabulary); labels of padding are -1)
// With word(b, j) the exclusive or of payload[b][j + k (T + 1)] over all k, for j in [0, T]:
// tokens[b][t] = token_of(word(b, t), vocabulary), labels[b][t] = token_of(word(b, t + 1), ...).
// From position `length` on a sample is padding: its tokens are as drawn, since none of the others
// sees them, and its labels are -1, which no loss counts.
struct IngestTokens {
  static constexpr std::string_view name = "ingest_tokens";
  template <class Size>
  struct Sizes {
    Size samples = 1;
    Size positions = 1;
    Size words = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    std::int64_t vocabulary = 1;
    std::int64_t length = 0;  // tokens of a sample that are no padding; 0: all of them
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
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
constexpr std::int64_t labelled_positions(const kernels::IngestTokens::Shape& shape,
                                          const kernels::IngestTokens::Attributes& attributes) {
  return attributes.length > 0 ? attributes.length : shape.positions;
}

std::vector<Kernel> input_kernels();

}  // namespace stepgate
