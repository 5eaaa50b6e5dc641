// SPDX-License-Identifier: MIT
// The free blocks of a pool, by stream and then by size and address. Blocks of about one size wait
// in one small ordered set, and a bit for each such size says whether there are any: a search looks
// at one set instead of at all blocks.
#pragma once

#include <array>
#include <map>
#include <set>
#include <vector>

#include "plan/allocators/device_memory.h"

namespace stepgate {

struct CachedBlock;

// A copy of the block's key beside the pointer, so that a search accesses no other blocks.
struct FreeBlockKey {
  std::int64_t bytes;
  Address address;
  CachedBlock* block;

  friend bool operator<(const FreeBlockKey& a, const FreeBlockKey& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.address < b.address;
  }
};

using FreeBlockPlace = std::set<FreeBlockKey>::iterator;

class FreeBlocks {
 public:
  // Adds or removes a block. Its size, address and stream must not change in between.
  void put(CachedBlock&);
  void take(CachedBlock&);

  // Search the free blocks of one stream; nullptr when there is none.
  CachedBlock* smallest_of_at_least(std::int64_t bytes, StreamId) const;
  CachedBlock* next_larger(const CachedBlock&) const;
  CachedBlock* largest(StreamId) const;

  // All blocks, in order.
  std::vector<CachedBlock*> all() const;

 private:
  using Set = std::set<FreeBlockKey>;
  // Eight size classes for each power of two, in units of 512 bytes; enough for the largest
  // request.
  static constexpr std::size_t class_count = 416;
  static std::size_t class_of(std::int64_t bytes);

  struct OfStream {
    std::array<Set, class_count> classes;
    std::array<std::uint64_t, (class_count + 63) / 64> occupied{};

    // The first class with blocks at or after `from`; class_count when there is none.
    std::size_t next_occupied(std::size_t from) const;
  };

  std::map<StreamId, OfStream> streams_;
  std::vector<Set::node_type> spare_;  // reused for later blocks, without malloc
};

}  // namespace stepgate
