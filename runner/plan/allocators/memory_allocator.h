// SPDX-License-Identifier: MIT
// The one interface of all allocators, and the values that they answer with. Out of memory is such
// a value; a block that is freed twice is a broken invariant.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "base/record/fields.h"
#include "plan/allocators/device_memory.h"
#include "plan/allocators/memory_statistics.h"

namespace stepgate {

// Identifies a block while it is held. `turn` distinguishes it from later blocks in the same slot.
struct BlockId {
  std::uint32_t slot = 0;
  std::uint32_t turn = 0;
  bool operator==(const BlockId&) const = default;
};

struct HeldBlock {
  BlockId id;
  Address address = 0;
  std::int64_t bytes = 0;  // size of the whole block, at least that requested
};

enum class RefusedBy {
  cap,     // more memory would exceed the allocator's cap
  device,  // the device had no more
  size,    // size,    // larger than any device
};

// Why a request was refused, with all numbers for a message about it. They are taken at the moment
// of refusal, after the allocator has given back what it could.
struct Refusal {
  RefusedBy by = RefusedBy::device;
  StreamId stream = 0;
  std::int64_t requested_bytes = 0;
  std::int64_t rounded_bytes = 0;         // size of the block to be allocated
  std::int64_t segment_bytes = 0;         // size of the segment to be taken
  std::int64_t live_bytes = 0;            // held by the program
  std::int64_t pending_bytes = 0;         // freed, but still in use by a stream
  std::int64_t reserved_bytes = 0;        // taken from the device
  std::int64_t free_inside_bytes = 0;     // reserved, and neither live nor pending
  std::int64_t largest_free_bytes = 0;    // largest free block of any pool and stream
  std::int64_t largest_usable_bytes = 0;  // largest free block of the pool and stream asked
  std::int64_t device_free_bytes = 0;     // as the device reports it
  std::optional<std::int64_t> cap_bytes = {};
};

// The parts of a refusal that follow from an allocator's statistics; the caller adds the rest.
Refusal refusal_of(const MemoryStatistics&, const DeviceMemory&,
                   std::optional<std::int64_t> cap_bytes);

using BlockOrRefusal = std::variant<HeldBlock, Refusal>;

// A larger request is refused before its size is rounded.
constexpr std::int64_t largest_request_bytes = std::int64_t{1} << 60;

enum class BlockUse { live, pending, free };

struct BlockState {
  Address address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;  // 0 when free
  BlockUse use = BlockUse::free;
  bool operator==(const BlockState&) const = default;
};
template <>
inline constexpr auto fields_of<BlockState> =
    fields<&BlockState::address, &BlockState::bytes, &BlockState::requested_bytes,
           &BlockState::use>;

enum class SegmentKind { fixed, expandable };

// A segment and its blocks, in the order of addresses. In an expandable segment each contiguous
// range of mapped pages is one SegmentState.
struct SegmentState {
  Address address = 0;
  std::int64_t bytes = 0;
  StreamId stream = 0;
  PoolSize pool = PoolSize::small;
  SegmentKind kind = SegmentKind::fixed;
  std::optional<int> capture_pool = {};
  std::vector<BlockState> blocks = {};
  bool operator==(const SegmentState&) const = default;
};
template <>
inline constexpr auto fields_of<SegmentState> =
    fields<&SegmentState::address, &SegmentState::bytes, &SegmentState::stream, &SegmentState::pool,
           &SegmentState::kind, &SegmentState::capture_pool, &SegmentState::blocks>;

class MemoryAllocator {
 public:
  virtual ~MemoryAllocator() = default;

  // Allocates a block of at least one byte for work that is issued on the stream.
  virtual BlockOrRefusal allocate(std::int64_t bytes, StreamId) = 0;
  // Frees the block. Later work of its own stream may reuse it at once, that of other streams when
  // the streams that used the block are done with it.
  virtual void free(BlockId) = 0;
  // Records that work on another stream uses the block, as PyTorch's record_stream does.
  virtual void record_stream(BlockId, StreamId) = 0;
  // Frees all segments without a live block.
  virtual void empty_cache() = 0;
  // Limits reserved memory from now on; memory that is already reserved stays.
  virtual void set_cap(std::optional<std::int64_t> bytes) = 0;

  // Between these two calls, requests on these streams belong to a graph that is being captured.
  // They are served from a private pool, whose addresses stay with the graph. Do not call these on
  // an allocator without such pools.
  virtual void begin_capture(int pool, std::vector<StreamId> streams) = 0;
  virtual void end_capture(int pool) = 0;

  virtual const MemoryStatistics& statistics() const = 0;
  virtual void reset_peak() = 0;
  // All segments, ordered by address.
  virtual std::vector<SegmentState> snapshot() const = 0;
};

}  // namespace stepgate
