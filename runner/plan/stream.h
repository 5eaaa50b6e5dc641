// SPDX-License-Identifier: MIT
// The streams of a plan as data. All differences between streams are properties here; no code knows
// a stream by its name.
#pragma once

#include <string>

namespace stepgate {

// The streams that a stream is implicitly ordered with, without events, as in CUDA.
enum class StreamKind {
  blocking,       // it and the legacy default stream wait for what the other was given earlier
  non_blocking,   // none: only events order it
  legacy_default  // CUDA's own, which nobody creates: ordered with all blocking streams
};

// Work of one stream runs in the order in which it was issued.
struct Stream {
  std::string name;  // "compute"; no other of the plan has it
  StreamKind kind = StreamKind::blocking;
};

// The first stream of every plan. A step's graph is launched on it, its persistent memory is
// allocated on it, and its progress counts as the device's progress.
constexpr int compute_stream = 0;

// Whether work issued to one stream waits for all earlier work of the other, without an event.
inline bool wait_for_each_other(const Stream& one, const Stream& other) {
  const auto legacy_and_blocking = [](const Stream& legacy, const Stream& blocking) {
    return legacy.kind == StreamKind::legacy_default && blocking.kind == StreamKind::blocking;
  };
  return legacy_and_blocking(one, other) || legacy_and_blocking(other, one);
}

}  // namespace stepgate
