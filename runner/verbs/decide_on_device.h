// SPDX-License-Identifier: MIT
// Scenario after scenario on one device, which may fail at any of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "verbs/decide.h"
#include "verbs/decide_with_ledger.h"

namespace stepgate {

// Where and how all scenarios of a run are decided.
struct Line {
  Device& device;
  DeviceIdentity identity;  // as it was before anything could fail
  std::uint64_t seed = 0;
  JudgeSettings settings;
  std::optional<LedgerRequest> ledger;
  Forecasts forecasts = Forecasts::hidden;
};

class DecideOnDevice {
 public:
  explicit DecideOnDevice(Line line) : line_(std::move(line)) {}

  // A device that fails takes the scenario with it and not the run: the others are decided. One
  // that is lost is asked nothing more: what is left is decided by plans and traces as far as they
  // say, and is not run. Throws Interrupted.
  Decided decide(const Planned&);

 private:
  Decided measured(const Planned&);
  Decided not_run(const Planned&) const;

  Line line_;
  std::string lost_at_;  // the scenario; empty while the device is there
};

}  // namespace stepgate
