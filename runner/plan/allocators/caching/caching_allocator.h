// SPDX-License-Identifier: MIT
// PyTorch's caching allocator: freed memory is kept and reused on its stream. Blocks are chosen by
// best fit, split when too large, and merged with free neighbours. Follows PyTorch rule by rule,
// including statistics; caching_rules.h has the numbers. DeviceMemory provides the memory, so the
// same code serves a real device and a simulated one.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "plan/allocators/caching/block_pool.h"
#include "plan/allocators/caching/caching_rules.h"
#include "plan/allocators/slot_table.h"

namespace stepgate {

struct MappedRange {
  Address address = 0;
  std::int64_t bytes = 0;  // 0: none
};

// A reserved address range larger than the device's memory, with pages mapped to parts of it. It
// grows at its end instead of adding another segment. The allocator tracks its blocks.
struct ExpandableSegment {
  // Reserves addresses for 9/8 of the device's memory, so that pages unmapped in front can be
  // mapped again behind.
  ExpandableSegment(DeviceMemory&, StreamId, std::int64_t page_bytes);
  ~ExpandableSegment();
  ExpandableSegment(const ExpandableSegment&) = delete;
  ExpandableSegment& operator=(const ExpandableSegment&) = delete;

  // Maps as many whole pages as the range needs, from its page-aligned start. The result may be
  // larger than the range; its size is 0 when the device refuses.
  MappedRange map(MappedRange);
  // Unmaps the whole pages inside the range. Waits for the stream.
  MappedRange unmap(MappedRange);

  DeviceMemory& memory;
  StreamId stream;
  std::int64_t page_bytes;
  std::int64_t bytes;
  Address address;
};

class CachingAllocator : public MemoryAllocator {
 public:
  CachingAllocator(DeviceMemory&, const CachingRules&, std::optional<std::int64_t> cap_bytes = {});
  // Gives all segments back, even with held blocks.
  ~CachingAllocator() override;
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  BlockOrRefusal allocate(std::int64_t bytes, StreamId) override;
  void free(BlockId) override;
  void record_stream(BlockId, StreamId) override;
  // Must not be called during a capture, since it waits for the device.
  void empty_cache() override;
  void set_cap(std::optional<std::int64_t> bytes) override { cap_bytes_ = bytes; }

  // Between these two calls nothing is waited for or given back. Several captures may share a pool;
  // each is released once.
  void begin_capture(int pool, std::vector<StreamId> streams) override;
  void end_capture(int pool) override;
  // To be called when a graph of the pool is destroyed. With the last one the pool's free memory
  // may be given back, and its number must not be used again.
  void release_capture(int pool);

  const MemoryStatistics& statistics() const override { return statistics_; }
  void reset_peak() override { statistics_.reset_peak(); }
  std::vector<SegmentState> snapshot() const override;

 private:
  struct Request {
    std::int64_t requested_bytes;
    std::int64_t bytes;          // rounded
    std::int64_t segment_bytes;  // size of the segment to take if no free block serves
    StreamId stream;
    BlockPool& pool;
  };
  struct Capture {
    int pool;
    std::vector<StreamId> streams;
  };
  struct OpenPoint {
    StreamPoint point;
    CachedBlock* block;
  };

  // Functions that find a block, in caching_allocator.cpp.
  BlockPool& pool_of(std::int64_t rounded_bytes, StreamId);
  bool collects_garbage() const { return cap_bytes_ && rules_.garbage_collection_threshold > 0; }
  CachedBlock* find_free(const Request&);
  CachedBlock* take_new(const Request&);
  CachedBlock* take_from_device(const Request&);
  CachedBlock* take_segment(const Request&);
  HeldBlock hand_out(CachedBlock&, const Request&);
  CachedBlock& split(CachedBlock&, std::int64_t bytes);
  Refusal refuse(const Request&);

  // Functions that free blocks, in caching_free.cpp.
  void make_free(CachedBlock&);
  std::int64_t merge(CachedBlock& into, CachedBlock* neighbour);
  void record_points(CachedBlock&);
  void record_postponed_points();
  void free_passed();
  void free_after_waiting();

  // Functions that give memory back to the device, in caching_release.cpp.
  void give_back(CachedBlock&);
  bool give_back_too_large_ones(const Request&);
  bool give_back_cache();
  void give_back_free_of(BlockPool&);
  void collect_garbage();

  // Functions for expandable segments, in caching_expandable.cpp.
  CachedBlock* grow(const Request&);
  CachedBlock& expandable_block(const Request&);
  bool map(CachedBlock&, std::int64_t bytes);
  void unmap(CachedBlock&);
  CachedBlock& part_of(CachedBlock& whole, Address, std::int64_t bytes);
  void drop_expandable(CachedBlock&);

  DeviceMemory& memory_;
  CachingRules rules_;
  std::optional<std::int64_t> cap_bytes_;
  RefusedBy refused_by_ = RefusedBy::device;  // the reason why the last attempt failed
  MemoryStatistics statistics_;
  SlotTable<CachedBlock> blocks_;
  BlockPool small_{PoolSize::small};
  BlockPool large_{PoolSize::large};
  std::vector<std::unique_ptr<ExpandableSegment>> expandable_segments_;
  std::map<StreamId, std::deque<OpenPoint>> points_;
  std::vector<Capture> captures_;
  std::vector<CachedBlock*> postponed_;  // freed during a capture while other streams use them
  std::map<int, std::unique_ptr<CapturePool>> capture_pools_;
};

}  // namespace stepgate
