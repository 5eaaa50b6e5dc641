// SPDX-License-Identifier: MIT
// Compares NCCL's record of some steps with their plan. NCCL's record is independent of the plan
// and of CUPTI.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/cuda/nccl/nccl_communicator.h"
#include "device/cuda/nccl/nccl_record.h"
#include "device/trace.h"
#include "plan/step_plan.h"

namespace stepgate {

struct IssuedSteps {
  std::int64_t first_of_load = 0;  // number of the step that the load began with
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t graphs = 0;  // that the load has captured, one for each combination of slots
};

// Records of one loaded step; each contains all collectives enqueued during its recording.
struct NcclRecordsOfStep {
  NcclRecord captured = {};  // at capture; NCCL does not report launches of graphs
  NcclRecord issued = {};    // in these steps
};

// Returns the record of these steps. Plan and communicators are those of one rank.
LibraryRecord library_record_of(const StepPlan&, const IssuedSteps&,
                                const std::vector<std::unique_ptr<NcclCommunicator>>&,
                                const NcclRecordsOfStep&);

}  // namespace stepgate
