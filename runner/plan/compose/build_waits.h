// SPDX-License-Identifier: MIT
// Where the host looks at the device: the waits of [sync] and the reads of [log].
#pragma once

#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// Appends what [log] asks for; `loss` is the buffer with the step's loss.
void build_log(StepBuilder&, const Knobs&, int loss);

// Puts the waits of [sync] where they belong among the operations built so far.
void build_sync(StepBuilder&, const Knobs&, int loss);

}  // namespace stepgate
