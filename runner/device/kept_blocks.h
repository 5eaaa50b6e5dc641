// SPDX-License-Identifier: MIT
// Keeps blocks of one kind of memory after the step that used them is destroyed, and chooses the
// blocks of the next step. The caller allocates and frees the memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/require.h"

namespace stepgate {

// `Owner` owns a block's memory as unique_ptr does: it has get(), is empty by default, and frees
// the memory when it is destroyed.
//
// A request gets the smallest free block that is large enough, the oldest among equal ones. So
// steps with equal buffers share every address. Once every step that takes turns here has been
// loaded, nothing is allocated any more: a block is only ever replaced by a larger one.
template <class Owner>
class KeptBlocks {
 public:
  // Announces the sizes that the next step will take, in any order; all blocks are free again. A
  // size for which no block is large enough gets a new block, which `take` allocates. For each new
  // block, the largest block that no size would use is freed.
  void begin(std::vector<std::int64_t> wanted) {
    give_up_empty();
    asked_bytes_ = 0;
    for (Block& block : blocks_) block.taken = false;
    // The largest sizes are served first, so every block that remains is smaller than any missing
    // size.
    std::sort(wanted.begin(), wanted.end(), std::greater<>());
    std::vector<std::int64_t> missing;
    for (const std::int64_t bytes : wanted) {
      Block* const found = smallest_free(bytes);
      if (found != nullptr) {
        found->taken = true;
      } else {
        missing.push_back(bytes);
      }
    }
    for (std::size_t place = 0; place < missing.size(); ++place) give_up_largest_free();
    for (Block& block : blocks_) block.taken = false;
    for (const std::int64_t bytes : missing) blocks_.push_back({.memory = {}, .bytes = bytes});
  }

  // Bytes of the new blocks that are still to be allocated.
  std::int64_t missing_bytes() const {
    return sum([](const Block& block) { return block.memory.get() == nullptr; });
  }

  // Takes a free block of at least so many bytes; `begin` must have announced the size. If the
  // block has no memory yet, calls allocate(bytes), which returns an Owner. Returns null if the
  // allocation failed.
  template <class Allocate>
  void* take(std::int64_t bytes, Allocate allocate) {
    Block* const block = smallest_free(bytes);
    require(block != nullptr, "there is a block for everything that was announced");
    block->taken = true;
    asked_bytes_ += bytes;
    if (block->memory.get() == nullptr) block->memory = allocate(block->bytes);
    return block->memory.get();
  }

  // The caller's mark of what the block at this address holds; null until it is set. The mark is
  // lost when the block is freed.
  const void*& mark_of(const void* memory) {
    const auto block = std::ranges::find_if(
        blocks_, [&](const Block& each) { return each.memory.get() == memory; });
    require(block != blocks_.end(), "memory that is marked is a block");
    return block->mark;
  }

  // Bytes of all blocks, whether a step uses them or not.
  std::int64_t bytes() const {
    return sum([](const Block& block) { return block.memory.get() != nullptr; });
  }
  // Bytes that were taken since `begin`, by the requested sizes.
  std::int64_t asked_bytes() const { return asked_bytes_; }

  void give_up_all() { blocks_.clear(); }
  // Frees the blocks that no step has taken since `begin`.
  void give_up_free() {
    std::erase_if(blocks_, [](const Block& block) { return !block.taken; });
  }

 private:
  struct Block {
    Owner memory;
    std::int64_t bytes = 0;
    bool taken = false;
    const void* mark = nullptr;
  };

  Block* smallest_free(std::int64_t bytes) {
    Block* smallest = nullptr;
    for (Block& block : blocks_) {
      if (block.taken || block.bytes < bytes) continue;
      if (smallest == nullptr || block.bytes < smallest->bytes) smallest = &block;
    }
    return smallest;
  }

  // Removes blocks that could not be allocated when they were taken.
  void give_up_empty() {
    std::erase_if(blocks_, [](const Block& block) { return block.memory.get() == nullptr; });
  }

  void give_up_largest_free() {
    const auto largest =
        std::max_element(blocks_.begin(), blocks_.end(), [](const Block& one, const Block& other) {
          return (one.taken ? -1 : one.bytes) < (other.taken ? -1 : other.bytes);
        });
    if (largest != blocks_.end() && !largest->taken) blocks_.erase(largest);
  }

  template <class Counts>
  std::int64_t sum(Counts counts) const {
    std::int64_t bytes = 0;
    for (const Block& block : blocks_) bytes += counts(block) ? block.bytes : 0;
    return bytes;
  }

  std::vector<Block> blocks_;  // the oldest first
  std::int64_t asked_bytes_ = 0;
};

}  // namespace stepgate
