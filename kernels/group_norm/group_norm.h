// SPDX-License-Identifier: MIT
// Group norm of images whose channels lie side by side (NHWC), with a SiLU behind it, and its
// gradients. The input may be two images side by side, whose concatenation is never made.
// Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

// Samples of `pixels` rows. A row of the input has `columns` channels of x, then `others` of a
// second operand, which is empty where there are none. The groups are equally many neighbouring
// channels.
template <class Size>
struct GroupNormSizes {
  static constexpr std::string_view names = "samples pixels columns others groups";
  Size samples = 1;
  Size pixels = 1;
  Size columns = 1;
  Size others = 0;
  Size groups = 1;

  constexpr Size channels() const { return columns + others; }
};
using GroupNormShape = GroupNormSizes<std::int64_t>;

// The same, where the pixels of each sample are divided among parts: part p takes the pixels p,
// p + parts, ...
template <class Size>
struct GroupNormPartsSizes {
  static constexpr std::string_view names = "samples pixels columns others groups parts";
  Size samples = 1;
  Size pixels = 1;
  Size columns = 1;
  Size others = 0;
  Size groups = 1;
  Size parts = 1;

  constexpr Size channels() const { return columns + others; }
};
using GroupNormPartsShape = GroupNormPartsSizes<std::int64_t>;

// The number of parts of a sample that gives about two blocks to each of the 132 multiprocessors of
// an H200, which run at once. A part has at least 64 pixels, so that its sums are few bytes
// compared with them.
constexpr std::int64_t group_norm_parts(std::int64_t samples, std::int64_t pixels) {
  constexpr std::int64_t blocks = 2 * 132, least_pixels = 64;
  const std::int64_t most = blocks / samples;
  const std::int64_t parts = pixels / least_pixels < most ? pixels / least_pixels : most;
  return parts < 1 ? 1 : parts;
}

// Numbers of the statistics and of the means for each group of a sample.
constexpr std::int64_t group_norm_numbers = 2;

// Whether a norm ends with a SiLU: y = z / (1 + exp(-z)) of the norm z (Elfwing, Uchibe and Doya:
// Sigmoid-weighted linear units, 2017, equation 2).
struct SiluAttributes {
  static constexpr std::string_view names = "silu";
  bool silu = false;
};

namespace kernels {

// Sums for the statistics of each channel of each sample, by parts. The sample's first pixel is
// subtracted from every pixel, so that a mean far from 0 costs the variance no bits.
//   shape     samples, pixels, columns, others, groups, parts (group_norm_parts(samples, pixels));
//             C = columns + others
//   operands  x ([samples][pixels][columns]), other ([samples][pixels][others]), first (fp32
//             [samples][C]: the first pixel), partials (fp32 [samples][parts][2 C]: of x - first,
//             then of its squares)
struct GroupNormSums {
  static constexpr std::string_view name = "group_norm_sums";
  using Shape = GroupNormPartsShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The statistics of each group of each sample, from the sums of group_norm_sums: the mean over the
// pixels and channels of the group, and 1 / sqrt(variance + epsilon) with the biased variance.
//   shape     samples, pixels, columns, others, groups, parts, as of group_norm_sums
//   operands  first (fp32 [samples][C]), partials (fp32 [samples][parts][2 C]), statistics (fp32
//             [samples][groups][2])
struct GroupNormFinish {
  static constexpr std::string_view name = "group_norm_finish";
  using Shape = GroupNormPartsShape;
  struct Attributes {
    static constexpr std::string_view names = "epsilon";
    double epsilon = 0;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// z = n weight + bias with n = (x - mean) / sqrt(variance + epsilon), the mean and variance of the
// sample's group (Wu and He: Group normalization, 2018, equations 1, 2 and 6). y = z, or silu(z),
// rounded once.
//   shape     samples, pixels, columns, others, groups; C = columns + others
//   operands  x ([samples][pixels][columns]), other ([samples][pixels][others]), statistics (fp32
//             [samples][groups][2], of group_norm_finish), weight ([C]), bias ([C]), y
//             ([samples][pixels][C])
struct GroupNormApply {
  static constexpr std::string_view name = "group_norm_apply";
  using Shape = GroupNormShape;
  using Attributes = SiluAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Sums for the gradients of a norm, by parts. d is d_y, or d_y silu'(z), where z is computed again.
//   shape     samples, pixels, columns, others, groups, parts (group_norm_parts(samples, pixels))
//   operands  d_y ([samples][pixels][C]), x, other, statistics (fp32 [samples][groups][2]), weight
//             ([C]), bias ([C]), partials (fp32 [samples][parts][2 C]: of d, then of d n)
struct GroupNormGradientSums {
  static constexpr std::string_view name = "group_norm_gradient_sums";
  using Shape = GroupNormPartsShape;
  using Attributes = SiluAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The gradients of weight and bias, which are the sums of d n and of d over samples and pixels, and
// the means that the gradient of x needs.
//   shape     samples, pixels, columns, others, groups, parts, as of the sums
//   operands  partials (fp32 [samples][parts][2 C]), weight ([C]), d_weight and d_bias ([C]; read
//             only when accumulating), means (fp32 [samples][groups][2]: over the group, of weight
//             d, then of weight d n)
struct GroupNormGradientFinish {
  static constexpr std::string_view name = "group_norm_gradient_finish";
  using Shape = GroupNormPartsShape;
  struct Attributes {
    static constexpr std::string_view names = "accumulate";
    bool accumulate = false;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// d_x = (weight d - mean of (weight d) - n mean of (weight d n)) / sqrt(variance + epsilon), with
// the d of group_norm_gradient_sums, or d_x += that; d_other alike.
//   shape     samples, pixels, columns, others, groups; C = columns + others
//   operands  d_y ([samples][pixels][C]), x, other, statistics (fp32 [samples][groups][2]), weight
//             ([C]), bias ([C]), means (fp32 [samples][groups][2]), d_x
//             ([samples][pixels][columns]), d_other ([samples][pixels][others]; both are read only
//             when accumulating)
struct GroupNormGradientApply {
  static constexpr std::string_view name = "group_norm_gradient_apply";
  using Shape = GroupNormShape;
  struct Attributes {
    static constexpr std::string_view names = "silu accumulate";
    bool silu = false;
    bool accumulate = false;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> group_norm_kernels();

}  // namespace stepgate
