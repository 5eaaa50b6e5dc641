// SPDX-License-Identifier: MIT
// The purpose of a call of CUDA's runtime or driver, by its name.
#pragma once

#include <string>
#include <string_view>

#include "device/trace.h"

namespace stepgate {

// "cudaMemcpyAsync" of "cudaMemcpyAsync_v3020" and "cudaMemcpyAsync_ptsz_v7000": callbacks are
// named after the version of the call and the default stream that it was compiled for.
std::string plain_call_name(std::string_view name);

struct CallMeaning {
  CallKind kind = CallKind::other;
  // Whatever its arguments are, the host may wait for the device in this call. False for
  // asynchronous copies: there the kind of host memory decides.
  bool always_can_block = false;
};

// The meaning of a plain name. NVIDIA's "API synchronization behavior" tells which calls block and,
// where that leaves it open, so does what an H200 did behind a pending kernel.
CallMeaning meaning_of_call(std::string_view plain_name);

}  // namespace stepgate
