// SPDX-License-Identifier: MIT
#include "judge/environment/certificate.h"

#include <algorithm>
#include <cmath>

#include "stats/prediction_interval.h"

namespace stepgate {

std::optional<double> between_processes(const TrialResult& trial) {
  if (!trial.spread) return std::nullopt;
  const double spread = *trial.spread;
  const double rounds = trial.spread_by_rounds;
  return std::sqrt(std::max(spread * spread - rounds * rounds, 0.0));
}

const TrialResult* identical_code(const Certificate& certificate) {
  const auto found =
      std::find_if(certificate.trials.begin(), certificate.trials.end(),
                   [](const TrialResult& trial) { return trial.name == identical_trial; });
  return found == certificate.trials.end() ? nullptr : &*found;
}

bool has_no_power(const TrialResult& slower) {
  constexpr double half = 0.5;
  return slower.refuted_rate.high < half;
}

bool is_granted(const Certificate& certificate) {
  const TrialResult* identical = identical_code(certificate);
  return identical != nullptr && identical->gates >= fewest_processes &&
         identical->refuted_rate.low <= certificate.alpha;
}

std::optional<double> smallest_margin(const Certificate& certificate) {
  const TrialResult* identical = identical_code(certificate);
  const auto deviation = identical == nullptr ? std::nullopt : between_processes(*identical);
  if (!deviation) return std::nullopt;
  const auto gates = static_cast<double>(identical->gates);
  const Prediction next{.units = identical->gates,
                        .runs = identical->gates,
                        .difference = 0,
                        .deviation = *deviation,
                        .between = *deviation * *deviation * (1 + 1 / gates),
                        .within = 0};
  return std::expm1(interval_of(next, 2 * certificate.alpha).high);  // of which one side counts
}

}  // namespace stepgate
