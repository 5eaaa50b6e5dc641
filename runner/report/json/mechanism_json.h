// SPDX-License-Identifier: MIT
// Writes what traces told, for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "judge/verdict/mechanism.h"
#include "measure/trace/traced.h"

namespace stepgate {

// "unavailable", "rounds", "steps", "wall_ns"; by variant "bound_by", "diagnosis", "time" and
// "phases" in seconds a step, "values" in base units, "slowdown", "memory" and "planned_memory" in
// bytes; by pair of variants "counts", "part", "phase" and "summary". What is not known is null.
nlohmann::ordered_json json_of(const Mechanism&);

// "knob", "value" as `--set` takes it, "aim", "metric" in its base unit, "trials".
nlohmann::ordered_json json_of(const Calibrated&);

// An array of rounds, each with the metrics of every variant in base units and its time split: what
// the contrasts of traced assertions are made of. The names are those of the variants in order.
nlohmann::ordered_json json_of_traced_rounds(const Traced&, const std::vector<std::string>& names);

}  // namespace stepgate
