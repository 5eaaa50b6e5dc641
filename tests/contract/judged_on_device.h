// SPDX-License-Identifier: MIT
// For tests only: makes the decisions of a run on a given device, and says how many wrong verdicts
// may be random.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "judge/judge.h"
#include "measure/planned_subject.h"
#include "plan/count/facts_of.h"

namespace stepgate {

// Measures as `stepgate run` does, without --ledger and traces.
inline Measurement measured_on(Device& device, const Scenario& scenario,
                               std::span<const PlannedStep> plans, std::uint64_t seed) {
  MeasureRequest request;
  request.knobs = scenario.measure;
  request.seed = seed;
  request.enough = enough_evidence(scenario, subjects_of(plans), {});
  return measure(device, plans, request);
}

inline Verdict judged_on(Device& device, const Scenario& scenario,
                         std::span<const PlannedStep> plans, std::uint64_t seed) {
  return judge(scenario, subjects_of(plans), measured_on(device, scenario, plans, seed), {});
}

// Upper limit for the observed share of wrong gates: the rate plus three standard errors.
inline double most_of(int gates, double rate) {
  return rate + 3 * std::sqrt(rate * (1 - rate) / gates);
}

// Documented error rates for an effect of this size that exceed the promised rates. They come from
// measurements, here and in docs/verdict.md, and may only decrease.
struct DocumentedRates {
  double size;
  double failed;
  double held;
};

}  // namespace stepgate
