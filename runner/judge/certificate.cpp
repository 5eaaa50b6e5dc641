// SPDX-License-Identifier: MIT
#include "judge/certificate.h"

#include <algorithm>

namespace stepgate {

FalseAlarms false_alarms(const Certificate& certificate) {
  FalseAlarms alarms;
  for (const TrialResult& trial : certificate.trials) {
    // What has no share may cost anything. What was seen decides, not what was asked for.
    const bool identical = trial.name == identical_trial;
    const double slower = std::max(trial.injected, trial.seen.value_or(0));
    if (!identical && (trial.injected == 0 || slower > certificate.margin)) continue;
    alarms.refuted += trial.refuted;
    alarms.gates += trial.gates;
  }
  if (alarms.gates > 0) alarms.rate = clopper_pearson(alarms.refuted, alarms.gates, 0.05);
  return alarms;
}

bool keeps_its_word(const Certificate& certificate) {
  constexpr double luck = 0.001;
  const FalseAlarms alarms = false_alarms(certificate);
  if (alarms.gates == 0) return false;
  return clopper_pearson(alarms.refuted, alarms.gates, luck).low <= certificate.alpha;
}

}  // namespace stepgate
