// SPDX-License-Identifier: MIT
// NCCL's own account of what it was asked for, and how it goes about it: this program is NCCL's
// profiler plugin. One record of the process, as NCCL has one plugin of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepgate {

// Words are NCCL's own, which stay as long as the library is open.
struct RecordedCollective {
  int communicator = 0;       // in the order in which NCCL made them, from 0
  const char* function = "";  // "AllReduce"
  const char* type = "";      // "ncclBfloat16"
  std::size_t count = 0;      // as it was called: elements of all, or of one rank's part
  bool captured = false;      // into a graph, of whose launches NCCL says nothing
  // How NCCL carries it out; null where it does not say.
  const char* algorithm = nullptr;  // "RING"
  const char* protocol = nullptr;   // "SIMPLE"
  int channels = 0;
};

struct NcclRecord {
  std::vector<RecordedCollective> collectives;  // in the order of their calls
  std::int64_t lost = 0;                        // calls for which there was no room
};

// That of 200 steps of 600 collectives each, which no trace has more of.
inline constexpr std::size_t most_recorded = std::size_t{1} << 17;

// From now on, for collectives of communicators that come later. Takes all the memory it will need,
// and tells NCCL where its plugin is, unless the user has said that already; so it comes before the
// first call of NCCL, which looks only once.
void begin_nccl_record();

// Why nothing is recorded, as far as this program knows: the user's plugin is another one. Empty
// where nothing is in the way.
std::string reason_against_nccl_record();

// Communicators that NCCL has told its plugin of so far.
int recorded_communicators();

// All since the last time. What is asked for has been issued.
NcclRecord take_nccl_record();

}  // namespace stepgate
