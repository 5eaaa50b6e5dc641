// SPDX-License-Identifier: MIT
// Requests to an allocator made of bytes: whatever they are, they are allowed ones, so that every
// property can be checked after each. Random tests and the fuzz target draw from here; which bytes
// they are is theirs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/allocators/caching/caching_allocator.h"
#include "plan/allocators/simulated_memory.h"

namespace stepgate {

// Bytes that requests are made of. Runs out when a fuzzer's bytes do.
class RequestBytes {
 public:
  explicit RequestBytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::uint8_t next();
  // Evenly over the exponents, so that small and large ones are as frequent.
  std::int64_t size();

 private:
  std::span<const std::uint8_t> bytes_;
};

// An allocator, what it was asked for, and whether it keeps its promises.
class RandomRequests {
 public:
  RandomRequests(SimulatedMemory& memory, MemoryAllocator& allocator)
      : memory_(memory), allocator_(allocator) {}

  // One request, chosen by the next bytes. Captures only where the allocator has them.
  void step(RequestBytes&, CachingAllocator* captures);
  // Nothing is held, cached or captured after this.
  void let_everything_go(CachingAllocator* captures);
  // The first promise that is not kept.
  std::optional<std::string> broken() const;

  // Where blocks were, in the order in which they were asked for; refusals as 0.
  const std::vector<Address>& addresses() const { return addresses_; }
  std::optional<std::int64_t> cap() const { return cap_; }

 private:
  struct Held {
    HeldBlock block;
    std::int64_t requested;
  };
  enum class CaptureState { none, underway, over };

  void ask(RequestBytes&);
  void let_go(std::size_t which);
  void capture(CachingAllocator&);

  SimulatedMemory& memory_;
  MemoryAllocator& allocator_;
  std::vector<Held> held_;
  std::vector<Address> addresses_;
  std::optional<std::int64_t> cap_;
  CaptureState capture_ = CaptureState::none;
  int pool_ = 0;
};

}  // namespace stepgate
