// SPDX-License-Identifier: MIT
// The steps of a scenario's variants in words, as the run's report and `list --json` have them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "scenario/knobs/described_step.h"

namespace stepgate {

// [{"variant": "fix", "model": "mlp, layers 4, ...", "batch": ..., "other": ""}, ...]
nlohmann::ordered_json steps_json(const std::vector<DescribedStep>&);

}  // namespace stepgate
