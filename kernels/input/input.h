// SPDX-License-Identifier: MIT
// Kernels that compute the inputs of a step from the bytes that the host copied. Launchers exist
// only in CUDA builds.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// Converts the bytes of a batch to the numbers that a model reads, as ToTensor and Normalize with
// mean and deviation 0.5 do to images in a loader.
//   shape     rows = samples; columns = numbers of a sample
//   operands  bytes (uint8 [rows][columns]), words (fp32 [rows][columns])
// words[b][i] is bytes[b][i] / 127.5 - 1, which is in [-1, 1], rounded once. Host and device
// compute the same bits, from which labels are taken.
struct Decode {
  static constexpr std::string_view name = "decode";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// Computes the number for a byte v. v / 127.5 - 1 is n / 255 with n = 2 v - 255, and 1 / 255 is
// 2^-8 + 2^-16 + 2^-24 + ... n times the first two terms is exact, and n times the next three is so
// small that only the sum rounds, whichever instructions a compiler chooses. input.cpp proves this
// for every byte.
constexpr float decoded(std::uint8_t byte) {
  const auto doubled = static_cast<float>(2 * byte - 255);
  return doubled * 0x1.01p-8f + doubled * 0x1.0101p-24f;
}

namespace kernels {

// Converts a payload of raw words to the model's input and labels.
//   shape     samples; features H; words of a sample W, at least H + 1
//   operands  payload (fp32 [samples][W]), features ([samples][H]), labels (int32 [samples])
// features[b][h] is the mean of payload[b][h + k H] over all k with h + k H < W - 1. A sample's
// label is the bits of its last word, modulo `classes`. Every word of the payload is read.
struct Ingest {
  static constexpr std::string_view name = "ingest";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "samples features words";
    Size samples = 1;
    Size features = 1;
    Size words = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names = "classes";
    std::int64_t classes = 0;  // 0: as many as features
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Converts images of bytes to the model's input and labels. `decode` and `ingest` compute the same,
// and store words in between.
//   shape     samples; features H; words of a sample W, at least H + 1
//   operands  bytes (uint8 [samples][W]), images ([samples][H]), labels (int32 [samples])
// images[b][h] is the mean of decoded(bytes[b][h + k H]) over all k with h + k H < W - 1, rounded
// to storage. Where W is H + 1, it is (x / 255 - 0.5) / 0.5 of one byte x, and host and device
// compute the same bits. A sample's label is the bits of decoded(its last byte), modulo `classes`,
// hence one of at most 256. Every byte is read.
struct DecodeImages {
  static constexpr std::string_view name = "decode_images";
  using Shape = Ingest::Shape;
  using Attributes = Ingest::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Converts samples of raw words to one index into each of a model's tables, and a label. Every word
// of a sample affects the result, so that lost data of a transfer is noticed.
//   shape     samples; tables = T; words of a sample, more than T
//   operands  payload (32-bit words [samples][words]), indices (int32, one per sample and table),
//             labels (int32 [samples], each in [0, classes))
// Let word(b, j) be the exclusive or of payload[b][j + k (T + 1)] over all k, for j in [0, T].
// Sample b looks up row(b, t) = token_of(word(b, t), table_rows) of table t, and its label is
// labels[b] = token_of(word(b, T), classes). The indices are stored
//   as rows of one table, in which the tables follow one another: [samples][T], t table_rows +
//     row(b, t)
//   by table: [T][samples], row(b, t)
struct IngestIndices {
  static constexpr std::string_view name = "ingest_indices";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "samples tables words";
    Size samples = 1;
    Size tables = 1;
    Size words = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names = "table_rows classes by_table";
    std::int64_t table_rows = 1;
    std::int64_t classes = 1;
    bool by_table = false;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Converts samples of raw words to token sequences and the next token of each position. Every word
// of a sample affects the result, so that lost data of a transfer is noticed.
//   shape     samples; positions = T, of a sample; words of a sample, more than T
//   operands  payload (32-bit words [samples][words]), tokens, labels (int32 [samples][T], each in
//             [0, vocabulary); labels of padding are -1)
// Let word(b, j) be the exclusive or of payload[b][j + k (T + 1)] over all k, for j in [0, T]. Then
// tokens[b][t] = token_of(word(b, t), vocabulary), labels[b][t] = token_of(word(b, t + 1), ...).
// From position `length` on a sample is padding. Its tokens stay, since no other token sees them,
// and its labels are -1, which no loss counts.
struct IngestTokens {
  static constexpr std::string_view name = "ingest_tokens";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "samples positions words";
    Size samples = 1;
    Size positions = 1;
    Size words = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names = "vocabulary length";
    std::int64_t vocabulary = 1;
    std::int64_t length = 0;  // tokens of a sample without padding; 0: all
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// Maps a word to a token. Words whose lowest bits are mostly 0, such as short fractions, still
// reach every token (Fibonacci hashing, Knuth: The Art of Computer Programming, volume 3, section
// 6.4). The high half of a product is as uniform as a remainder (Lemire: Fast random integer
// generation in an interval, 2019).
constexpr std::int32_t token_of(std::uint32_t word, std::uint32_t vocabulary) {
  const std::uint32_t mixed = word * 0x9e3779b1u;
  return static_cast<std::int32_t>((std::uint64_t{mixed} * vocabulary) >> 32);
}

// The number of different labels of samples.
constexpr std::int64_t classes_of(const kernels::Ingest::Shape& shape,
                                  const kernels::Ingest::Attributes& attributes) {
  return attributes.classes > 0 ? attributes.classes : shape.features;
}

constexpr std::int32_t label_of_padding = -1;

// The number of positions of a sample that have labels.
constexpr std::int64_t labelled_positions(const kernels::IngestTokens::Shape& shape,
                                          const kernels::IngestTokens::Attributes& attributes) {
  return attributes.length > 0 ? attributes.length : shape.positions;
}

std::vector<Kernel> input_kernels();

}  // namespace stepgate
