// SPDX-License-Identifier: MIT
// Seeded random numbers that are the same on every compiler, host and device. The generator is
// counter-based: number `index` of a stream is a pure function of (seed, index), so any part can be
// made in any order and by any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace stepgate {

// SplitMix64's output function (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// OOPSLA 2014).
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// A sequence of random numbers; each seed gives another one.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : seed_(random_bits(seed, 0)) {}

  constexpr std::uint64_t bits() { return random_bits(seed_, index_++); }

  // Returns a number in [0, 1).
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

  // Returns a number in [0, bound); bound > 0. The bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) { return bits() % bound; }

  // Returns a standard normal number (Box and Muller 1958).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t seed_;
  std::uint64_t index_ = 0;
};

// A time drawn for `index`, log-normal with this mean and coefficient of variation.
inline std::int64_t varied_nanoseconds(std::int64_t mean, double variation, std::uint64_t seed,
                                       std::int64_t index) {
  if (variation == 0) return mean;
  const double variance = std::log1p(variation * variation);
  Random random(random_bits(seed, static_cast<std::uint64_t>(index)));
  const double factor = std::exp(std::sqrt(variance) * random.normal() - variance / 2);
  return std::llround(factor * static_cast<double>(mean));
}

}  // namespace stepgate
