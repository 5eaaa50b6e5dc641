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

// A part of a segment, linked to its neighbours in the segment.
struct CachedBlock {
  BlockId id;
  Address address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;
  StreamId stream = 0;
  bool held = false;    // held by the program
  bool mapped = true;   // has memory; false only in expandable segments
  int open_points = 0;  // stream points that must pass before it is free
  BlockPool* pool = nullptr;
  ExpandableSegment* expandable = nullptr;
  CachedBlock* before = nullptr;
  CachedBlock* after = nullptr;
  std::vector<StreamId> used_by;            // other streams, without duplicates
  std::vector<StreamId> used_by_capturing;  // those added during a capture
  std::int64_t free_since = 0;              // value of the pool's `searches` when it became free
  FreeBlockPlace place{};                   // valid while it is free and mapped

  bool is_split() const { return before || after; }
  bool is_free() const { return !held && open_points == 0 && used_by.empty(); }
};

struct CapturePool;

// The free blocks of one pool size, for all streams.
struct BlockPool {
  explicit BlockPool(PoolSize pool_size, CapturePool* pool_owner = nullptr)
      : size(pool_size), owner(pool_owner) {}

  PoolSize size;
  CapturePool* owner;  // nullptr: belongs to no graph
  FreeBlocks free;
  std::set<BlockByAddress> unmapped;
  std::int64_t searches = 0;  // counted with garbage collection on: measures a block's age

  void put(CachedBlock& block) {
    block.free_since = searches;
    free.put(block);
  }
  void take(CachedBlock& block) { free.take(block); }
  void put_unmapped(CachedBlock& block) { unmapped.insert({block.stream, block.address, &block}); }
  void take_unmapped(CachedBlock& block) { unmapped.erase({block.stream, block.address, &block}); }
  std::int64_t age(const CachedBlock& block) const { return searches - block.free_since; }
};

// Memory for captured graphs only. Addresses in a graph are fixed and must not be reused elsewhere.
struct CapturePool {
  BlockPool small{PoolSize::small, this};
  BlockPool large{PoolSize::large, this};
  int id = 0;
  int graphs = 1;    // graphs that use it; at 0 its free memory may be freed
  int segments = 0;  // its segments that are not yet given back

  BlockPool& of(PoolSize size) { return size == PoolSize::small ? small : large; }
};

}  // namespace stepgate
