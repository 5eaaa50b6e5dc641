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

// To hash a text in pieces, pass the hash of the pieces before as `hash`.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = fnv1a_start) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= fnv1a_prime;
  }
  return hash;
}

// Hashes eight bytes at once, for large data that is compared only with other hashes of this
// function. The result differs from fnv1a of the same bytes. The upper half is folded down, since
// the multiplication never carries bits downwards.
constexpr std::uint64_t fnv1a_word(std::uint64_t word, std::uint64_t hash) {
  hash = (hash ^ word) * fnv1a_prime;
  return hash ^ (hash >> 32);
}

}  // namespace stepgate
