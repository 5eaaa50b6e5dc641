// SPDX-License-Identifier: MIT
// The kinds of calls to the CUDA runtime and driver that are counted.
#pragma once

namespace stepgate {

enum class CallKind {
  launch,
  graph_launch,
  copy,
  fill,
  allocate,         // device memory, from the driver or from a pool
  release,          // likewise
  pin,              // allocates pinned memory or registers host memory
  unpin,            // likewise
  wait_for_device,  // or for a context
  wait_for_stream,
  wait_for_event,
  poll,  // asks without blocking
  other
};
constexpr int call_kind_count = 13;

}  // namespace stepgate
