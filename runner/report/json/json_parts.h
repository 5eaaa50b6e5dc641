// SPDX-License-Identifier: MIT
// JSON parts that several reports share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "scenario/knobs/described_step.h"
#include "scenario/scenario.h"

namespace stepgate {

template <class Value>
nlohmann::ordered_json json_or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

// The knob's value as a number of the knob's kind, sizes in bytes.
inline nlohmann::ordered_json value_json(const SweepPoint& point) {
  if (point.is_whole) return static_cast<std::int64_t>(point.number);
  return point.number;
}

// Adds "point": {"batch.size": 8} to the line of a point of a sweep. Other lines have no such key.
inline void add_point(nlohmann::ordered_json& line, const std::optional<SweepPoint>& point) {
  if (point) line["point"][point->knob] = value_json(*point);
}

// [{"variant": "fix", "model": "mlp, layers 4, ...", "batch": ..., "other": ""}, ...]
inline nlohmann::ordered_json steps_json(const std::vector<DescribedStep>& steps) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const DescribedStep& step : steps) {
    nlohmann::ordered_json words{{"variant", step.variant}};
    for (std::size_t at = 0; at < five_things.size(); ++at)
      words[std::string(five_things[at])] = step.words[at];
    words[std::string(other_things)] = step.other;
    all.push_back(std::move(words));
  }
  return all;
}

}  // namespace stepgate
