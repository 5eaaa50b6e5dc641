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

// Names a block for as long as it is held. The turn tells it from later blocks in the same slot.
struct BlockId {
  std::uint32_t slot = 0;
  std::uint32_t turn = 0;
  bool operator==(const BlockId&) const = default;
};

struct HeldBlock {
  BlockId id;
  Address address = 0;
  std::int64_t bytes = 0;  // the whole block: as many as were asked for, or more
};

enum class RefusedBy {
  cap,     // reserving so much more would be above the allocator's cap: the device was not asked
  device,  // the device had no more
  size,    // no device has so much
};

// Why there is no block: all that one sentence about it needs. The numbers are those at the moment
// of refusal, after everything that the allocator could give back was given back.
struct Refusal {
  RefusedBy by = RefusedBy::device;
  StreamId stream = 0;
  std::int64_t requested_bytes = 0;
  std::int64_t rounded_bytes = 0;         // the block that it would have been
  std::int64_t segment_bytes = 0;         // what had to be taken from the device for it
  std::int64_t live_bytes = 0;            // held by the program
  std::int64_t pending_bytes = 0;         // freed, but a stream still uses them
  std::int64_t reserved_bytes = 0;        // taken from the device
  std::int64_t free_inside_bytes = 0;     // reserved, and neither live nor pending
  std::int64_t largest_free_bytes = 0;    // block, of whatever pool and stream
  std::int64_t largest_usable_bytes = 0;  // block of the pool and stream that were asked
  std::int64_t device_free_bytes = 0;     // as the device says
  std::optional<std::int64_t> cap_bytes = {};
};

// The parts of a refusal that follow from an allocator's statistics; the caller adds the rest.
Refusal refusal_of(const MemoryStatistics&, const DeviceMemory&,
                   std::optional<std::int64_t> cap_bytes);

using BlockOrRefusal = std::variant<HeldBlock, Refusal>;

// Above this a request is refused before anything is rounded.
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

// A piece of memory and the blocks that tile it, in the order of their addresses. Of an expandable
// segment, each unbroken range of mapped pages is one.
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

  // A block for work that is issued on the stream. At least one byte.
  virtual BlockOrRefusal allocate(std::int64_t bytes, StreamId) = 0;
  // The program holds the block no longer. It is used again at once for later work of its own
  // stream, and after that of any other that it was used on.
  virtual void free(BlockId) = 0;
  // Work issued on another stream uses the block: PyTorch's record_stream.
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
  // By address.
  virtual std::vector<SegmentState> snapshot() const = 0;
};

}  // namespace stepgate
