// SPDX-License-Identifier: MIT
// HEAD's own run of its scenarios, as a stage of a gate.
#pragma once

#include <optional>
#include <vector>

#include "verbs/compare/gate_request.h"

namespace stepgate {

struct DecidedAssertions {
  RunOfProgram head;
  std::vector<Finding> findings = {};
};

// BASE is asked about what HEAD does not pass.
DecidedAssertions ask_head(const GateRequest&);

// One run of HEAD, whose scenarios say besides that every variant is as its stored runs were.
// Nothing where no scenario can be stored.
std::optional<DecidedAssertions> ask_head_as_stored(const GateRequest&);

}  // namespace stepgate
