// SPDX-License-Identifier: MIT
// Counter-based fills: element i is a function of (seed, i), so chunks are independent.
#include "device/contents.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fnv1a.h"
#include "kernels/number_format.h"
#include "kernels/probes/probes.h"

namespace stepgate {
namespace {

// Calls fill(first, end) on chunks that cover [0, count), on several threads where that is faster.
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

// Maps stretches of the whole flat buffer to a buffer that holds only these pieces of it, one after
// the other.
std::vector<DrawnStretch> in_pieces(const std::vector<RankPiece>& pieces,
                                    const std::vector<DrawnStretch>& flat) {
  std::vector<DrawnStretch> stretches;
  std::int64_t place = 0;
  for (const RankPiece& piece : pieces) {
    const std::int64_t shift = piece.first - place;
    for (const DrawnStretch& stretch : flat) {
      const std::int64_t begin = std::max(stretch.first, piece.first);
      const std::int64_t end =
          std::min(stretch.first + stretch.elements, piece.first + piece.elements);
      if (begin >= end) continue;
      stretches.push_back({.first = begin - shift,
                           .elements = end - begin,
                           .centre = stretch.centre,
                           .scale = stretch.scale,
                           .shift = shift});
    }
    place += piece.elements;
  }
  return stretches;
}

// Every number depends on its position in the whole slot, whatever stretch it is in.
std::vector<DrawnStretch> weight_stretches(const Buffer& buffer) {
  if (buffer.parts.empty()) {
    return {{.elements = buffer.bytes / bytes_of(buffer.dtype), .scale = buffer.scale}};
  }
  std::vector<DrawnStretch> stretches;
  std::int64_t first = 0;
  for (const auto& [elements, centre, scale] : buffer.parts) {
    stretches.push_back({.first = first, .elements = elements, .centre = centre, .scale = scale});
    first += elements;
  }
  return buffer.pieces.empty() ? stretches : in_pieces(buffer.pieces, stretches);
}

}  // namespace

DrawnContent drawn_content(const Buffer& buffer, std::int64_t slot, std::uint64_t seed) {
  switch (buffer.content) {
    case Content::zeros:
      return {};
    case Content::weights: {
      const std::string& named = buffer.numbers_of.empty() ? buffer.name : buffer.numbers_of;
      return {.seed = random_bits(seed, fnv1a(named)),
              .dtype = buffer.dtype,
              .stretches = weight_stretches(buffer)};
    }
    case Content::chain:
      return {.seed = random_bits(seed, fnv1a("chain")),
              .stretches = {},
              .chained_lines = buffer.bytes / chase_line_bytes};
    case Content::payload:
      return {.seed = random_bits(seed ^ fnv1a("payload"), static_cast<std::uint64_t>(slot)),
              .dtype = DType::fp32,
              .stretches = {{.elements = buffer.bytes / bytes_of(DType::fp32),
                             .scale = 1,
                             .shift = buffer.first_number}}};
  }
  return {};
}

void fill_contents(const Buffer& buffer, std::int64_t slot, std::uint64_t seed,
                   std::span<std::byte> bytes) {
  if (!bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
  const DrawnContent content = drawn_content(buffer, slot, seed);
  for (const DrawnStretch& stretch : content.stretches) {
    in_chunks(stretch.elements, [bytes, stretch, own_seed = content.seed, dtype = content.dtype](
                                    std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = stretch.first + begin; place < stretch.first + end; ++place) {
        set_number(bytes.data(), dtype, place, drawn_number(own_seed, stretch, place));
      }
    });
  }
  in_chunks(content.chained_lines, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      const std::uint32_t next =
          next_line(static_cast<std::uint64_t>(line), content.chained_lines, content.seed);
      std::memcpy(bytes.data() + line * chase_line_bytes, &next, sizeof next);
    }
  });
}

std::span<const std::byte> ContentsCache::of(const Buffer& buffer, std::int64_t slot,
                                             std::uint64_t seed) {
  const auto [place, is_new] = made_.try_emplace(
      Key{buffer.content, buffer.name, buffer.bytes, buffer.dtype, buffer.scale, buffer.parts,
          buffer.numbers_of, buffer.pieces, buffer.first_number, slot, seed});
  std::vector<std::byte>& bytes = place->second;
  if (is_new) {
    bytes.resize(static_cast<std::size_t>(buffer.bytes));
    fill_contents(buffer, slot, seed, bytes);
  }
  return bytes;
}

}  // namespace stepgate
