// SPDX-License-Identifier: MIT
#include "judge/verdict/mechanism.h"

#include <algorithm>
#include <utility>

#include "base/require.h"

namespace stepgate {

double part_of(const TimeBreakdown& split, TimePart part) {
  switch (part) {
    case TimePart::math:
      return split.math;
    case TimePart::memory:
      return split.memory;
    case TimePart::latency:
      return split.latency;
    case TimePart::copies:
      return split.copies;
    case TimePart::communication:
      return split.communication;
    case TimePart::idle_after_wait:
      return split.idle_after_wait;
    case TimePart::idle_for_data:
      return split.idle_for_data;
    case TimePart::idle_for_host:
      return split.idle_for_host;
    case TimePart::idle_in_queue:
      return split.idle_in_queue;
  }
  require(false, "a time split has nine parts");
  return 0;
}

BoundClass class_of(const TimeBreakdown& time) {
  const std::pair<double, BoundClass> parts[] = {
      {time.idle_for_data, BoundClass::data},
      {time.copies, BoundClass::copy},
      {time.communication, BoundClass::communication},
      {time.idle_for_host + time.idle_after_wait, BoundClass::host}};
  const auto& largest = *std::ranges::max_element(parts, {}, &std::pair<double, BoundClass>::first);
  return largest.first >= share_that_binds * time.step ? largest.second : BoundClass::compute;
}

}  // namespace stepgate
