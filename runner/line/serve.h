// SPDX-License-Identifier: MIT
// The tasks of a job (job.h) that belong to the line, in the process that carries them out.
// Standard input and output belong to the protocol of the task. Each function returns the exit
// code.
#pragma once

#include "line/job.h"

namespace stepgate {

// Serves the process that calls trace_all.
int trace_for_run(const LineArguments&);
// Serves the process at the other end of a rank's link.
int serve_as_rank(const LineArguments&, const RankTask&);

}  // namespace stepgate
