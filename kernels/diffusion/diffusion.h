// SPDX-License-Identifier: MIT
// A denoising diffusion model reads noisy samples and embeddings of their times (Ho, Jain and
// Abbeel: Denoising diffusion probabilistic models, 2020). Launchers exist only in CUDA builds.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace stepgate {

constexpr std::int64_t diffusion_times = 1000;  // from little noise to noise alone

// SplitMix64's output function (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// 2014) after `index` + 1 steps from the seed.
constexpr std::uint64_t noise_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Two numbers of 24 bits, the first in (0, 1], the second in [0, 1).
struct NoiseDraw {
  float radius, angle;

  constexpr NoiseDraw(std::uint64_t bits)
      : radius(static_cast<float>((bits >> 40) + 1) * 0x1p-24f),
        angle(static_cast<float>(bits >> 16 & 0xffffff) * 0x1p-24f) {}
};

namespace kernels {

// noisy = a x + sqrt(1 - a^2) noise, with the noise of a normal distribution by Box and Muller (A
// note on the generation of random normal deviates, 1958) and the a of a cosine schedule (Nichol
// and Dhariwal: Improved denoising diffusion probabilistic models, 2021, equation 17):
//   a = cos(c(t + 1)) / cos(c(0)),  c(t) = (t / 1000 + 0.008) / 1.008 pi / 2
//   noise = sqrt(-2 ln u) cos(2 pi v), u and v of noise_bits(noise_bits(step, t), i)
//   shape     samples, features
//   operands  x ([samples][features]), times (int32 [samples], t in [0, 1000)), counter (uint64
//             [1], the steps so far), noisy ([samples][features]), noise ([samples][features],
//             rounded before it is added)
struct AddNoise {
  static constexpr std::string_view name = "add_noise";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "samples features";
    Size samples = 1;
    Size features = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Sines and cosines of a sample's time (Vaswani et al.: Attention is all you need, 2017, section
// 3.5, with the cosines first, as diffusers has them): with F = features / 2,
//   y[n][j] = cos(t w),  y[n][F + j] = sin(t w),  w = 10000^(-j / F)
//   shape     samples, features (even)
//   operands  times (int32 [samples], in [0, 1000)), y ([samples][features])
struct TimeEmbedding {
  static constexpr std::string_view name = "time_embedding";
  using Shape = AddNoise::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

constexpr double schedule_offset = 0.008;
constexpr double embedding_base = 10000;

std::vector<Kernel> diffusion_kernels();

}  // namespace stepgate
