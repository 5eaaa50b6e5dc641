// SPDX-License-Identifier: MIT
// The memory that CUDA's stream-ordered pool takes from the driver while it serves requests. The
// model reuses freed memory for the very next request and loses nothing to the rounding of blocks.
// Devices decide when the pool grows and what that costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace stepgate {

// The pool grows by multiples of this size (measured with driver 580; documented nowhere).
inline constexpr std::int64_t pool_chunk_bytes = std::int64_t{32} << 20;

class AsyncPool {
 public:
  // `keep_bytes` is the release threshold: the memory that the pool keeps when the host waits.
  // nullopt: all of it.
  explicit AsyncPool(std::optional<std::int64_t> keep_bytes) : keep_bytes_(keep_bytes) {}

  std::int64_t live_bytes() const { return live_; }
  std::int64_t held_bytes() const { return held_; }  // taken from the driver

  // Returns whether the pool had to take more memory from the driver.
  bool allocate(std::int64_t bytes) {
    live_ += bytes;
    if (live_ <= held_) return false;
    held_ = chunks_over(live_);
    return true;
  }
  void release(std::int64_t bytes) { live_ -= bytes; }

  // To be called when the host waits (not for polls): the pool returns memory beyond the threshold
  // to the driver. Returns the number of chunks returned.
  std::int64_t wait() {
    if (!keep_bytes_) return 0;
    const std::int64_t stays =
        std::max(chunks_over(live_), std::min(held_, chunks_under(*keep_bytes_)));
    const std::int64_t returned = std::max<std::int64_t>(held_ - stays, 0);
    held_ -= returned;
    return returned / pool_chunk_bytes;
  }

 private:
  static std::int64_t chunks_under(std::int64_t bytes) {
    return bytes / pool_chunk_bytes * pool_chunk_bytes;
  }
  static std::int64_t chunks_over(std::int64_t bytes) {
    return chunks_under(bytes + pool_chunk_bytes - 1);
  }

  std::optional<std::int64_t> keep_bytes_;
  std::int64_t live_ = 0;
  std::int64_t held_ = 0;
};

}  // namespace stepgate
