// SPDX-License-Identifier: MIT
// A hash of a text that is the same on every platform and in every version. It does not resist
// attacks.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepgate {

// FNV-1a, 64 bits (Fowler, Noll, Vo).
constexpr std::uint64_t fnv1a_start = 0xcbf29ce484222325ULL;
constexpr std::uint64_t fnv1a_prime = 0x100000001b3ULL;

// `hash` is that of the text before, where a text comes in pieces.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = fnv1a_start) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= fnv1a_prime;
  }
  return hash;
}

// Eight bytes at once, for what is large and only ever compared with itself: another number than
// that of its bytes. The upper half is folded down, since a product never carries there.
constexpr std::uint64_t fnv1a_word(std::uint64_t word, std::uint64_t hash) {
  hash = (hash ^ word) * fnv1a_prime;
  return hash ^ (hash >> 32);
}

}  // namespace stepgate
