// SPDX-License-Identifier: MIT
// Written by invisible_characters.py from Unicode data; a test compares.
#pragma once

#include <array>
#include <cstdint>

namespace stepgate {

// Code points from `first` to `last`, both included.
struct CodePoints {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// Characters that show nothing, move the cursor, break a line or turn the direction of text, and
// every blank but the ordinary space. In order.
// clang-format off
constexpr auto invisible_characters = std::to_array<CodePoints>({
    {0x0000, 0x001f},
    {0x007f, 0x00a0},
    {0x00ad, 0x00ad},
    {0x034f, 0x034f},
    {0x0600, 0x0605},
    {0x061c, 0x061c},
    {0x06dd, 0x06dd},
    {0x070f, 0x070f},
    {0x0890, 0x0891},
    {0x08e2, 0x08e2},
    {0x115f, 0x1160},
    {0x1680, 0x1680},
    {0x17b4, 0x17b5},
    {0x180b, 0x180f},
    {0x2000, 0x200f},
    {0x2028, 0x202f},
    {0x205f, 0x206f},
    {0x2800, 0x2800},
    {0x3000, 0x3000},
    {0x3164, 0x3164},
    {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff},
    {0xffa0, 0xffa0},
    {0xfff0, 0xfffb},
    {0xfffe, 0xffff},
    {0x110bd, 0x110bd},
    {0x110cd, 0x110cd},
    {0x13430, 0x1343f},
    {0x16fe4, 0x16fe4},
    {0x1bca0, 0x1bca3},
    {0x1d159, 0x1d159},
    {0x1d173, 0x1d17a},
    {0xe0000, 0xe0fff},
});
// clang-format on

}  // namespace stepgate
