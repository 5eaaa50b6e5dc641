// SPDX-License-Identifier: MIT
// Decides scenarios one after the other on one device, which may fail at any of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "line/decide.h"
#include "line/decide_with_ledger.h"

namespace stepgate {

// The device and the settings for all scenarios of a run.
struct Line {
  Device& device;
  DeviceIdentity identity;  // read before anything could fail
  std::uint64_t seed = 0;
  JudgeSettings settings;
  std::optional<LedgerRequest> ledger;
};

class DecideOnDevice {
 public:
  explicit DecideOnDevice(Line line) : line_(std::move(line)) {}

  // Decides one scenario. If the device fails, only this scenario fails; the others are still
  // decided. If the device is lost, it is not used again: the rest is decided from plans and traces
  // as far as possible. Throws Interrupted.
  Decided decide(const Planned&, const ProgressSink& = {});

 private:
  Decided measured(const Planned&, const ProgressSink&);
  Decided not_run(const Planned&) const;

  Line line_;
  std::string lost_at_;  // name of the scenario; empty while the device works
};

}  // namespace stepgate
