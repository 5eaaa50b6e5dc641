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

// A recorded collective. Its strings belong to NCCL and are valid while the library is loaded.
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

// Room for 200 steps of 600 collectives each; no trace has more.
inline constexpr std::size_t most_recorded = std::size_t{1} << 17;

// Starts recording the collectives of communicators that are created later. Allocates all memory it
// will need, and sets the path of NCCL's profiler plugin unless the user has set it. NCCL reads
// that path only once, so call this before the first NCCL call.
void begin_nccl_record();

// Why nothing can be recorded: the user has set another plugin. Empty otherwise.
std::string reason_against_nccl_record();

// The number of communicators that NCCL has reported to the plugin so far.
int recorded_communicators();

// Returns everything recorded since the last call. All requested collectives must have been issued.
NcclRecord take_nccl_record();

}  // namespace stepgate
