// SPDX-License-Identifier: MIT
// stepgate's own worker: runs plans on a device as the worker protocol requests. It knows neither
// the client nor the use of the times.
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

// Returns the name "scenario/variant".
std::string workload_name(const StepPlan&);

struct WorkerSubject {
  std::vector<PlannedStep> timed;
  std::vector<PlannedStep> planned;  // counted, never loaded
  std::vector<std::string> kernels;  // of `timed`, by name (kernel_workload.h), where it traces
  std::vector<LeftOut> left_out;
  std::vector<std::string> calibrated;  // "scenario=value"
  bool stand_in = false;                // see OpenedDevice
  bool counts = false;                  // counts the parts of steps, since the device traces
  // Chooses the processor that issues timed or traced steps; absent means any.
  std::optional<std::uint64_t> cpu_draw;
  Device* of_ranks = nullptr;  // runs the steps of several ranks; null: the one device does
  // For tests: runs instead of `planned`, in the same order, and does additional work that a gate
  // must find. Otherwise empty.
  std::vector<PlannedStep> carried_out;
};

struct LoadedForTiming {
  std::unique_ptr<LoadedStep> step;  // null where the device does not measure time
  Loaded says;
};

// Loads the step that carries out the planned one, and runs it until its time is approximately
// known.
LoadedForTiming load_for_timing(Device&, const PlannedStep& planned,
                                const PlannedStep& carried_out);

// Answers requests line by line until `quit` or the end of the input. A request that cannot be
// carried out is answered with an error. DeviceError is thrown, since a failed device cannot answer
// further requests. `version` is that of this program.
void serve_worker(std::istream& in, std::ostream& out, Device&, const WorkerSubject&,
                  const std::string& version);

}  // namespace stepgate
