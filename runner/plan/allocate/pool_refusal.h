// SPDX-License-Identifier: MIT
// The message for memory that the driver's stream-ordered pool refuses. Only the driver knows why;
// step_allocator.h has the messages for refusals of our own allocators.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepgate {

struct PoolRefusal {
  std::int64_t requested_bytes = 0;
  std::int64_t live_bytes = 0;      // allocated from the pool and not released
  std::int64_t reserved_bytes = 0;  // taken from the device
  std::int64_t device_free_bytes = 0;
  std::optional<std::int64_t> cap_bytes = {};
};

// Writes "cannot allocate 64 MiB for 'logits': 96 MiB are live of 128 MiB in the pool, which may
// take 140 MiB, and the device has 40 GiB".
std::string in_words(const PoolRefusal&, const std::string& buffer);
// A hint that names the knob to change.
std::string way_out(const PoolRefusal&);

}  // namespace stepgate
