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

// The key is beside the pointer, so that a search touches no block but the one that it finds.
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
  // The block's size, address and stream do not change in between.
  void put(CachedBlock&);
  void take(CachedBlock&);

  // Free blocks of one stream. Null when there is none.
  CachedBlock* smallest_of_at_least(std::int64_t bytes, StreamId) const;
  CachedBlock* next_larger(const CachedBlock&) const;
  CachedBlock* largest(StreamId) const;

  // In their order.
  std::vector<CachedBlock*> all() const;

 private:
  using Set = std::set<FreeBlockKey>;
  // Eight to each power of two of blocks of 512 bytes; enough for the largest request.
  static constexpr std::size_t class_count = 416;
  static std::size_t class_of(std::int64_t bytes);

  struct OfStream {
    std::array<Set, class_count> classes;
    std::array<std::uint64_t, (class_count + 63) / 64> occupied{};

    // The first at or after it that has blocks; class_count when there is none.
    std::size_t next_occupied(std::size_t from) const;
  };

  std::map<StreamId, OfStream> streams_;
  std::vector<Set::node_type> spare_;  // for blocks to come: no malloc
};

}  // namespace stepgate
