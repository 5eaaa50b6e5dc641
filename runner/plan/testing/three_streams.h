// SPDX-License-Identifier: MIT
// For tests: the streams that the plan of every scenario lists, and their places in it.
#pragma once

#include <vector>

#include "plan/compose/build_input.h"

namespace stepgate {

inline constexpr int side_stream = 1;
inline constexpr int legacy_stream = 2;

inline std::vector<Stream> three_streams() {
  return {stream_of(CopyStream::compute), stream_of(CopyStream::side),
          stream_of(CopyStream::legacy)};
}

}  // namespace stepgate
