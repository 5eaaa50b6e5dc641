// SPDX-License-Identifier: MIT
#include "measure/pilot.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stats/moments.h"

namespace stepgate {
namespace {

constexpr int pairs = 4;  // of a short and a long order
constexpr std::int64_t longer = 4;
constexpr double tolerance = 0.001;
constexpr double standard_errors = 3;
// Of the log-ratio of two identical steps from load to load, as measured on an H200: 0.2 to 0.9 %.
constexpr double deviation_between_loads = 0.004;
constexpr double most_orders = 4;

// The log-ratios of every variant to the first.
std::vector<double> ratios(const std::vector<double>& log_times) {
  std::vector<double> against_first;
  for (const double log_time : log_times) against_first.push_back(log_time - log_times.front());
  return against_first;
}

double sample_deviation(const std::vector<double>& values) {
  const double count = static_cast<double>(values.size());
  return std::sqrt(moments_of(values).variance * count / (count - 1));
}

Pilot try_length(std::int64_t steps, const TimedOrder& run) {
  std::vector<std::vector<double>> changes;  // by variant, then pair
  std::vector<std::vector<double>> briefs;
  for (int pair = 0; pair < pairs; ++pair) {
    const std::vector<double> brief = ratios(run(steps));
    const std::vector<double> lengthy = ratios(run(longer * steps));
    changes.resize(brief.size());
    briefs.resize(brief.size());
    for (std::size_t variant = 0; variant < brief.size(); ++variant) {
      changes[variant].push_back(brief[variant] - lengthy[variant]);
      briefs[variant].push_back(brief[variant]);
    }
  }
  Pilot pilot{.segment_steps = steps};
  for (const std::vector<double>& brief : briefs) {
    // An order and its mirror scatter less than an order alone.
    pilot.deviation = std::max(pilot.deviation, std::numbers::sqrt2 * sample_deviation(brief));
  }
  for (const std::vector<double>& change : changes) {
    const double mean = moments_of(change).mean;
    const double error = sample_deviation(change) / std::sqrt(static_cast<double>(pairs));
    const double size = std::abs(mean);
    if (size > std::max(tolerance, standard_errors * error)) pilot.agrees = false;
    if (size < pilot.disagreement) continue;
    pilot.disagreement = size;
    pilot.standard_error = error;
  }
  return pilot;
}

}  // namespace

Pilot choose_segment(std::int64_t first, std::int64_t most, const TimedOrder& run) {
  std::int64_t steps = first;
  while (true) {
    const Pilot pilot = try_length(steps, run);
    if (pilot.agrees || 2 * steps > most) return pilot;
    steps *= 2;
  }
}

std::int64_t orders_per_pass(double load_cost, double deviation) {
  const double best = std::sqrt(load_cost) * deviation / deviation_between_loads;
  return static_cast<std::int64_t>(std::clamp(std::round(best), 1.0, most_orders));
}

double round_deviation(const Pilot& pilot, std::int64_t passes) {
  const double within =
      pilot.deviation * pilot.deviation / static_cast<double>(pilot.orders_per_pass);
  const double between = deviation_between_loads * deviation_between_loads;
  return std::sqrt((within + between) / static_cast<double>(passes));
}

}  // namespace stepgate
