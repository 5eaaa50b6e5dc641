// SPDX-License-Identifier: MIT
#include "report/json/json_of_evidence.h"

namespace stepgate {

nlohmann::ordered_json json_of_evidence(const TimedEvidence& timed) {
  nlohmann::ordered_json interval;
  if (timed.interval) interval = {timed.interval->low, timed.interval->high};
  return {{"ratio", timed.ratio},
          {"interval", interval},
          {"evidence_for", timed.evidence_for},
          {"evidence_against", timed.evidence_against},
          {"total_ratio", json_or_null(timed.total_ratio)},
          {"held_back_by_total", timed.held_back_by_total},
          {"smallest_seen", json_or_null(timed.smallest_seen)},
          {"rounds_missing", json_or_null(timed.rounds_missing)},
          {"earlier_rounds", timed.earlier_rounds},
          {"earlier_times", timed.earlier_times},
          {"contrasts", timed.contrasts}};
}

}  // namespace stepgate
