// SPDX-License-Identifier: MIT
#include "base/hmac_sha256.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <span>
#include <system_error>

namespace stepgate {
namespace {

constexpr std::size_t block_bytes = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4,
// 4.2.2).
constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

void add_block(State& state, std::string_view block) {
  std::array<std::uint32_t, 64> words{};
  for (std::size_t byte = 0; byte < block_bytes; ++byte)
    words[byte / 4] = words[byte / 4] << 8 | static_cast<unsigned char>(block[byte]);
  for (std::size_t at = 16; at < words.size(); ++at) {
    const std::uint32_t far = words[at - 15];
    const std::uint32_t near = words[at - 2];
    words[at] = words[at - 16] + words[at - 7] +
                (std::rotr(far, 7) ^ std::rotr(far, 18) ^ (far >> 3)) +
                (std::rotr(near, 17) ^ std::rotr(near, 19) ^ (near >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                ((e & f) ^ (~e & g)) + round_constants[at] + words[at];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const State added{a, b, c, d, e, f, g, h};
  for (std::size_t at = 0; at < state.size(); ++at) state[at] += added[at];
}

std::string in_digits(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string_view as_text(const Sha256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

Sha256 sha256(std::string_view text) {
  State state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % block_bytes != block_bytes - 8) padded += '\0';
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift);
  for (std::string_view left = padded; !left.empty(); left.remove_prefix(block_bytes))
    add_block(state, left.substr(0, block_bytes));
  Sha256 digest{};
  for (std::size_t byte = 0; byte < digest.size(); ++byte)
    digest[byte] = static_cast<std::uint8_t>(state[byte / 4] >> (24 - 8 * (byte % 4)));
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string block(key.size() > block_bytes ? as_text(sha256(key)) : key);
  block.resize(block_bytes, '\0');
  const auto padded = [&](char pad) {
    std::string with = block;
    for (char& byte : with) byte = static_cast<char>(byte ^ pad);
    return with;
  };
  const Sha256 inner = sha256(padded('\x36').append(text));
  return in_digits(sha256(padded('\x5c').append(as_text(inner))));
}

bool equal_in_constant_time(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned int difference = 0;
  for (std::size_t at = 0; at < one.size(); ++at)
    difference |= static_cast<unsigned char>(one[at] ^ other[at]);
  return difference == 0;
}

std::string unguessable_digits() {
  std::array<std::uint8_t, 16> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0)
    throw std::system_error(errno, std::generic_category(), "get random numbers");
  return in_digits(bytes);
}

}  // namespace stepgate
