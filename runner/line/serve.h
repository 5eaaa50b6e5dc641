// SPDX-License-Identifier: MIT
// The tasks of a job (job.h) that lie on the line, in the process that carries them out. Standard
// input and output belong to the protocol of the task. Each returns the exit code.
#pragma once

#include "line/job.h"

namespace stepgate {

// The other end of trace_all.
int trace_for_run(const LineArguments&);
// The other end of a link to a rank.
int serve_as_rank(const LineArguments&, const RankTask&);

}  // namespace stepgate
