// SPDX-License-Identifier: MIT
// NCCL's own record of requested collectives and of their algorithms: this program is NCCL's
// profiler plugin. There is one record per process, since NCCL has one plugin per process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepgate {

// A recorded collective. Its strings belong to NCCL and are valid while the library is loaded.
struct RecordedCollective {
  int communicator = 0;       // in the order in which NCCL made them, from 0
  const char* function = "";  // "AllReduce"
  const char* type = "";      // "ncclBfloat16"
  std::size_t count = 0;      // as it was called: elements of all, or of one rank's part
  bool captured = false;      // at capture; NCCL does not report launches of graphs
  // The algorithm and protocol that NCCL chose; null where it does not report them.
  const char* algorithm = nullptr;  // "RING"
  const char* protocol = nullptr;   // "SIMPLE"
  int channels = 0;
};

struct NcclRecord {
  std::vector<RecordedCollective> collectives;  // in the order of their calls
  std::int64_t lost = 0;                        // calls for which there was no room
};

// The record has room for 200 steps of 600 collectives each; no trace has more.
inline constexpr std::size_t most_recorded = std::size_t{1} << 17;

// Starts recording the collectives of communicators that are created later. Allocates all memory it
// will need, and sets the path of NCCL's profiler plugin unless the user has set it. NCCL reads
// that path only once, so call this before the first NCCL call.
void begin_nccl_record();

// The reason why nothing can be recorded: the user has set another plugin. Empty otherwise.
std::string reason_against_nccl_record();

// The number of communicators that NCCL has reported to the plugin so far.
int recorded_communicators();

// Returns everything recorded since the last call. All requested collectives must have been issued.
NcclRecord take_nccl_record();

}  // namespace stepgate
