// SPDX-License-Identifier: MIT
// For tests only: handwritten results of traces.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "measure/trace/traced.h"

namespace stepgate {

// Times of the parts of a step, in microseconds.
struct PartsByHand {
  double math = 0;
  double memory = 0;
  double latency = 0;
  double copies = 0;
  double communication = 0;
  double idle_after_wait = 0;
  double idle_for_data = 0;
  double idle_for_host = 0;
  double idle_in_queue = 0;
};

inline TracedStep traced_step(const PartsByHand& parts, std::map<Metric, double> values = {}) {
  TracedStep step;
  step.values = std::move(values);
  const auto seconds = [](double microseconds) { return microseconds / 1e6; };
  step.time = {.math = seconds(parts.math),
               .memory = seconds(parts.memory),
               .latency = seconds(parts.latency),
               .copies = seconds(parts.copies),
               .communication = seconds(parts.communication),
               .idle_after_wait = seconds(parts.idle_after_wait),
               .idle_for_data = seconds(parts.idle_for_data),
               .idle_for_host = seconds(parts.idle_for_host),
               .idle_in_queue = seconds(parts.idle_in_queue)};
  const TimeBreakdown& time = step.time;
  step.time.step = time.math + time.memory + time.latency + time.copies + time.communication +
                   time.idle_after_wait + time.idle_for_data + time.idle_for_host +
                   time.idle_in_queue;
  return step;
}

// Repeats the same steps in every round.
inline Traced traced_rounds(const std::vector<TracedStep>& variants, std::size_t rounds = 7) {
  Traced traced;
  traced.steps = 20;
  traced.wall_time = std::chrono::milliseconds(100 * static_cast<std::int64_t>(rounds));
  traced.rounds.assign(rounds, TracedRound{variants});
  return traced;
}

// Sets a metric of one variant, with one value for each traced round.
inline void set_values(Traced& traced, std::size_t variant, Metric metric,
                       const std::vector<double>& values) {
  for (std::size_t round = 0; round < traced.rounds.size(); ++round) {
    traced.rounds[round].variants[variant].values[metric] = values[round % values.size()];
  }
}

}  // namespace stepgate
