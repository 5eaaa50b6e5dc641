// SPDX-License-Identifier: MIT
// Compares a tensor with the summary of PyTorch's that ci/pytorch_*.py wrote: its norm and its
// products with two random directions, which no wrong element escapes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/fnv1a.h"
#include "base/random.h"

namespace stepgate {

// The largest difference of these numbers from those of got / scale, relative to the norm.
template <class Number>
double error_of_summary(const std::string& name, std::span<const Number> got, double scale,
                        const nlohmann::json& expected) {
  double squares = 0;
  double products[2] = {};
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = got[i] / scale;
    squares += value * value;
    for (std::uint64_t which : {1, 2}) {
      const auto bits = static_cast<std::int32_t>(
          random_bits(random_bits(which, fnv1a(name)), static_cast<std::uint64_t>(i)) >> 40);
      products[which - 1] += value * static_cast<double>(bits - (1 << 23)) * 0x1.0p-23;
    }
  }
  const double norm = expected.at("norm");
  double error = std::abs(std::sqrt(squares) - norm);
  for (int which : {0, 1}) {
    const double product = expected.at("products").at(which);
    error = std::max(error, std::abs(products[which] - product));
  }
  return error / norm;
}

template <class Number>
void expect_summary(const std::string& name, std::span<const Number> got, double scale,
                    const nlohmann::json& expected, double bound) {
  EXPECT_LE(error_of_summary(name, got, scale, expected), bound) << name;
}

}  // namespace stepgate
