// SPDX-License-Identifier: MIT
// Parts that the JSON reports have in common.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "judge/verdict/verdict.h"

namespace stepgate {

template <class Value>
nlohmann::ordered_json json_or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json json_of_evidence(const TimedEvidence&);

}  // namespace stepgate
