// SPDX-License-Identifier: MIT
#include "line/trace/calibrate_planned.h"

#include "line/fit_to_device.h"
#include "measure/trace/calibrate.h"

namespace stepgate {

Calibrated calibrate_planned(Device& device, const LineArguments& arguments, const Planned& planned,
                             std::uint64_t seed) {
  // A trial takes the median of this number of rounds.
  constexpr std::int64_t trial_rounds = 3;
  constexpr double most_seconds = 2;
  const Calibration& calibration = *planned.scenario.calibrate;
  const auto plans_with = [&](const std::string& value) {
    return plans_on(device.identity(), with_knob(planned, arguments, calibration.knob, value),
                    seed);
  };
  return calibrate(device, calibration,
                   calibration_range(calibration, planned.scenario, planned.plans), plans_with,
                   planned.plans,
                   {.rounds = trial_rounds,
                    .max_seconds = most_seconds,
                    .seed = seed_of(planned.scenario, seed)});
}

}  // namespace stepgate
