// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace stepgate {

inline constexpr std::int64_t usual_resnet_layers = 50;

// Bottleneck blocks of the four stages (He et al.: Deep residual learning for image recognition,
// 2015, table 1; the first two as in timm).
inline constexpr std::array<std::int64_t, 4> blocks_of_resnets[] = {
    {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 4, 6, 3}, {3, 4, 23, 3}, {3, 8, 36, 3}};

// The number of blocks of each stage. A block has three layers; the stem and the head are one each.
// Empty where there is no such network.
constexpr std::span<const std::int64_t> resnet_blocks(std::int64_t layers) {
  for (const auto& blocks : blocks_of_resnets) {
    if (layers == 2 + 3 * (blocks[0] + blocks[1] + blocks[2] + blocks[3])) return blocks;
  }
  return {};
}

}  // namespace stepgate
