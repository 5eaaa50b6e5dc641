// SPDX-License-Identifier: MIT
#include "line/decide_on_device.h"

#include <fmt/format.h>

#include <new>

namespace stepgate {

Decided DecideOnDevice::decide(const Planned& planned, const ProgressSink& progress) {
  const auto failed = [&](const std::string& reason) {
    return decide_without_rounds(planned, line_.identity, line_.seed, line_.settings, reason);
  };
  if (!lost_at_.empty()) return not_run(planned);
  try {
    return measured(planned, progress);
  } catch (const DeviceLost& error) {
    lost_at_ = planned.scenario.name;
    return failed(error.what());
  } catch (const DeviceError& error) {
    return failed(error.what());
  } catch (const std::bad_alloc&) {
    return failed(std::string(no_host_memory));
  }
}

Decided DecideOnDevice::measured(const Planned& planned, const ProgressSink& progress) {
  return line_.ledger && !is_planned_only(planned.scenario)
             ? decide_with_ledger(planned, line_.device, line_.seed, line_.settings, progress,
                                  *line_.ledger)
             : decide_one(planned, line_.device, line_.seed, line_.settings, progress);
}

Decided DecideOnDevice::not_run(const Planned& planned) const {
  if (auto decided = decide_before_rounds(planned, line_.identity, line_.settings))
    return std::move(*decided);
  Decided decided =
      decide_without_rounds(planned, line_.identity, line_.seed, line_.settings,
                            fmt::format("the device was lost at '{}', before its turn; run it "
                                        "again by itself",
                                        lost_at_));
  decided.verdict.not_run = true;
  return decided;
}

}  // namespace stepgate
