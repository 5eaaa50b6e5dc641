// SPDX-License-Identifier: MIT
// Numbers in 8 bits with one scale for a whole tensor, as GEMMs in fp8 read them. fp8_numbers.h has
// the formats and the scale. A GEMM in fp8 sums along the rows of both factors, so that a tensor
// and its transpose are made at once. Launchers exist only in CUDA builds, and take bf16 alone.
#pragma once

#include <algorithm>

#include "kernels/kernel.h"

namespace stepgate {

// The number of steps over whose maxima a delayed scale is taken, as TransformerEngine's
// DelayedScaling(amax_history_len=16, amax_compute_algo="max"), and the numbers kept for a tensor:
// the maximum of this step so far, and those of the steps before it, the latest first.
inline constexpr std::int64_t amax_history = 16;
inline constexpr std::int64_t amax_numbers = 1 + amax_history;

struct Fp8Attributes {
  static constexpr std::string_view names = "gradient";
  bool gradient = false;  // e5m2, which has the range of gradients; else e4m3
};

namespace kernels {

// The largest absolute value of a tensor, in parts. A NaN is larger than every number.
//   amax_parts
//   shape     numbers, parts (amax_parts returns the best number for a GPU)
//   operands  x ([numbers]), maxima (fp32 [parts])
struct AmaxParts {
  static constexpr std::string_view name = "amax_parts";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "numbers parts";
    Size numbers = 1;
    Size parts = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// A matrix in fp8, and its transpose, scaled by its own largest absolute value:
//   scale = largest number of the format / max(maxima); out = x scale, saturated
//   quantize_fp8
//   shape     rows, columns, parts
//   operands  x ([rows][columns]), maxima (fp32 [parts], of amax_parts), out (bytes
//             [rows][columns]), transposed (bytes [columns][rows]), inverse_scale (fp32 [1])
struct QuantizeFp8 {
  static constexpr std::string_view name = "quantize_fp8";
  using Shape = PartsShape;
  using Attributes = Fp8Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// As quantize_fp8, scaled by the largest of the maxima of earlier steps. x is read once, and its
// own largest absolute value recorded for later steps.
//   quantize_fp8_delayed
//   shape     rows, columns
//   operands  x ([rows][columns]), maxima (fp32 [17]: of this step so far, and of 16 steps before),
//             out (bytes [rows][columns]), transposed (bytes [columns][rows]), inverse_scale (fp32
//             [1])
struct QuantizeFp8Delayed {
  static constexpr std::string_view name = "quantize_fp8_delayed";
  using Shape = MatrixShape;
  using Attributes = Fp8Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Moves the maxima of all tensors on by a step: the step's own becomes the latest of the history,
// whose oldest is forgotten, and 0 is where the next step begins.
//   move_amax_histories
//   shape     tensors
//   operands  maxima (fp32 [tensors][17], as quantize_fp8_delayed has them)
struct MoveAmaxHistories {
  static constexpr std::string_view name = "move_amax_histories";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "tensors";
    Size tensors = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// Number of parts: four blocks for each of 132 multiprocessors, and no part so small that starting
// its block takes longer than reading it.
constexpr std::int64_t amax_parts(std::int64_t numbers) {
  constexpr std::int64_t most = 4 * 132, smallest_part = 8192;
  return std::clamp<std::int64_t>((numbers + smallest_part - 1) / smallest_part, 1, most);
}

// Numbers of each part but the last ones, which may be shorter or empty; a multiple of 8, so that
// all parts of an aligned operand are aligned.
constexpr std::int64_t amax_part(const kernels::AmaxParts::Shape& shape) {
  const std::int64_t share = (shape.numbers + shape.parts - 1) / shape.parts;
  return (share + 7) / 8 * 8;
}

std::vector<Kernel> fp8_kernels();

}  // namespace stepgate
