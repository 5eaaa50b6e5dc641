// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

namespace stepgate {

inline constexpr std::int64_t usual_unet_layers = 2;  // residual blocks of a level
inline constexpr std::int64_t usual_unet_width = 128;
inline constexpr std::int64_t usual_unet_image = 64;

// Channels of the levels of a UNet, as multiples of its width. Each level halves the sides of the
// image of the one before.
inline constexpr std::array<std::int64_t, 4> unet_levels = {1, 2, 2, 4};
inline constexpr int unet_attention_level = 2;

// A side of the image is a multiple of this, so that every level halves it.
inline constexpr std::int64_t unet_image_multiple = 1 << (unet_levels.size() - 1);

}  // namespace stepgate
