// SPDX-License-Identifier: MIT
// Blocks of the caching allocator and the pools in which the free ones wait: by size, or by address
// where they have no memory behind them. The allocator chooses which one is taken.
#pragma once

#include <set>
#include <vector>

#include "plan/allocators/caching/free_blocks.h"
#include "plan/allocators/memory_allocator.h"

namespace stepgate {

struct BlockPool;
struct ExpandableSegment;

struct BlockByAddress {
  StreamId stream;
  Address address;
  CachedBlock* block;

  friend bool operator<(const BlockByAddress& a, const BlockByAddress& b) {
    return a.stream != b.stream ? a.stream < b.stream : a.address < b.address;
  }
};

// A part of a segment; its neighbours in it are linked.
struct CachedBlock {
  BlockId id;
  Address address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;
  StreamId stream = 0;
  bool held = false;    // by the program
  bool mapped = true;   // has memory behind it; only expandable segments have blocks without
  int open_points = 0;  // that must pass before it is free
  BlockPool* pool = nullptr;
  ExpandableSegment* expandable = nullptr;
  CachedBlock* before = nullptr;
  CachedBlock* after = nullptr;
  std::vector<StreamId> used_by;            // other streams, each once
  std::vector<StreamId> used_by_capturing;  // those of them that were added during a capture
  std::int64_t free_since = 0;              // number of its pool's searches when it became free
  FreeBlockPlace place{};                   // while it is free and mapped

  bool is_split() const { return before || after; }
  bool is_free() const { return !held && open_points == 0 && used_by.empty(); }
};

struct CapturePool;

// The free blocks of one size of pool, of all streams.
struct BlockPool {
  explicit BlockPool(PoolSize pool_size, CapturePool* pool_owner = nullptr)
      : size(pool_size), owner(pool_owner) {}

  PoolSize size;
  CapturePool* owner;  // null: of no graph
  FreeBlocks free;
  std::set<BlockByAddress> unmapped;
  std::int64_t searches = 0;  // while garbage collection is on: the clock of ages

  void put(CachedBlock& block) {
    block.free_since = searches;
    free.put(block);
  }
  void take(CachedBlock& block) { free.take(block); }
  void put_unmapped(CachedBlock& block) { unmapped.insert({block.stream, block.address, &block}); }
  void take_unmapped(CachedBlock& block) { unmapped.erase({block.stream, block.address, &block}); }
  std::int64_t age(const CachedBlock& block) const { return searches - block.free_since; }
};

// Memory that only captured graphs use: an address that is baked into a graph must not be reused
// elsewhere.
struct CapturePool {
  BlockPool small{PoolSize::small, this};
  BlockPool large{PoolSize::large, this};
  int id = 0;
  int graphs = 1;    // that use it; at 0 its free memory may be given back
  int segments = 0;  // of it that were not given back yet

  BlockPool& of(PoolSize size) { return size == PoolSize::small ? small : large; }
};

}  // namespace stepgate
