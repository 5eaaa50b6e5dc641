// SPDX-License-Identifier: MIT
// Which ranks of a variant a picture of its steps shows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/trace.h"
#include "measure/trace/traced.h"

namespace stepgate {

// More are too small to be read.
inline constexpr std::size_t most_drawn_ranks = 8;

struct DrawnRanks {
  std::vector<const Trace*> traces;  // by rank
  std::string note;                  // which they are, if not all, and that they share no clock
};

// All, or of too many the first, the last, the one that the report is of and the one whose
// collectives are hidden least. The traces must outlive what is returned.
DrawnRanks drawn_ranks(std::span<const Trace>, const WorstRanks&);

}  // namespace stepgate
