// SPDX-License-Identifier: MIT
// Short words for tests that ask allocators by hand.
#pragma once

#include <gtest/gtest.h>

#include "plan/allocators/memory_allocator.h"
#include "plan/allocators/testing/check_allocator.h"

namespace stepgate {

constexpr std::int64_t KiB = std::int64_t{1} << 10;
constexpr std::int64_t MiB = std::int64_t{1} << 20;
constexpr std::int64_t GiB = std::int64_t{1} << 30;

inline HeldBlock hold(MemoryAllocator& allocator, std::int64_t bytes, StreamId stream = 0) {
  const BlockOrRefusal answer = allocator.allocate(bytes, stream);
  EXPECT_TRUE(std::holds_alternative<HeldBlock>(answer)) << bytes << " bytes are refused";
  EXPECT_EQ(broken_property(allocator), std::nullopt);
  const HeldBlock* block = std::get_if<HeldBlock>(&answer);
  return block ? *block : HeldBlock();
}

inline Refusal refusal_of(MemoryAllocator& allocator, std::int64_t bytes, StreamId stream = 0) {
  const BlockOrRefusal answer = allocator.allocate(bytes, stream);
  EXPECT_TRUE(std::holds_alternative<Refusal>(answer)) << bytes << " bytes are not refused";
  EXPECT_EQ(broken_property(allocator), std::nullopt);
  const Refusal* refusal = std::get_if<Refusal>(&answer);
  return refusal ? *refusal : Refusal();
}

inline void let_go(MemoryAllocator& allocator, const HeldBlock& block) {
  allocator.free(block.id);
  EXPECT_EQ(broken_property(allocator), std::nullopt);
}

inline std::int64_t reserved(const MemoryAllocator& allocator) {
  return allocator.statistics().reserved_bytes.all.current;
}

}  // namespace stepgate
