// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>

#include "program/read/memory_snapshot.h"

namespace stepgate {

// Prints what each allocator needs for the requests of the snapshot, and whether that fits into the
// cap.
void print_snapshot(std::ostream&, const MemorySnapshot&, std::optional<std::int64_t> cap_bytes);

}  // namespace stepgate
