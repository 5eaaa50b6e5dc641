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

// A source of bytes from which requests are made. It ends when a fuzzer's input does.
class RequestBytes {
 public:
  explicit RequestBytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::uint8_t next();
  // A random size, uniform in the exponent.
  std::int64_t size();

 private:
  std::span<const std::uint8_t> bytes_;
};

// Makes random requests to an allocator and checks its invariants.
class RandomRequests {
 public:
  RandomRequests(SimulatedMemory& memory, MemoryAllocator& allocator)
      : memory_(memory), allocator_(allocator) {}

  // Makes one request, chosen by the next bytes. Captures only if `captures` is not null.
  void step(RequestBytes&, CachingAllocator* captures);
  // Frees everything: afterwards nothing is held, cached or captured.
  void let_everything_go(CachingAllocator* captures);
  // The first broken invariant.
  std::optional<std::string> broken() const;

  // Addresses of the blocks in the order of the requests; 0 for a refusal.
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
