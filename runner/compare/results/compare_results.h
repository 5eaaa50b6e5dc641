// SPDX-License-Identifier: MIT
// Finds what differs between two results that `run --json` or `gate --json` wrote. The runs were
// not interleaved, so differences of time have drift of the machine in them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario.h"

namespace stepgate {

// A knob of a sweep and the values of its points, which are matched by them.
struct MatchedPoints {
  std::string scenario;  // name of the file
  std::string knob;
  std::vector<SweepPoint> both = {};    // that both results have, the smallest first
  std::vector<SweepPoint> before = {};  // that only one has
  std::vector<SweepPoint> after = {};
};

// How the times of a step, or of HEAD in a gate, relate. Ratios are after over before.
struct TimeOfBoth {
  std::string workload;  // "scenario/variant"
  std::optional<SweepPoint> point = {};
  double ratio = 1;
  double low = 1;  // of the interval at 95 %, where there is one
  double high = 1;
  bool has_interval = false;  // false: a result has no rounds
};

struct ResultDifference {
  std::string what;  // "driver", "fix.launches_per_step", "a.faster"
  std::optional<SweepPoint> point = {};
  std::string before;  // in words; empty: not there
  std::string after;
};

struct ComparedResults {
  std::string kind;  // "run", "gate"
  std::string first;
  std::string second;
  std::vector<ResultDifference> provenance;  // devices and versions
  std::vector<ResultDifference> facts;       // steps, counts, outcomes, findings
  std::vector<TimeOfBoth> times;
  std::vector<MatchedPoints> sweeps = {};
  bool same_device = true;
};

// Throws RequestError for a file that is no such result, and for two of different kinds.
ComparedResults compare_results(const std::filesystem::path& first,
                                const std::filesystem::path& second);

}  // namespace stepgate
