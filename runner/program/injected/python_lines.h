// SPDX-License-Identifier: MIT
// The Python lines at which calls that may block are made.
#pragma once

#include <cstdint>

namespace stepgate::attached {

// The window of steps whose counts are kept begins: from here on lines cost at most a fiftieth of
// the time that passes.
void begin_lines();
// Whether there is time for a line now. The first calls of a window always have it.
bool has_time_for_line();
// Writes "#<sequence>" and the stack of the calling thread to the lines file. Does nothing where
// the thread runs no Python, or a version that keeps its function for this to itself (3.13 and
// later).
void write_line(std::uint64_t sequence);

}  // namespace stepgate::attached
