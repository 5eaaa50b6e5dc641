// SPDX-License-Identifier: MIT
// The requests of an allocator to a device: segments of memory, addresses that memory is mapped to
// page by page, and how far the streams are. The allocator tracks which block has which part of a
// segment. A real and a simulated device implement these requests.
#pragma once

#include <cstdint>
#include <optional>

namespace stepgate {

using Address = std::uint64_t;
using StreamId = std::int32_t;

// A point in a stream, as a CUDA event is. It has passed when all work issued before it is
// complete.
enum class StreamPoint : std::uint64_t {};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Total memory of the device, and below the memory that is free now.
  virtual std::int64_t total_bytes() const = 0;
  virtual std::int64_t free_bytes() const = 0;

  // Takes memory aligned to at least 512 bytes; nullopt when the device refuses.
  virtual std::optional<Address> take_segment(std::int64_t bytes) = 0;
  // May wait for the device, as cudaFree does.
  virtual void give_back_segment(Address, std::int64_t bytes) = 0;

  // Reserves and releases address ranges without memory, in whole pages.
  virtual Address reserve_addresses(std::int64_t bytes) = 0;
  virtual void release_addresses(Address, std::int64_t bytes) = 0;
  // Maps memory to all of the reserved addresses, or to none: returns false when the device
  // refuses. Each page is mapped separately, so that any page can be unmapped alone.
  virtual bool map_pages(Address, std::int64_t bytes, std::int64_t page_bytes) = 0;
  // Unmaps pages after waiting for the stream, since unmapping itself does not wait.
  virtual void unmap_pages(Address, std::int64_t bytes, std::int64_t page_bytes, StreamId) = 0;

  // A point after all work issued on the stream so far. The caller polls it until it has passed, or
  // waits for it, and then never uses it again: the device may recycle it.
  virtual StreamPoint record_point(StreamId) = 0;
  virtual bool has_passed(StreamPoint) = 0;
  virtual void wait_for(StreamPoint) = 0;
  // After this call every recorded point has passed. The caller must still poll each of them.
  virtual void wait_for_all() = 0;
};

}  // namespace stepgate
