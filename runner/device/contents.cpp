// SPDX-License-Identifier: MIT
// Counter-based fills: element i is a function of (seed, i), so chunks are independent.
#include "device/contents.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/number_format.h"
#include "support/random.h"

namespace stepgate {
namespace {

// FNV-1a, 64 bits: stable where std::hash is not.
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  }
  return hash;
}

// Exact: the upper 24 bits as a fixed-point number in [-1, 1).
float uniform_signed(std::uint64_t seed, std::uint64_t index) {
  const auto bits = static_cast<std::int32_t>(random_bits(seed, index) >> 40);
  return static_cast<float>(bits - (1 << 23)) * 0x1.0p-23f;
}

// Calls fill(first, end) on chunks that cover [0, count), on as many threads as pay.
template <class Fill>
void in_chunks(std::int64_t count, Fill fill) {
  constexpr std::int64_t smallest_chunk = 1 << 18;
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const std::int64_t chunks = std::clamp<std::int64_t>(count / smallest_chunk, 1, cores);
  std::vector<std::jthread> threads;
  for (std::int64_t chunk = 1; chunk < chunks; ++chunk) {
    threads.emplace_back(fill, chunk * count / chunks, (chunk + 1) * count / chunks);
  }
  fill(std::int64_t{0}, count / chunks);
}

// Stores number(i), rounded to the dtype, at every i.
template <class Number>
void fill_numbers(std::span<std::byte> slot, DType dtype, Number number) {
  const std::int64_t count = static_cast<std::int64_t>(slot.size()) / bytes_of(dtype);
  in_chunks(count, [=](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      set_number(slot.data(), dtype, i, number(static_cast<std::uint64_t>(i)));
    }
  });
}

// Number i is drawn by its place in the whole buffer, whatever part that is in.
void fill_weights(const Buffer& buffer, std::uint64_t seed, std::span<std::byte> bytes) {
  std::vector<ContentPart> parts = buffer.parts;
  if (parts.empty()) {
    parts.push_back({.elements = buffer.bytes / bytes_of(buffer.dtype), .scale = buffer.scale});
  }
  std::uint64_t first = 0;
  for (const ContentPart& content : parts) {
    const auto part =
        bytes.subspan(first * static_cast<std::uint64_t>(bytes_of(buffer.dtype)),
                      static_cast<std::size_t>(content.elements * bytes_of(buffer.dtype)));
    fill_numbers(part, buffer.dtype, [=](std::uint64_t i) {
      return content.centre + content.scale * uniform_signed(seed, first + i);
    });
    first += static_cast<std::uint64_t>(content.elements);
  }
}

}  // namespace

void fill_contents(const Buffer& buffer, std::int64_t slot, std::uint64_t seed,
                   std::span<std::byte> bytes) {
  if (!bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
  switch (buffer.content) {
    case Content::zeros:
      return;
    case Content::weights: {
      const std::string& named = buffer.numbers_of.empty() ? buffer.name : buffer.numbers_of;
      fill_weights(buffer, random_bits(seed, hash_of(named)), bytes);
      return;
    }
    case Content::payload: {
      const std::uint64_t own_seed =
          random_bits(seed ^ hash_of("payload"), static_cast<std::uint64_t>(slot));
      fill_numbers(bytes, DType::fp32,
                   [own_seed](std::uint64_t i) { return uniform_signed(own_seed, i); });
      return;
    }
  }
}

std::span<const std::byte> ContentsCache::of(const Buffer& buffer, std::int64_t slot,
                                             std::uint64_t seed) {
  const auto [place, is_new] =
      made_.try_emplace(Key{buffer.content, buffer.name, buffer.bytes, buffer.dtype, buffer.scale,
                            buffer.parts, buffer.numbers_of, slot, seed});
  std::vector<std::byte>& bytes = place->second;
  if (is_new) {
    bytes.resize(static_cast<std::size_t>(buffer.bytes));
    fill_contents(buffer, slot, seed, bytes);
  }
  return bytes;
}

}  // namespace stepgate
