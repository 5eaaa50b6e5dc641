// SPDX-License-Identifier: MIT
// stepgate's worker for programs of somebody else: counts their steps with the library attached,
// and times them in other processes, which are held between their steps.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "program/held.h"
#include "program/run_attached.h"

namespace stepgate {

struct ServedProgram {
  std::string workload;  // "scenario/variant"
  AttachRequest counted;
  HeldRequest held;
  std::int64_t warm_up_steps = 0;  // before it is timed, once
};

// Answers requests line by line until `quit` or the end of the input. A request that cannot be
// carried out is answered with an error.
void serve_programs(std::istream& in, std::ostream& out, std::span<const ServedProgram>,
                    const AttachFiles&);

}  // namespace stepgate
