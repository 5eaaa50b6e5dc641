// SPDX-License-Identifier: MIT
// stepgate's own side of a comparison: runs plans on a device as the worker protocol asks. Who
// asks, and what becomes of the times, is not known here.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/worker/protocol.h"
#include "device/device.h"
#include "plan/planned_step.h"

namespace stepgate {

// "scenario/variant".
std::string workload_name(const StepPlan&);

struct WorkerSubject {
  std::vector<PlannedStep> timed;
  std::vector<PlannedStep> planned;  // counted, never loaded
  std::vector<LeftOut> left_out;
  std::vector<std::string> calibrated;  // "scenario=value"
  bool stand_in = false;                // see OpenedDevice
  bool counts = false;                  // says what steps consist of; the device traces
  // Which processor issues the steps that are timed or traced; absent: any.
  std::optional<std::uint64_t> cpu_draw;
  Device* of_ranks = nullptr;  // carries out the steps of several ranks; null: the one device all
  // In the place of what is timed, in its order, where they do something besides that no plan
  // says: what a gate must find. For tests; otherwise empty.
  std::vector<PlannedStep> carried_out;
};

struct LoadedForTiming {
  std::unique_ptr<LoadedStep> step;  // null where the device has no notion of time
  Loaded says;
};

// Loads what carries the planned step out, and runs it until it is known about how long it takes.
LoadedForTiming load_for_timing(Device&, const PlannedStep& planned,
                                const PlannedStep& carried_out);

// Answers requests line by line until `quit` or the end of the input. A request that cannot be
// carried out is answered with an error; DeviceError is thrown, since a failed device has no
// further answers. `version` is that of this program.
void serve_worker(std::istream& in, std::ostream& out, Device&, const WorkerSubject&,
                  const std::string& version);

}  // namespace stepgate
