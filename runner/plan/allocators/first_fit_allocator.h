// SPDX-License-Identifier: MIT
// A pool as one writes it first: a list of whole blocks, and the first that is large enough is
// taken, however large it is. Nothing is split, joined or given back by itself. Here as the bad
// twin of the caching allocator.
#pragma once

#include <vector>

#include "plan/allocators/slot_table.h"

namespace stepgate {

class FirstFitAllocator : public MemoryAllocator {
 public:
  explicit FirstFitAllocator(DeviceMemory&, std::optional<std::int64_t> cap_bytes = {});
  // Gives all segments back, even with held blocks.
  ~FirstFitAllocator() override;
  FirstFitAllocator(const FirstFitAllocator&) = delete;
  FirstFitAllocator& operator=(const FirstFitAllocator&) = delete;

  BlockOrRefusal allocate(std::int64_t bytes, StreamId) override;
  void free(BlockId) override;
  void record_stream(BlockId, StreamId) override;
  void empty_cache() override;  // waits for the device
  void set_cap(std::optional<std::int64_t> bytes) override { cap_bytes_ = bytes; }
  void begin_capture(int pool, std::vector<StreamId> streams) override;  // must not be called
  void end_capture(int pool) override;

  const MemoryStatistics& statistics() const override { return statistics_; }
  void reset_peak() override { statistics_.reset_peak(); }
  std::vector<SegmentState> snapshot() const override;

 private:
  struct WholeBlock {
    BlockId id;
    Address address = 0;
    std::int64_t bytes = 0;
    std::int64_t requested_bytes = 0;
    StreamId stream = 0;
    PoolSize size = PoolSize::small;  // for the statistics only
    BlockUse use = BlockUse::free;
    std::vector<StreamId> used_by;
    std::vector<StreamPoint> points;  // that must pass before it is free
  };

  WholeBlock* first_fit(std::int64_t bytes, StreamId);
  WholeBlock* take_from_device(std::int64_t bytes, StreamId);
  Refusal refuse(std::int64_t requested, std::int64_t rounded, StreamId, RefusedBy);
  void make_free(WholeBlock&);
  void free_passed();

  DeviceMemory& memory_;
  std::optional<std::int64_t> cap_bytes_;
  RefusedBy refused_by_ = RefusedBy::device;
  MemoryStatistics statistics_;
  SlotTable<WholeBlock> blocks_;
  std::vector<WholeBlock*> list_;  // in the order in which they were taken
};

}  // namespace stepgate
