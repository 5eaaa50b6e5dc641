// SPDX-License-Identifier: MIT
#include "allocators/caching/expandable_segment.h"

#include "support/require.h"

namespace stepgate {
namespace {

std::int64_t pages_in(std::int64_t bytes, std::int64_t page_bytes) {
  return (bytes + page_bytes - 1) / page_bytes;
}

}  // namespace

ExpandableSegment::ExpandableSegment(DeviceMemory& device_memory, StreamId its_stream,
                                     std::int64_t its_page_bytes)
    : memory(device_memory),
      stream(its_stream),
      page_bytes(its_page_bytes),
      bytes(page_bytes * pages_in(memory.total_bytes() + memory.total_bytes() / 8, page_bytes)),
      address(memory.reserve_addresses(bytes)) {}

ExpandableSegment::~ExpandableSegment() {
  memory.release_addresses(address, bytes);
}

MappedRange ExpandableSegment::map(MappedRange range) {
  require((range.address - address) % static_cast<Address>(page_bytes) == 0,
          "a range to be mapped starts with a page");
  const std::int64_t mapped = page_bytes * pages_in(range.bytes, page_bytes);
  if (!memory.map_pages(range.address, mapped, page_bytes)) return {};
  return {range.address, mapped};
}

MappedRange ExpandableSegment::unmap(MappedRange range) {
  const auto offset = static_cast<std::int64_t>(range.address - address);
  const std::int64_t begin = page_bytes * pages_in(offset, page_bytes);
  const std::int64_t end = (offset + range.bytes) / page_bytes * page_bytes;
  if (begin >= end) return {};
  const MappedRange unmapped{address + static_cast<Address>(begin), end - begin};
  memory.unmap_pages(unmapped.address, unmapped.bytes, page_bytes, stream);
  return unmapped;
}

}  // namespace stepgate
