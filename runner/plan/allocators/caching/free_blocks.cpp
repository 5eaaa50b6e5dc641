// SPDX-License-Identifier: MIT
#include "plan/allocators/caching/free_blocks.h"

#include <bit>

#include "plan/allocators/caching/block_pool.h"

namespace stepgate {
namespace {

constexpr int unit_bits = 9;    // all blocks are multiples of 512 bytes
constexpr int within_bits = 3;  // eight classes to a power of two

}  // namespace

std::size_t FreeBlocks::class_of(std::int64_t bytes) {
  const std::uint64_t units = static_cast<std::uint64_t>(bytes) >> unit_bits;
  const int power = static_cast<int>(std::bit_width(units)) - 1;
  if (power < within_bits) return units;
  return (static_cast<std::size_t>(power - within_bits) << within_bits) +
         (units >> (power - within_bits));
}

std::size_t FreeBlocks::OfStream::next_occupied(std::size_t from) const {
  for (std::size_t word = from / 64; word < occupied.size(); ++word) {
    const std::uint64_t bits =
        word == from / 64 ? occupied[word] & (~std::uint64_t{0} << (from % 64)) : occupied[word];
    if (bits != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }
  return class_count;
}

void FreeBlocks::put(CachedBlock& block) {
  OfStream& stream = streams_[block.stream];
  const std::size_t index = class_of(block.bytes);
  const FreeBlockKey key{block.bytes, block.address, &block};
  stream.occupied[index / 64] |= std::uint64_t{1} << (index % 64);
  if (spare_.empty()) {
    block.place = stream.classes[index].insert(key).first;
    return;
  }
  spare_.back().value() = key;
  block.place = stream.classes[index].insert(std::move(spare_.back())).position;
  spare_.pop_back();
}

void FreeBlocks::take(CachedBlock& block) {
  OfStream& stream = streams_.find(block.stream)->second;
  const std::size_t index = class_of(block.bytes);
  spare_.push_back(stream.classes[index].extract(block.place));
  if (stream.classes[index].empty())
    stream.occupied[index / 64] &= ~(std::uint64_t{1} << (index % 64));
}

CachedBlock* FreeBlocks::smallest_of_at_least(std::int64_t bytes, StreamId id) const {
  const auto stream = streams_.find(id);
  if (stream == streams_.end()) return nullptr;
  const OfStream& of_stream = stream->second;
  const std::size_t index = class_of(bytes);
  const Set& same = of_stream.classes[index];
  if (!same.empty()) {
    const auto found = same.lower_bound({bytes, 0, nullptr});
    if (found != same.end()) return found->block;
  }
  const std::size_t larger = of_stream.next_occupied(index + 1);
  return larger == class_count ? nullptr : of_stream.classes[larger].begin()->block;
}

CachedBlock* FreeBlocks::next_larger(const CachedBlock& block) const {
  const OfStream& stream = streams_.find(block.stream)->second;
  const std::size_t index = class_of(block.bytes);
  const auto next = std::next(block.place);
  if (next != stream.classes[index].end()) return next->block;
  const std::size_t larger = stream.next_occupied(index + 1);
  return larger == class_count ? nullptr : stream.classes[larger].begin()->block;
}

CachedBlock* FreeBlocks::largest(StreamId id) const {
  const auto stream = streams_.find(id);
  if (stream == streams_.end()) return nullptr;
  const auto& occupied = stream->second.occupied;
  for (std::size_t left = occupied.size(); left > 0; --left) {
    const std::size_t word = left - 1;
    if (occupied[word] == 0) continue;
    const auto last = static_cast<std::size_t>(std::bit_width(occupied[word]) - 1);
    return stream->second.classes[word * 64 + last].rbegin()->block;
  }
  return nullptr;
}

std::vector<CachedBlock*> FreeBlocks::all() const {
  std::vector<CachedBlock*> blocks;
  for (const auto& [id, stream] : streams_) {
    for (std::size_t index = stream.next_occupied(0); index < class_count;
         index = stream.next_occupied(index + 1)) {
      for (const FreeBlockKey& free : stream.classes[index]) blocks.push_back(free.block);
    }
  }
  return blocks;
}

}  // namespace stepgate
