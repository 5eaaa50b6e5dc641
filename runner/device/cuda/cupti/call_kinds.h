// SPDX-License-Identifier: MIT
// The purpose of a call of CUDA's runtime or driver, by its name.
#pragma once

#include <string_view>

#include "device/call_kind.h"

namespace stepgate {

// "cudaMemcpyAsync" of "cudaMemcpyAsync_v3020" and "cudaMemcpyAsync_ptsz_v7000": callbacks are
// named after the version of the call and the default stream that it was compiled for.
std::string_view plain_call_name(std::string_view name);

struct CallMeaning {
  CallKind kind = CallKind::other;
  // Whether the host may wait for the device in this call, whatever its arguments. False for
  // asynchronous copies, where it depends on the kind of host memory.
  bool always_can_block = false;
};

// Returns the meaning of a plain call name. Sources are NVIDIA's "API synchronization behavior"
// and, where that leaves it open, tests on an H200 behind a pending kernel.
CallMeaning meaning_of_call(std::string_view plain_name);

}  // namespace stepgate
