// SPDX-License-Identifier: MIT
// Scenario after scenario on one device, which may fail at any of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "line/decide.h"
#include "line/decide_with_ledger.h"

namespace stepgate {

// Where and how all scenarios of a run are decided.
struct Line {
  Device& device;
  DeviceIdentity identity;  // as it was before anything could fail
  std::uint64_t seed = 0;
  JudgeSettings settings;
  std::optional<LedgerRequest> ledger;
};

class DecideOnDevice {
 public:
  explicit DecideOnDevice(Line line) : line_(std::move(line)) {}

  // If the device fails, only this scenario fails; the others are still decided. If the device is
  // lost, it is not used again: the rest is decided from plans and traces as far as possible.
  // Throws Interrupted.
  Decided decide(const Planned&, const ProgressSink& = {});

 private:
  Decided measured(const Planned&, const ProgressSink&);
  Decided not_run(const Planned&) const;

  Line line_;
  std::string lost_at_;  // the scenario; empty while the device is there
};

}  // namespace stepgate
