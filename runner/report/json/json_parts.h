// SPDX-License-Identifier: MIT
// Parts that the JSON reports have in common.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "judge/verdict/mechanism.h"
#include "judge/verdict/verdict.h"
#include "measure/trace/traced.h"
#include "scenario/knobs/described_step.h"

namespace stepgate {

template <class Value>
nlohmann::ordered_json json_or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json json_of_evidence(const TimedEvidence&);

// [{"variant": "fix", "model": "mlp, layers 4, ...", "batch": ..., "other": ""}, ...]
nlohmann::ordered_json steps_json(const std::vector<DescribedStep>&);

// "unavailable", "rounds", "steps", "wall_ns"; by variant "bound_by", "diagnosis", "time" and
// "phases" in seconds a step, "values" in base units, "slowdown", "memory" and "planned_memory" in
// bytes; by pair of variants "counts", "part", "phase" and "sentence". What is not known is null.
nlohmann::ordered_json json_of(const Mechanism&);

// "knob", "value" as `--set` takes it, "aim", "metric" in its base unit, "trials".
nlohmann::ordered_json json_of(const Calibrated&);

// An array of rounds, each with the metrics of every variant in base units and its time split: what
// the contrasts of traced sentences are made of. The names are those of the variants in order.
nlohmann::ordered_json json_of_traced_rounds(const Traced&, const std::vector<std::string>& names);

}  // namespace stepgate
