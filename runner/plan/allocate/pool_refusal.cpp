// SPDX-License-Identifier: MIT
#include "plan/allocate/pool_refusal.h"

#include "base/text/units.h"

namespace stepgate {
std::string in_words(const PoolRefusal& refusal, const std::string& buffer) {
  std::string words = "cannot allocate " + size_text(refusal.requested_bytes) + " for '" + buffer +
                      "': " + size_text(refusal.live_bytes) + " are live of " +
                      size_text(refusal.reserved_bytes) + " in the pool";
  if (refusal.cap_bytes) words += ", which may take " + size_text(*refusal.cap_bytes);
  return words + ", and the device has " + size_text(refusal.device_free_bytes) + " free";
}

std::string way_out(const PoolRefusal& refusal) {
  if (refusal.cap_bytes) return "raise 'alloc.cap', or lower 'batch.size'";
  return "lower 'batch.size', or trade time for memory";
}

}  // namespace stepgate
